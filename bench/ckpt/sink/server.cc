// Blocking sockets: a body is received where it stays, and sent from there.
#include "bench/ckpt/sink/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <tuple>

#include "base/file_helpers.h"
#include "base/json.h"
#include "base/text.h"
#include "bench/ckpt/sink/wire.h"
#include "store/s3/crc32c.h"
#include "store/s3/hashes.h"
#include "store/s3/percent.h"
#include "store/s3/xml.h"

namespace keel {
namespace {

constexpr const char* kItself = "_sink";
constexpr const char* kMark = "x-amz-meta-keel-upload";
constexpr const char* kTime = "2026-11-25T10:00:00.000Z";
constexpr const char* kDate = "Last-Modified: Wed, 25 Nov 2026 10:00:00 GMT\r\n";
constexpr size_t kSummedMax = size_t{64} << 10;
constexpr size_t kPieceMax = size_t{256} << 10;

SinkAnswer Refusal(int status, const std::string& code) {
  return {status, "",
          "<Error><Code>" + code + "</Code><Message>the sink says so</Message></Error>"};
}

bool HasWrongSum(const SinkRequest& request) {
  if (request.body.size() > kSummedMax) return false;
  const auto body = BytesOf(request.body);
  const std::string crc = request.Header("x-amz-checksum-crc32c");
  const std::string md5 = request.Header("content-md5");
  return (!crc.empty() && crc != Crc32cBase64(body)) || (!md5.empty() && md5 != Md5Base64(body));
}

}  // namespace

std::string SinkRequest::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

SinkServer::SinkServer(double upload_rate, double download_rate)
    : up_(upload_rate), down_(download_rate) {}

Result<uint16_t> SinkServer::Listen(uint16_t port) {
  listener_ = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(listener_.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener_.number(), any, size) != 0 || listen(listener_.number(), 128) != 0 ||
      getsockname(listener_.number(), any, &size) != 0) {
    return Error{Code::kIo, "listening at port " + std::to_string(port) + " of 127.0.0.1: " +
                                strerror(errno)};
  }
  return ntohs(address.sin_port);
}

void SinkServer::Run() {
  for (;;) {
    Fd connection(accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection.valid()) {
      RealClock().SleepFor(std::chrono::milliseconds(10));   // descriptors may be short
      continue;
    }
    const int on = 1;
    setsockopt(connection.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    std::thread([this, number = connection.Release()] { Serve(Fd(number)); }).detach();
  }
}

void SinkServer::Serve(Fd connection) {
  SinkReader reader(connection.number());
  for (;;) {
    std::optional<SinkRequest> request =
        reader.Next(kPieceMax, [this](uint64_t bytes) { up_.Carry(bytes); });
    if (!request) return;
    const bool is_itself = request->key == kItself;
    if (!is_itself) {
      ++requests_;
      received_ += request->body.size();
    }
    const SinkAnswer answer = is_itself ? OfItself(*request) : Answer(*request);
    uint64_t length = answer.text.size();
    for (const std::string_view range : answer.ranges) length += range.size();
    std::string head = "HTTP/1.1 " + std::to_string(answer.status) + " -\r\n" + answer.headers +
                       "Content-Length: " + std::to_string(answer.length.value_or(length)) +
                       "\r\n\r\n";
    const bool has_body = request->method != "HEAD";
    if (has_body) head += answer.text;
    if (!SendWhole(connection.number(), head)) return;
    for (const std::string_view range : answer.ranges) {
      for (size_t at = 0; has_body && at < range.size(); at += kPieceMax) {
        const std::string_view piece = range.substr(at, kPieceMax);
        if (!SendWhole(connection.number(), piece)) return;
        sent_ += piece.size();
        down_.Carry(piece.size());
      }
    }
  }
}

SinkAnswer SinkServer::OfItself(const SinkRequest& request) {
  const Json counted = {{"requests", requests_.load()},
                        {"received", received_.load()},
                        {"sent", sent_.load()}};
  if (request.method == "DELETE") requests_ = received_ = sent_ = 0;
  return {200, "", DumpJson(counted) + "\n"};
}

SinkAnswer SinkServer::Answer(SinkRequest& request) {
  const std::string& method = request.method;
  if (method == "PUT") return Put(request);
  if (method == "HEAD" || (method == "GET" && !request.key.empty())) return Read(request);
  if (method == "GET") return List(request);
  if (method == "DELETE" && !request.Asks("uploadId")) {
    objects_.Remove(request.key);
    return {204, "", ""};
  }
  if (method == "POST" && request.Asks("delete")) {
    const Result<XmlElement> root = ParseXml(request.body);
    if (!root.ok()) return Refusal(400, "MalformedXML");
    for (const XmlElement& one : root->children) objects_.Remove(one.TextOf("Key"));
    return {200, "", "<DeleteResult/>"};
  }
  return OfUpload(request);
}

SinkAnswer SinkServer::Put(SinkRequest& request) {
  if (HasWrongSum(request)) return Refusal(400, "BadDigest");
  if (request.Asks("partNumber")) {
    const std::string number = request.query["partNumber"];
    const Result<int64_t> which = ParseInteger(number);
    const bool is_there = which.ok() && objects_.AddPart(request.query["uploadId"],
                                                         static_cast<int>(*which),
                                                         std::move(request.body));
    if (!is_there) return Refusal(404, "NoSuchUpload");
    return {200, "ETag: \"part-" + number + "\"\r\n", ""};
  }
  SinkObject object;
  const std::string source = PercentDecoded(request.Header("x-amz-copy-source"));
  if (!source.empty()) {
    const size_t slash = source.find('/', source.starts_with('/') ? 1 : 0);
    const auto found = objects_.Get(source.substr(std::min(slash, source.size() - 1) + 1));
    if (!found) return Refusal(404, "NoSuchKey");
    object = *found;
  } else {
    object.Add(std::make_shared<const std::string>(std::move(request.body)));
  }
  if (!objects_.Put(request.key, std::move(object), request.Header("if-none-match") == "*")) {
    return Refusal(412, "PreconditionFailed");
  }
  if (source.empty()) return {200, "ETag: \"whole\"\r\n", ""};
  return {200, "", "<CopyObjectResult><ETag>\"whole\"</ETag></CopyObjectResult>"};
}

SinkAnswer SinkServer::Read(const SinkRequest& request) const {
  std::optional<SinkObject> object = objects_.Get(request.key);
  if (!object) return Refusal(404, "NoSuchKey");
  SinkAnswer answer{200, std::string(kDate) + "ETag: \"whole\"\r\nAccept-Ranges: bytes\r\n", ""};
  if (!object->mark.empty()) answer.headers += std::string(kMark) + ": " + object->mark + "\r\n";
  uint64_t first = 0;
  uint64_t count = object->bytes;
  if (const auto range = ParseSinkRange(request.Header("range"), object->bytes)) {
    std::tie(first, count) = *range;
    if (count == 0) return Refusal(416, "InvalidRange");
    answer.status = 206;
    answer.headers += "Content-Range: bytes " + std::to_string(first) + "-" +
                      std::to_string(first + count - 1) + "/" + std::to_string(object->bytes) +
                      "\r\n";
  }
  answer.object = std::move(object);
  answer.ranges = answer.object->Range(first, count);
  answer.length = count;
  return answer;
}

SinkAnswer SinkServer::List(const SinkRequest& request) const {
  const auto asked = [&](const char* name) {
    const auto found = request.query.find(name);
    return found == request.query.end() ? std::string() : found->second;
  };
  const std::string prefix = asked("prefix");
  if (request.Asks("uploads")) {
    std::string body = "<ListMultipartUploadsResult>";
    for (const auto& [key, id] : objects_.Uploads()) {
      if (!key.starts_with(prefix)) continue;
      body += "<Upload><Key>" + XmlEscaped(key) + "</Key><UploadId>" + id +
              "</UploadId><Initiated>" + kTime + "</Initiated></Upload>";
    }
    return {200, "", body + "</ListMultipartUploadsResult>"};
  }
  if (!request.Asks("list-type")) return Refusal(404, "NotImplemented");
  const std::string delimiter = asked("delimiter");
  std::string body = "<ListBucketResult><IsTruncated>false</IsTruncated>";
  std::string last;
  for (const auto& [key, bytes] : objects_.List(prefix)) {
    const size_t end = delimiter.empty() ? std::string::npos : key.find(delimiter, prefix.size());
    if (end == std::string::npos) {
      body += "<Contents><Key>" + XmlEscaped(key) + "</Key><LastModified>" + kTime +
              "</LastModified><ETag>\"whole\"</ETag><Size>" + std::to_string(bytes) +
              "</Size><StorageClass>STANDARD</StorageClass></Contents>";
    } else if (std::string common = key.substr(0, end + delimiter.size()); common != last) {
      last = std::move(common);
      body += "<CommonPrefixes><Prefix>" + XmlEscaped(last) + "</Prefix></CommonPrefixes>";
    }
  }
  return {200, "", body + "</ListBucketResult>"};
}

SinkAnswer SinkServer::OfUpload(const SinkRequest& request) {
  if (request.method == "POST" && request.Asks("uploads")) {
    return {200, "", "<InitiateMultipartUploadResult><Key>" + XmlEscaped(request.key) +
                         "</Key><UploadId>" +
                         objects_.BeginUpload(request.key, request.Header(kMark)) +
                         "</UploadId></InitiateMultipartUploadResult>"};
  }
  const auto named = request.query.find("uploadId");
  if (named == request.query.end()) return Refusal(404, "NotImplemented");
  if (request.method == "DELETE") {
    objects_.Abort(named->second);
    return {204, "", ""};
  }
  if (!objects_.Complete(named->second)) return Refusal(404, "NoSuchUpload");
  return {200, "", "<CompleteMultipartUploadResult><ETag>\"whole\"</ETag>"
                   "</CompleteMultipartUploadResult>"};
}

}  // namespace keel
