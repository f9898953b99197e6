// Large values, in parts.
#include "store/etcd/values.h"

#include <algorithm>

#include "base/text.h"

namespace keel {
namespace {

// A reference: this, then "<id> <number of parts> <bytes>".
constexpr std::string_view kReference = "\x01keel-parts-1 ";
constexpr size_t kIdDigits = 16;
constexpr size_t kPartDigits = 4;

std::string PartKey(const std::string& folder, const std::string& id, size_t index) {
  std::string number = std::to_string(index);
  number.insert(0, kPartDigits - std::min(kPartDigits, number.size()), '0');
  return folder + id + "/" + number;
}

}  // namespace

EtcdValues::EtcdValues(EtcdClient& client, EtcdKeys keys, int64_t lease)
    : client_(client), keys_(std::move(keys)), lease_(lease), random_(EntropySeed()) {}

bool EtcdValues::IsPlain(std::string_view value) {
  return value.size() <= kEtcdPartBytes && !value.starts_with(kReference);
}

Result<EtcdValues::Prepared> EtcdValues::Prepare(const std::string& key, const std::string& value,
                                                 Duration limit) {
  if (IsPlain(value)) return Prepared{value};
  const TimePoint end = RealClock().Monotonic() + limit;
  Prepared prepared;
  prepared.id = RandomId(random_, kIdDigits);
  for (size_t at = 0; at < value.size(); at += kEtcdPartBytes) {
    const std::string part = PartKey(keys_.Parts(key), prepared.id, prepared.parts.size());
    EtcdTxn txn;
    txn.then = {EtcdPut(part, std::string_view(value).substr(at, kEtcdPartBytes), lease_)};
    const Duration left = std::max(Duration::zero(), end - RealClock().Monotonic());
    KEEL_TRY(client_.Ask("/v3/kv/txn", txn.Question(), left));
    prepared.parts.push_back(part);
  }
  prepared.held = std::string(kReference) + prepared.id + " " +
                  std::to_string(prepared.parts.size()) + " " + std::to_string(value.size());
  return prepared;
}

void EtcdValues::AddSet(const std::string& key, const Prepared& prepared, EtcdTxn& txn) const {
  const std::string folder = keys_.Parts(key);
  // Another writer's transaction may have removed our parts meanwhile.
  for (const std::string& part : prepared.parts) txn.compares.push_back(EtcdExists(part));
  if (prepared.id.empty()) {
    txn.then.push_back(EtcdDelete(EtcdRange::Prefix(folder)));
  } else {
    const EtcdRange ours = EtcdRange::Prefix(folder + prepared.id + "/");
    txn.then.push_back(EtcdDelete({folder, ours.first}));
    txn.then.push_back(EtcdDelete({ours.end, EtcdRange::Prefix(folder).end}));
  }
  txn.then.push_back(EtcdPut(keys_.Data(key), prepared.held, lease_));
}

void EtcdValues::AddDelete(const std::string& key, EtcdTxn& txn) const {
  txn.then.push_back(EtcdDelete(EtcdRange::Prefix(keys_.Parts(key))));
  txn.then.push_back(EtcdDelete({keys_.Data(key)}));
}

Result<std::string> EtcdValues::Read(const std::string& key, const std::string& held,
                                     int64_t revision, Duration limit) {
  if (!held.starts_with(kReference)) return held;
  const Error broken{Code::kCorrupt, "the parts of the large value of store key '" + key +
                                         "' do not fit together; set it anew"};
  const std::vector<std::string> words = SplitList(held.substr(kReference.size()), ' ');
  if (words.size() != 3) return broken;
  const Result<int64_t> count = ParseInteger(words[1]);
  const Result<int64_t> bytes = ParseInteger(words[2]);
  if (!count.ok() || !bytes.ok()) return broken;
  const TimePoint end = RealClock().Monotonic() + limit;
  std::string value;
  for (int64_t i = 0; i < *count; ++i) {
    Json question =
        EtcdRangeQuestion({PartKey(keys_.Parts(key), words[0], static_cast<size_t>(i))});
    question["revision"] = std::to_string(revision);
    const Duration left = std::max(Duration::zero(), end - RealClock().Monotonic());
    KEEL_TRY_ASSIGN(const Json answer, client_.Ask("/v3/kv/range", question, left));
    KEEL_TRY_ASSIGN(const EtcdReply reply, EtcdRangeReply(answer));
    if (reply.results[0].empty()) return broken;
    value += reply.results[0][0].value;
  }
  if (static_cast<int64_t>(value.size()) != *bytes) return broken;
  return value;
}

}  // namespace keel
