// The JSON of etcd's gateway: questions are made and answers are read here, and nowhere else.
// Promises   keys and values cross as base64 and 64-bit numbers as strings, as the gateway wants
//            it; an answer's absent number is 0, as protobuf means it.
// Does not   send anything (store/etcd/client.h).
// Threads    any. Errors: kCorrupt (an answer that is none of etcd's).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace keel {

// The largest number of operations in a transaction that etcd takes unless it is told otherwise.
inline constexpr size_t kEtcdTxnOperationsMax = 128;

// All keys from `first` on that are before `end`; an empty `end`: `first` alone.
struct EtcdRange {
  std::string first;
  std::string end = {};

  // All keys that begin so.
  static EtcdRange Prefix(const std::string& prefix);
};

struct EtcdKeyValue {
  std::string key;
  std::string value;
  int64_t create_revision = 0;
  int64_t mod_revision = 0;
  int64_t lease = 0;   // that it hangs on; 0: none
};

// A range as a question of its own.
Json EtcdRangeQuestion(const EtcdRange& range);
// Operations of a transaction. Lease 0: none.
Json EtcdRead(const EtcdRange& range);
Json EtcdPut(const std::string& key, std::string_view value, int64_t lease);
Json EtcdDelete(const EtcdRange& range);

// What a transaction demands of a key. A key that is absent has the revisions 0.
Json EtcdModRevisionIs(const std::string& key, int64_t revision);
Json EtcdCreateRevisionIs(const std::string& key, int64_t revision);
Json EtcdExists(const std::string& key);
Json EtcdValueIs(const std::string& key, std::string_view value);

// All compares hold: `then` happens, else `otherwise`.
struct EtcdTxn {
  std::vector<Json> compares = {};
  std::vector<Json> then = {};
  std::vector<Json> otherwise = {};

  Json Question() const;
};

// The answer to a transaction, or to a range (`results` has one element then).
struct EtcdReply {
  int64_t revision = 0;    // of the whole cluster when it answered
  bool succeeded = false;  // all compares held
  // What each range of the transaction found; a put or a delete has an empty list.
  std::vector<std::vector<EtcdKeyValue>> results;
};
Result<EtcdReply> EtcdTxnReply(const Json& answer);
Result<EtcdReply> EtcdRangeReply(const Json& answer);

Result<EtcdKeyValue> EtcdKeyValueOf(const Json& kv);
// The member's value; 0 where it is absent.
Result<int64_t> EtcdInt64(const Json& object, const char* name);
// The revision in the answer's header.
Result<int64_t> EtcdRevision(const Json& answer);

}  // namespace keel
