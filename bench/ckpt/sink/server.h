// SinkServer: answers S3's requests out of memory, with a thread for each connection.
// Promises   counts what it was asked for and the bytes of bodies both ways; GET /_sink says them,
//            DELETE /_sink says them and counts anew.
// Does not   check signatures, look which parts an upload is completed with or on what condition,
//            give lists in pages, or check sums of what is larger than 64 KB: the time that this
//            takes is not what is measured.
// Threads    one for each connection; Run() never returns.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "bench/ckpt/sink/link.h"
#include "bench/ckpt/sink/objects.h"

namespace keel {

struct SinkRequest {
  std::string method;
  std::string key;                              // without the bucket
  std::map<std::string, std::string> query;
  std::map<std::string, std::string> headers;   // names in lower case
  std::string body;

  std::string Header(const std::string& name) const;
  bool Asks(const std::string& name) const { return query.contains(name); }
};

struct SinkAnswer {
  int status = 200;
  std::string headers;              // each with its line's end
  std::string text;
  // Sent behind `text`: bytes of `object`.
  std::vector<std::string_view> ranges = {};
  std::optional<SinkObject> object = {};
  std::optional<uint64_t> length = {};   // told of a body that is not sent: HEAD
};

class SinkServer {
 public:
  SinkServer(double upload_rate, double download_rate);

  Result<uint16_t> Listen(uint16_t port);
  void Run();

 private:
  void Serve(Fd connection);
  SinkAnswer Answer(SinkRequest& request);
  SinkAnswer Put(SinkRequest& request);
  SinkAnswer Read(const SinkRequest& request) const;
  SinkAnswer List(const SinkRequest& request) const;
  SinkAnswer OfUpload(const SinkRequest& request);
  SinkAnswer OfItself(const SinkRequest& request);

  SinkObjects objects_;
  SinkLink up_;
  SinkLink down_;
  Fd listener_;
  std::atomic<uint64_t> requests_{0};
  std::atomic<uint64_t> received_{0};
  std::atomic<uint64_t> sent_{0};
};

}  // namespace keel
