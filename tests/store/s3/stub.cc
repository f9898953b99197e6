// Beast reads and writes HTTP; each connection has a thread that blocks.
#include "tests/store/s3/stub.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <sstream>

#include "base/check.h"
#include "base/file_helpers.h"
#include "store/s3/answers.h"
#include "store/s3/crc32c.h"
#include "store/s3/hashes.h"
#include "store/s3/percent.h"
#include "store/s3/xml.h"

namespace keel {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Kind = StubFault::Kind;

constexpr const char* kTime = "2026-11-25T10:00:00.000Z";
constexpr const char* kMark = "x-amz-meta-keel-upload";
constexpr const char* kGoogleMark = "x-goog-meta-keel-upload";
constexpr const char* kTokenPath = "/computeMetadata/v1/instance/service-accounts/default/token";

StubAnswer Refusal(int status, const std::string& code) {
  return {status, {}, StubErrorBody(code)};
}

std::string Header(const StubRequest& request, const std::string& name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? "" : found->second;
}

std::string OperationOf(const StubRequest& request) {
  const auto has = [&](const char* name) { return request.query.contains(name); };
  const std::string& method = request.method;
  if (method == "GET" && has("uploads")) return "ListUploads";
  if (method == "GET" && has("list-type")) return "List";
  if (method == "GET" && has("uploadId")) return "ListParts";
  if (method == "GET") return "GetObject";
  if (method == "HEAD") return "HeadObject";
  if (method == "PUT") return has("partNumber") ? "UploadPart" : "PutObject";
  if (method == "POST" && has("uploads")) return "CreateUpload";
  if (method == "POST" && has("uploadId")) return "Complete";
  if (method == "POST" && has("delete")) return "Delete";
  if (method == "DELETE") return has("uploadId") ? "Abort" : "DeleteObject";
  return "Other";
}

// Fills in what the path "/bucket/key?query" says.
void ReadPath(StubRequest& request) {
  const std::string& target = request.path;
  const size_t mark = std::min(target.find('?'), target.size());
  const size_t slash = target.find('/', 1);
  if (slash < mark) request.key = PercentDecoded(target.substr(slash + 1, mark - slash - 1));
  for (size_t at = mark + 1; at < target.size();) {
    const size_t end = std::min(target.find('&', at), target.size());
    const std::string pair = target.substr(at, end - at);
    const size_t equals = std::min(pair.find('='), pair.size());
    request.query[PercentDecoded(pair.substr(0, equals))] =
        equals == pair.size() ? "" : PercentDecoded(pair.substr(equals + 1));
    at = end + 1;
  }
  request.operation = OperationOf(request);
}

void SendAll(int connection, const std::string& bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t count =
        send(connection, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return;   // the client is gone
    sent += static_cast<size_t>(count);
  }
}

// Sends it as it is; `body_bytes` of the body, whatever the head announces.
void SendAnswer(int connection, const StubAnswer& answer, bool is_head, size_t body_bytes) {
  http::response<http::string_body> response;
  response.version(11);
  response.result(static_cast<unsigned>(answer.status));
  bool has_length = false;
  for (const auto& [name, value] : answer.headers) {
    response.set(name, value);
    has_length = has_length || name == "Content-Length";
  }
  if (!has_length) response.set("Content-Length", std::to_string(answer.body.size()));
  std::ostringstream head;
  head << response.base();
  std::string bytes = head.str();
  if (!is_head) bytes += answer.body.substr(0, body_bytes);
  SendAll(connection, bytes);
}

}  // namespace

std::string StubErrorBody(const std::string& code) {
  return "<?xml version=\"1.0\"?><Error><Code>" + code + "</Code><Message>the stub says " + code +
         "</Message></Error>";
}

S3Stub::S3Stub() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  KEEL_CHECK(bind(listener_.number(), any, size) == 0 && listen(listener_.number(), 64) == 0 &&
                 getsockname(listener_.number(), any, &size) == 0,
             "no port is free");
  port_ = ntohs(address.sin_port);
  accepting_ = std::thread([this] { Accept(); });
}

S3Stub::~S3Stub() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    for (const int connection : connections_) shutdown(connection, SHUT_RDWR);
  }
  closed_.notify_all();
  shutdown(listener_.number(), SHUT_RDWR);
  accepting_.join();
  for (std::thread& thread : threads_) thread.join();
}

Environment S3Stub::environment() const {
  return {{"AWS_ENDPOINT_URL_S3", url()},
          {"AWS_ACCESS_KEY_ID", "STUBKEYID"},
          {"AWS_SECRET_ACCESS_KEY", "stub-secret"},
          {"AWS_EC2_METADATA_DISABLED", "true"}};
}

Environment S3Stub::google_environment() {
  Answer(kTokenPath, {200, {}, R"({"access_token": "google-token", "expires_in": 3599,
                                   "token_type": "Bearer"})"});
  return {{"STORAGE_EMULATOR_HOST", url()},
          {"GCE_METADATA_HOST", "127.0.0.1:" + std::to_string(port_)}};
}

void S3Stub::Behave(const StubManners& manners) {
  const std::lock_guard lock(mutex_);
  manners_ = manners;
}

void S3Stub::Fail(const StubFault& fault) {
  const std::lock_guard lock(mutex_);
  faults_.push_back(fault);
}

void S3Stub::Answer(const std::string& path, const StubAnswer& answer) {
  const std::lock_guard lock(mutex_);
  others_[path] = answer;
}

std::vector<StubRequest> S3Stub::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

int S3Stub::Count(const std::string& operation) const {
  const std::lock_guard lock(mutex_);
  return CountLocked(operation);
}

bool S3Stub::Await(const std::string& operation, int count) const {
  std::unique_lock lock(mutex_);
  return asked_.wait_for(lock, std::chrono::seconds(60),
                         [&] { return CountLocked(operation) >= count; });
}

int S3Stub::CountLocked(const std::string& operation) const {
  return static_cast<int>(std::count_if(
      requests_.begin(), requests_.end(),
      [&](const StubRequest& request) { return request.operation == operation; }));
}

std::map<std::string, std::string> S3Stub::objects() const {
  const std::lock_guard lock(mutex_);
  return objects_;
}

void S3Stub::SetObject(const std::string& key, const std::string& bytes) {
  const std::lock_guard lock(mutex_);
  objects_[key] = bytes;
}

void S3Stub::Accept() {
  for (;;) {
    const int connection = accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC);
    const std::lock_guard lock(mutex_);
    if (closing_ || connection < 0) {
      if (connection >= 0) close(connection);
      return;
    }
    connections_.push_back(connection);
    threads_.emplace_back([this, connection] { Serve(connection); });
  }
}

void S3Stub::Serve(int connection) {
  asio::io_context loop;
  tcp::socket socket(loop, tcp::v4(), connection);
  boost::beast::flat_buffer buffer;
  for (;;) {
    http::request_parser<http::string_body> parser;
    parser.body_limit(uint64_t{1} << 30);
    boost::system::error_code failure;
    http::read(socket, buffer, parser, failure);
    if (failure) break;
    StubRequest request;
    request.method = std::string(parser.get().method_string());
    request.path = std::string(parser.get().target());
    for (const auto& field : parser.get()) {
      std::string name(field.name_string());
      std::transform(name.begin(), name.end(), name.begin(), ::tolower);
      request.headers[name] = std::string(field.value());
    }
    request.body = parser.get().body();
    ReadPath(request);
    if (!Respond(connection, request)) break;
  }
  const std::lock_guard lock(mutex_);
  std::erase(connections_, connection);
}

bool S3Stub::Respond(int connection, const StubRequest& request) {
  const bool is_head = request.method == "HEAD";
  std::unique_lock lock(mutex_);
  requests_.push_back(request);
  asked_.notify_all();
  StubFault fault{request.operation, Kind::kAnswer, 0};
  const auto found = std::find_if(faults_.begin(), faults_.end(), [&](const StubFault& one) {
    return one.operation == request.operation;
  });
  if (found != faults_.end()) {
    fault = *found;
    if (--found->times == 0) faults_.erase(found);
  }
  const bool is_fault = fault.times != 0;
  const Kind kind = fault.kind;
  StubAnswer answer = fault.answer;
  const bool has_effect = !is_fault || kind == Kind::kLateAnswer || kind == Kind::kSwallow ||
                          kind == Kind::kShort || kind == Kind::kWhole;
  if (has_effect) {
    StubAnswer effect = Effect(request, is_fault && kind == Kind::kWhole);
    if (!is_fault || kind != Kind::kLateAnswer) answer = std::move(effect);
  }
  bool goes_on = true;
  if (is_fault && kind == Kind::kBlackHole) {
    closed_.wait(lock, [&] { return closing_; });
    goes_on = false;
  } else if (is_fault && (kind == Kind::kCut || kind == Kind::kSwallow)) {
    goes_on = false;
  } else if (is_fault && kind == Kind::kRaw) {
    lock.unlock();
    SendAll(connection, answer.body);
    goes_on = false;
  } else {
    lock.unlock();
    const bool is_short = is_fault && kind == Kind::kShort;
    SendAnswer(connection, answer, is_head, is_short ? answer.body.size() / 2 : answer.body.size());
    goes_on = !is_short;
  }
  return goes_on;
}

StubAnswer S3Stub::Effect(const StubRequest& request, bool ignores_range) {
  const StubAnswer* other = nullptr;
  for (const auto& [path, answer] : others_) {
    // The longest comes last.
    if (request.path.starts_with(path)) other = &answer;
  }
  if (other != nullptr) return *other;
  if (request.method == "PUT" && HasWrongSum(request)) return Refusal(400, "BadDigest");
  const std::string& operation = request.operation;
  if (operation == "PutObject") return Put(request);
  if (operation == "GetObject" || operation == "HeadObject") return Read(request, ignores_range);
  if (operation == "List") return List(request);
  if (operation == "Delete") return Delete(request);
  if (operation == "DeleteObject") {
    const bool was_there = objects_.erase(request.key) == 1;
    return was_there ? StubAnswer{204, {}, ""} : Refusal(404, "NoSuchKey");
  }
  return OfUpload(request);
}

bool S3Stub::HasWrongSum(const StubRequest& request) const {
  const auto differs = [&](const std::string& name, const std::string& sum) {
    const std::string sent = Header(request, name);
    return !sent.empty() && sent != sum;
  };
  const auto body = BytesOf(request.body);
  const std::string crc = Crc32cBase64(body);
  return (manners_.compares_md5 && differs("content-md5", Md5Base64(body))) ||
         (manners_.compares_crc && (differs("x-amz-checksum-crc32c", crc) ||
                                    differs("x-goog-hash", "crc32c=" + crc)));
}

StubAnswer S3Stub::Put(const StubRequest& request) {
  const bool only_if_absent = Header(request, "if-none-match") == "*" ||
                              Header(request, "x-goog-if-generation-match") == "0";
  if (only_if_absent && manners_.knows_conditions && objects_.contains(request.key)) {
    return Refusal(412, "PreconditionFailed");
  }
  objects_[request.key] = request.body;
  marks_.erase(request.key);
  return {200, {{"ETag", "\"whole\""}}, ""};
}

StubAnswer S3Stub::Read(const StubRequest& request, bool ignores_range) const {
  const auto found = objects_.find(request.key);
  if (found == objects_.end()) return Refusal(404, "NoSuchKey");
  const std::string& bytes = found->second;
  StubAnswer answer{200, {{"Last-Modified", "Wed, 25 Nov 2026 10:00:00 GMT"}}, bytes};
  if (const auto mark = marks_.find(request.key); mark != marks_.end()) {
    answer.headers.emplace_back(kMark, mark->second);
    answer.headers.emplace_back(kGoogleMark, mark->second);
  }
  const std::string range = Header(request, "range");
  if (range.empty() || ignores_range) return answer;
  const size_t dash = range.find('-');
  const uint64_t first = std::stoull(range.substr(6, dash - 6));
  const uint64_t last = std::min<uint64_t>(std::stoull(range.substr(dash + 1)), bytes.size() - 1);
  if (first >= bytes.size()) return Refusal(416, "InvalidRange");
  answer.status = 206;
  answer.body = bytes.substr(first, last - first + 1);
  answer.headers.emplace_back("Content-Range", "bytes " + std::to_string(first) + "-" +
                                                   std::to_string(last) + "/" +
                                                   std::to_string(bytes.size()));
  return answer;
}

StubAnswer S3Stub::List(const StubRequest& request) const {
  const std::string prefix = request.query.at("prefix");
  std::string body = "<ListBucketResult><IsTruncated>false</IsTruncated>";
  for (const auto& [key, bytes] : objects_) {
    if (!key.starts_with(prefix)) continue;
    body += "<Contents><Key>" + XmlEscaped(key) + "</Key><LastModified>" + kTime +
            "</LastModified><Size>" + std::to_string(bytes.size()) + "</Size></Contents>";
  }
  return {200, {}, body + "</ListBucketResult>"};
}

StubAnswer S3Stub::Delete(const StubRequest& request) {
  const Result<XmlElement> root = ParseXml(request.body);
  if (!root.ok() || Header(request, "content-md5").empty()) return Refusal(400, "MalformedXML");
  for (const XmlElement& one : root->children) objects_.erase(one.TextOf("Key"));
  return {200, {}, "<DeleteResult/>"};
}

StubAnswer S3Stub::OfUpload(const StubRequest& request) {
  if (request.operation == "CreateUpload") {
    const std::string id = "upload-" + std::to_string(++last_id_);
    uploads_[id] = {request.key, Header(request, kMark) + Header(request, kGoogleMark), {}};
    return {200, {}, "<InitiateMultipartUploadResult><UploadId>" + id +
                         "</UploadId></InitiateMultipartUploadResult>"};
  }
  if (request.operation == "ListUploads") {
    std::string body = "<ListMultipartUploadsResult>";
    for (const auto& [id, upload] : uploads_) {
      body += "<Upload><Key>" + XmlEscaped(upload.key) + "</Key><UploadId>" + id +
              "</UploadId><Initiated>" + kTime + "</Initiated></Upload>";
    }
    return {200, {}, body + "</ListMultipartUploadsResult>"};
  }
  const auto named = request.query.find("uploadId");
  const std::string id = named == request.query.end() ? "" : named->second;
  const auto found = uploads_.find(id);
  if (found == uploads_.end()) return Refusal(404, "NoSuchUpload");
  if (request.operation == "Abort") {
    uploads_.erase(found);
    return {204, {}, ""};
  }
  if (request.operation == "Complete") return Complete(request, id);
  if (request.operation == "ListParts") return ListParts(request, found->second);
  const int number = std::stoi(request.query.at("partNumber"));
  found->second.parts[number] = request.body;
  return {200, {{"ETag", "\"part-" + std::to_string(number) + "\""}}, ""};
}

StubAnswer S3Stub::ListParts(const StubRequest& request, const Upload& upload) {
  const auto marker = request.query.find("part-number-marker");
  const int after = marker == request.query.end() ? 0 : std::stoi(marker->second);
  int left = std::stoi(request.query.at("max-parts"));
  std::string body = "<ListPartsResult>", next;
  for (auto part = upload.parts.upper_bound(after); part != upload.parts.end(); ++part) {
    if (left-- == 0) {
      body += "<IsTruncated>true</IsTruncated><NextPartNumberMarker>" + next +
              "</NextPartNumberMarker>";
      break;
    }
    next = std::to_string(part->first);
    const std::string minutes = std::to_string(100 + StubMinutesOfPart(part->first)).substr(1);
    body += "<Part><PartNumber>" + next + "</PartNumber><LastModified>2026-11-25T10:" + minutes +
            ":00.000Z</LastModified></Part>";
  }
  return {200, {}, body + "</ListPartsResult>"};
}

StubAnswer S3Stub::Complete(const StubRequest& request, const std::string& id) {
  Upload& upload = uploads_[id];
  const Result<XmlElement> root = ParseXml(request.body);
  if (!root.ok() || root->children.size() != upload.parts.size()) {
    return Refusal(400, "InvalidPart");
  }
  std::string whole;
  for (const XmlElement& one : root->children) {
    const std::string& number = one.TextOf("PartNumber");
    if (one.TextOf("ETag") != "\"part-" + number + "\"") return Refusal(400, "InvalidPart");
    whole += upload.parts[std::stoi(number)];
  }
  objects_[upload.key] = whole;
  marks_[upload.key] = upload.mark;
  uploads_.erase(id);
  return {200, {}, "<CompleteMultipartUploadResult/>"};
}

}  // namespace keel
