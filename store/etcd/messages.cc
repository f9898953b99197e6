// Questions to the gateway and the reading of its answers.
#include "store/etcd/messages.h"

#include "base/base64.h"
#include "base/text.h"

namespace keel {
namespace {

Error NotEtcds(const std::string& what) {
  return {Code::kCorrupt, "an answer is not etcd's: " + what};
}

Json Compare(const char* target, const std::string& key) {
  return {{"target", target}, {"key", Base64Of(key)}};
}

// The bytes of a base64 member; an absent one is empty.
Result<std::string> BytesField(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return std::string();
  if (!found->is_string()) return NotEtcds(std::string(name) + " is no string");
  return BytesOfBase64(found->get_ref<const std::string&>());
}

Result<std::vector<EtcdKeyValue>> KeyValues(const Json& range) {
  std::vector<EtcdKeyValue> found;
  const auto kvs = range.find("kvs");
  if (kvs == range.end()) return found;
  if (!kvs->is_array()) return NotEtcds("kvs is no list");
  for (const Json& kv : *kvs) {
    KEEL_TRY_ASSIGN(EtcdKeyValue one, EtcdKeyValueOf(kv));
    found.push_back(std::move(one));
  }
  return found;
}

}  // namespace

EtcdRange EtcdRange::Prefix(const std::string& prefix) {
  std::string end = prefix;
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  if (end.empty()) return {prefix.empty() ? std::string(1, '\0') : prefix, std::string(1, '\0')};
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return {prefix, end};
}

Json EtcdRangeQuestion(const EtcdRange& range) {
  Json request = {{"key", Base64Of(range.first)}};
  if (!range.end.empty()) request["range_end"] = Base64Of(range.end);
  return request;
}

Json EtcdRead(const EtcdRange& range) { return {{"request_range", EtcdRangeQuestion(range)}}; }

Json EtcdPut(const std::string& key, std::string_view value, int64_t lease) {
  Json put = {{"key", Base64Of(key)}, {"value", Base64Of(value)}};
  if (lease != 0) put["lease"] = std::to_string(lease);
  return {{"request_put", std::move(put)}};
}

Json EtcdDelete(const EtcdRange& range) {
  return {{"request_delete_range", EtcdRangeQuestion(range)}};
}

Json EtcdModRevisionIs(const std::string& key, int64_t revision) {
  Json compare = Compare("MOD", key);
  compare["mod_revision"] = std::to_string(revision);
  return compare;
}

Json EtcdCreateRevisionIs(const std::string& key, int64_t revision) {
  Json compare = Compare("CREATE", key);
  compare["create_revision"] = std::to_string(revision);
  return compare;
}

Json EtcdExists(const std::string& key) {
  Json compare = EtcdCreateRevisionIs(key, 0);
  compare["result"] = "GREATER";
  return compare;
}

Json EtcdValueIs(const std::string& key, std::string_view value) {
  Json compare = Compare("VALUE", key);
  compare["value"] = Base64Of(value);
  return compare;
}

Json EtcdTxn::Question() const {
  return {{"compare", compares}, {"success", then}, {"failure", otherwise}};
}

Result<EtcdReply> EtcdTxnReply(const Json& answer) {
  EtcdReply reply;
  KEEL_TRY_ASSIGN(reply.revision, EtcdRevision(answer));
  KEEL_TRY_ASSIGN(reply.succeeded, FieldOr(answer, "succeeded", false));
  const auto responses = answer.find("responses");
  if (responses == answer.end()) return reply;
  if (!responses->is_array()) return NotEtcds("responses is no list");
  for (const Json& response : *responses) {
    const auto range = response.is_object() ? response.find("response_range") : response.end();
    if (range == response.end()) {
      reply.results.emplace_back();
      continue;
    }
    KEEL_TRY_ASSIGN(std::vector<EtcdKeyValue> found, KeyValues(*range));
    reply.results.push_back(std::move(found));
  }
  return reply;
}

Result<EtcdReply> EtcdRangeReply(const Json& answer) {
  EtcdReply reply;
  KEEL_TRY_ASSIGN(reply.revision, EtcdRevision(answer));
  KEEL_TRY_ASSIGN(std::vector<EtcdKeyValue> found, KeyValues(answer));
  reply.results.push_back(std::move(found));
  return reply;
}

Result<EtcdKeyValue> EtcdKeyValueOf(const Json& kv) {
  if (!kv.is_object()) return NotEtcds("a key with its value is no object");
  EtcdKeyValue one;
  KEEL_TRY_ASSIGN(one.key, BytesField(kv, "key"));
  KEEL_TRY_ASSIGN(one.value, BytesField(kv, "value"));
  KEEL_TRY_ASSIGN(one.create_revision, EtcdInt64(kv, "create_revision"));
  KEEL_TRY_ASSIGN(one.mod_revision, EtcdInt64(kv, "mod_revision"));
  KEEL_TRY_ASSIGN(one.lease, EtcdInt64(kv, "lease"));
  return one;
}

Result<int64_t> EtcdInt64(const Json& object, const char* name) {
  if (!object.is_object()) return NotEtcds("it is no object");
  const auto found = object.find(name);
  if (found == object.end()) return 0;
  if (found->is_number_integer()) return found->get<int64_t>();
  if (!found->is_string()) return NotEtcds(std::string(name) + " is no number");
  Result<int64_t> number = ParseInteger(found->get_ref<const std::string&>());
  if (!number.ok()) return NotEtcds(std::string(name) + " is no number");
  return number;
}

Result<int64_t> EtcdRevision(const Json& answer) {
  if (!answer.is_object()) return NotEtcds("it is no object");
  const auto header = answer.find("header");
  if (header == answer.end()) return NotEtcds("it has no header");
  return EtcdInt64(*header, "revision");
}

}  // namespace keel
