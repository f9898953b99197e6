// What the store says in XML, read, and what it is told in XML, written.
// Promises   an answer that is not what was asked for is an error, never an empty list.
// Threads    any. Errors: kCorrupt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/objects.h"
#include "base/result.h"

namespace keel {

// The error in a body; empty where there is none.
struct S3ErrorBody {
  std::string code;
  std::string message;
};
S3ErrorBody ParseS3Error(std::string_view body);

// One answer of ListObjectsV2.
struct S3ListPage {
  ObjectListing listing;
  std::string next;      // empty: it was the last
};
Result<S3ListPage> ParseListPage(std::string_view body);

// One answer of ListMultipartUploads.
struct S3UploadsPage {
  std::vector<UnfinishedObject> uploads;
  std::string next_key;  // both empty: it was the last
  std::string next_id;
};
Result<S3UploadsPage> ParseUploadsPage(std::string_view body);

// One answer of ListParts.
struct S3PartsPage {
  int64_t newest_at_ns = 0;   // of its parts; 0: there is none
  std::string next;           // empty: it was the last
};
Result<S3PartsPage> ParsePartsPage(std::string_view body);

Result<std::string> ParseUploadId(std::string_view body);

struct S3DeleteFailure {
  std::string key;
  std::string code;
  std::string message;
};
Result<std::vector<S3DeleteFailure>> ParseDeleteFailures(std::string_view body);

// Of a bucket's lifecycle rules: whether one that is on ends uploads that nobody finishes.
Result<bool> EndsUnfinished(std::string_view body);
// Of a bucket's versioning: whether it is on.
Result<bool> KeepsVersions(std::string_view body);

// Whether a body says that an upload was completed.
Status CheckCompleted(std::string_view body);

struct S3Part {
  int number = 0;
  std::string etag;
  std::string crc;       // in base64; empty: none was sent
};
std::string CompleteBody(const std::vector<S3Part>& parts);
std::string DeleteBody(const std::vector<std::string>& keys);

// "bytes 10-19/100".
struct ContentRange {
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t total = 0;
};
std::optional<ContentRange> ParseContentRange(std::string_view text);

}  // namespace keel
