// WeedServer: a SeaweedFS of this machine, which speaks S3, for as long as this object lives.
// Promises   it listens on free ports of 127.0.0.1 alone, keeps its data in memory (/dev/shm) if
//            there is some, and answers once it is made. A server that does not come up fails the
//            test, with its last words.
// Does not   survive the test process: it gets SIGKILL when that dies.
// Threads    one, which must outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/environment.h"
#include "base/posix_files.h"
#include "elastic/process/child.h"
#include "store/s3/s3_objects.h"

namespace keel {

// Why no server can be started here, and what to do; empty: one can.
std::string WhyNoWeed();

class WeedServer {
 public:
  enum class Speaks { kHttp, kHttps };
  explicit WeedServer(Speaks speaks = Speaks::kHttp);
  ~WeedServer();
  WeedServer(const WeedServer&) = delete;
  WeedServer& operator=(const WeedServer&) = delete;

  // What a client's environment holds to reach it; over HTTPS with its own authority.
  Environment environment() const;
  // A client of the bucket, which is made if it is not there.
  std::unique_ptr<S3Objects> Open(const std::string& bucket, const S3Options& options = {});

  // SIGKILL, and waits for its end.
  void Kill();
  // The same data and ports, after Kill().
  void Restart();

 private:
  bool is_https() const { return speaks_ == Speaks::kHttps; }
  void MakeCertificate();
  void Start();
  void AwaitReady();
  Status LookWhetherReady();
  std::string LastWords() const;
  S3Ending MakeBucket(const std::string& bucket, Duration limit);

  PosixFiles files_;
  const Speaks speaks_;
  std::string folder_;
  uint16_t ports_[8] = {};           // of S3, master, volume and filer, each with gRPC's
  std::optional<Child> child_;
};

}  // namespace keel
