// Element by element.
#include "store/s3/answers.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "store/s3/percent.h"
#include "store/s3/times.h"
#include "store/s3/xml.h"

namespace keel {
namespace {

Error NotExpected(const std::string& expected, const std::string& found) {
  return {Code::kCorrupt, "its answer is a <" + found + ">, not a <" + expected + ">"};
}

Result<XmlElement> Document(std::string_view body, const std::string& name) {
  KEEL_TRY_ASSIGN(XmlElement root, ParseXml(body));
  if (root.name != name) return NotExpected(name, root.name);
  return root;
}

// Keys are encoded where the store says so: not all do, though we ask for it.
class Keys {
 public:
  explicit Keys(const XmlElement& root) : are_encoded_(root.TextOf("EncodingType") == "url") {}
  std::string Read(const std::string& text) const {
    return are_encoded_ ? PercentDecoded(text) : text;
  }

 private:
  const bool are_encoded_;
};

std::optional<uint64_t> ParseUnsigned(std::string_view text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace

S3ErrorBody ParseS3Error(std::string_view body) {
  const Result<XmlElement> root = ParseXml(body);
  if (!root.ok() || root->name != "Error") return {};
  const std::string& code = root->TextOf("Code");
  return {code.empty() ? "Error" : code, root->TextOf("Message")};
}

Result<S3ListPage> ParseListPage(std::string_view body) {
  KEEL_TRY_ASSIGN(const XmlElement root, Document(body, "ListBucketResult"));
  const Keys keys(root);
  S3ListPage page;
  for (const XmlElement& one : root.children) {
    if (one.name == "CommonPrefixes") {
      page.listing.prefixes.push_back(keys.Read(one.TextOf("Prefix")));
    }
    if (one.name != "Contents") continue;
    const auto bytes = ParseUnsigned(one.TextOf("Size"));
    const auto changed = ParseIsoTime(one.TextOf("LastModified"));
    ObjectInfo info{keys.Read(one.TextOf("Key")), bytes.value_or(0), changed.value_or(0)};
    if (info.key.empty() || !bytes || !changed) {
      return Error{Code::kCorrupt, "its list has an object without a name, size or time"};
    }
    page.listing.objects.push_back(std::move(info));
  }
  if (root.TextOf("IsTruncated") == "true") {
    page.next = root.TextOf("NextContinuationToken");
    if (page.next.empty()) {
      return Error{Code::kCorrupt, "its list goes on, but it does not say where"};
    }
  }
  return page;
}

Result<S3UploadsPage> ParseUploadsPage(std::string_view body) {
  KEEL_TRY_ASSIGN(const XmlElement root, Document(body, "ListMultipartUploadsResult"));
  const Keys keys(root);
  S3UploadsPage page;
  for (const XmlElement& one : root.children) {
    if (one.name != "Upload") continue;
    UnfinishedObject upload{keys.Read(one.TextOf("Key")), one.TextOf("UploadId"),
                            ParseIsoTime(one.TextOf("Initiated")).value_or(0)};
    if (upload.key.empty() || upload.id.empty()) {
      return Error{Code::kCorrupt, "its list has an upload without a key or an id"};
    }
    page.uploads.push_back(std::move(upload));
  }
  if (root.TextOf("IsTruncated") == "true") {
    page.next_key = keys.Read(root.TextOf("NextKeyMarker"));
    page.next_id = root.TextOf("NextUploadIdMarker");
    // SeaweedFS goes by ids alone.
    if (page.next_key.empty() && page.next_id.empty()) {
      return Error{Code::kCorrupt, "its list goes on, but it does not say where"};
    }
  }
  return page;
}

Result<S3PartsPage> ParsePartsPage(std::string_view body) {
  KEEL_TRY_ASSIGN(const XmlElement root, Document(body, "ListPartsResult"));
  S3PartsPage page;
  for (const XmlElement& one : root.children) {
    if (one.name != "Part") continue;
    const auto written = ParseIsoTime(one.TextOf("LastModified"));
    if (!written) return Error{Code::kCorrupt, "its list has a part without a time"};
    page.newest_at_ns = std::max(page.newest_at_ns, *written);
  }
  if (root.TextOf("IsTruncated") == "true") {
    page.next = root.TextOf("NextPartNumberMarker");
    if (page.next.empty()) {
      return Error{Code::kCorrupt, "its list goes on, but it does not say where"};
    }
  }
  return page;
}

Result<std::string> ParseUploadId(std::string_view body) {
  KEEL_TRY_ASSIGN(const XmlElement root, Document(body, "InitiateMultipartUploadResult"));
  if (root.TextOf("UploadId").empty()) return Error{Code::kCorrupt, "its answer has no upload id"};
  return root.TextOf("UploadId");
}

Result<std::vector<S3DeleteFailure>> ParseDeleteFailures(std::string_view body) {
  KEEL_TRY_ASSIGN(const XmlElement root, Document(body, "DeleteResult"));
  std::vector<S3DeleteFailure> failures;
  for (const XmlElement& one : root.children) {
    if (one.name != "Error" || one.TextOf("Code") == "NoSuchKey") continue;
    failures.push_back({one.TextOf("Key"), one.TextOf("Code"), one.TextOf("Message")});
  }
  return failures;
}

// Google's has it below <Action>.
Result<bool> EndsUnfinished(std::string_view body) {
  constexpr std::string_view kAction = "AbortIncompleteMultipartUpload";
  KEEL_TRY_ASSIGN(const XmlElement root, Document(body, "LifecycleConfiguration"));
  return std::any_of(root.children.begin(), root.children.end(), [&](const XmlElement& rule) {
    const XmlElement* const action = rule.Find("Action");
    const bool has_it = rule.Find(kAction) != nullptr ||
                        (action != nullptr && action->Find(kAction) != nullptr);
    return rule.name == "Rule" && has_it && rule.TextOf("Status") != "Disabled";
  });
}

Result<bool> KeepsVersions(std::string_view body) {
  KEEL_TRY_ASSIGN(const XmlElement root, Document(body, "VersioningConfiguration"));
  return root.TextOf("Status") == "Enabled";
}

Status CheckCompleted(std::string_view body) {
  const Result<XmlElement> root = Document(body, "CompleteMultipartUploadResult");
  return root.ok() ? Ok() : Status(root.error());
}

std::string CompleteBody(const std::vector<S3Part>& parts) {
  std::string body = R"(<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">)";
  for (const S3Part& part : parts) {
    body += "<Part><PartNumber>" + std::to_string(part.number) + "</PartNumber><ETag>" +
            XmlEscaped(part.etag) + "</ETag>";
    if (!part.crc.empty()) body += "<ChecksumCRC32C>" + part.crc + "</ChecksumCRC32C>";
    body += "</Part>";
  }
  return body + "</CompleteMultipartUpload>";
}

std::string DeleteBody(const std::vector<std::string>& keys) {
  std::string body = R"(<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">)";
  for (const std::string& key : keys) {
    body += "<Object><Key>" + XmlEscaped(key) + "</Key></Object>";
  }
  return body + "<Quiet>true</Quiet></Delete>";
}

std::optional<ContentRange> ParseContentRange(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  const size_t dash = text.find('-');
  const size_t slash = text.find('/');
  if (dash == text.npos || slash == text.npos || slash < dash) return std::nullopt;
  const auto first = ParseUnsigned(text.substr(0, dash));
  const auto last = ParseUnsigned(text.substr(dash + 1, slash - dash - 1));
  const auto total = ParseUnsigned(text.substr(slash + 1));
  if (!first || !last || !total || *last < *first || *last >= *total) return std::nullopt;
  return ContentRange{*first, *last, *total};
}

}  // namespace keel
