// S3Stub: a store in memory behind a server of HTTP on loopback, which fails as a test tells it to.
// Promises   in both dialects it takes PUT with its condition (`If-None-Match: *`), ranges, uploads
//            in parts, lists and removals, as S3 does, and notes each request. A fault happens to
//            the next requests of its operation, as many as it says, before or after they had
//            their effect.
// Does not   check signatures (a real server does), or give lists in pages, but for those of parts.
// Threads    any; one of its own for each connection.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/environment.h"
#include "base/fd.h"
#include "store/s3/sign.h"

namespace keel {

struct StubRequest {
  std::string operation;     // "PutObject", "GetObject", "HeadObject", "List", "CreateUpload",
                             // "UploadPart", "Complete", "Abort", "ListUploads", "ListParts",
                             // "Delete", "Other"
  std::string method;
  std::string path;          // of the request, with its query
  std::string key;
  std::map<std::string, std::string> query;
  std::map<std::string, std::string> headers;   // names in lower case
  std::string body;
};

struct StubAnswer {
  int status = 200;
  HttpPairs headers = {};
  std::string body = {};
};

struct StubFault {
  enum class Kind {
    kAnswer,       // `answer`, without an effect
    kLateAnswer,   // the effect, then `answer`
    kCut,          // the connection ends, without an effect
    kSwallow,      // the effect, then the connection ends without an answer
    kShort,        // the effect, then half of the answer's body and the end of the connection
    kWhole,        // the range is ignored
    kRaw,          // the bytes of `answer.body`, and the end of the connection
    kBlackHole     // no answer at all, until the stub ends
  };
  std::string operation;
  Kind kind = Kind::kAnswer;
  int times = 1;
  StubAnswer answer = {};
};

// What some stores do not do, without a word.
struct StubManners {
  bool compares_crc = true;
  bool compares_md5 = true;
  bool knows_conditions = true;
};

class S3Stub {
 public:
  S3Stub();
  ~S3Stub();
  S3Stub(const S3Stub&) = delete;
  S3Stub& operator=(const S3Stub&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // What a client's environment holds to reach it; of Google's, its metadata service gives
  // "google-token".
  Environment environment() const;
  Environment google_environment();

  void Fail(const StubFault& fault);
  void Behave(const StubManners& manners);
  // To requests of other services than S3, whose path begins so: credentials.
  void Answer(const std::string& path, const StubAnswer& answer);

  std::vector<StubRequest> requests() const;
  // How often the operation was asked for.
  int Count(const std::string& operation) const;
  // Returns once it has been asked for so often; false: a limit against hanging has passed.
  bool Await(const std::string& operation, int count) const;
  std::map<std::string, std::string> objects() const;
  void SetObject(const std::string& key, const std::string& bytes);

 private:
  struct Upload {
    std::string key;
    std::string mark;
    std::map<int, std::string> parts;
  };
  void Accept();
  void Serve(int connection);
  // False: the connection is to end.
  bool Respond(int connection, const StubRequest& request);
  int CountLocked(const std::string& operation) const;
  StubAnswer Effect(const StubRequest& request, bool ignores_range);
  StubAnswer Put(const StubRequest& request);
  bool HasWrongSum(const StubRequest& request) const;
  StubAnswer Read(const StubRequest& request, bool ignores_range) const;
  StubAnswer List(const StubRequest& request) const;
  StubAnswer Delete(const StubRequest& request);
  StubAnswer OfUpload(const StubRequest& request);
  static StubAnswer ListParts(const StubRequest& request, const Upload& upload);
  StubAnswer Complete(const StubRequest& request, const std::string& id);

  Fd listener_;
  uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable closed_;
  mutable std::condition_variable asked_;
  bool closing_ = false;                            // all below: guarded by mutex_
  std::list<StubFault> faults_;
  StubManners manners_;
  std::map<std::string, StubAnswer> others_;
  std::vector<StubRequest> requests_;
  std::map<std::string, std::string> objects_;
  std::map<std::string, std::string> marks_;        // x-*-meta-keel-upload, by key
  std::map<std::string, Upload> uploads_;           // by id
  int last_id_ = 0;
  std::vector<int> connections_;
  std::vector<std::thread> threads_;
  std::thread accepting_;
};

// When a part came, in minutes after its upload began: the newest is not the last one.
constexpr int StubMinutesOfPart(int number) { return number * 7 % 11; }

// <Error><Code>code</Code>...
std::string StubErrorBody(const std::string& code);

}  // namespace keel
