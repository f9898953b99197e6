// The three steps of store/etcd/writer.h.
#include "store/etcd/writer.h"

#include <algorithm>
#include <utility>

namespace keel {

EtcdWriter::EtcdWriter(EtcdClient& client, std::string key, int64_t lease,
                       std::optional<EtcdFence> fence)
    : client_(client), key_(std::move(key)), lease_(lease), fence_(std::move(fence)) {}

Result<EtcdReply> EtcdWriter::Write(const EtcdTxn& txn, Duration limit) {
  const TimePoint end = RealClock().Monotonic() + limit;
  const auto left = [&] {
    return std::max(Duration::zero(), end - RealClock().Monotonic());
  };
  if (!unsettled_.empty()) KEEL_TRY(WasApplied(unsettled_, end));
  for (;;) {
    const std::string note = "op " + std::to_string(++notes_);
    const Json question = Complete(txn, note).Question();
    const Result<std::optional<Json>> answer = client_.AskOnce("/v3/kv/txn", question, left());
    if (!answer.ok()) return Explained(answer.error());
    if (answer->has_value()) {
      KEEL_TRY_ASSIGN(EtcdReply reply, EtcdTxnReply(**answer));
      if (reply.succeeded) revision_ = reply.revision;
      return WithoutOwn(std::move(reply));
    }
    unsettled_ = note;
    KEEL_TRY_ASSIGN(const bool was_applied, WasApplied(note, end));
    if (was_applied) return EtcdReply{revision_, true, {}};
  }
}

// The transaction with our own demands and the note that it leaves in our key.
EtcdTxn EtcdWriter::Complete(const EtcdTxn& txn, const std::string& note) const {
  EtcdTxn whole = txn;
  whole.compares.push_back(EtcdModRevisionIs(key_, revision_));
  whole.then.push_back(EtcdPut(key_, note, lease_));
  whole.otherwise.push_back(EtcdRead({key_}));
  if (fence_) {
    whole.compares.push_back(EtcdCreateRevisionIs(fence_->key, fence_->create_revision));
    whole.otherwise.push_back(EtcdRead({fence_->key}));
  }
  return whole;
}

// Makes sure that the transaction with this note will not be applied from now on, and tells whether
// it was. Asking this several times does no harm.
Result<bool> EtcdWriter::WasApplied(const std::string& note, TimePoint end) {
  EtcdTxn fence;
  const std::string fence_note = "fence " + std::to_string(++notes_);
  fence.compares = {EtcdModRevisionIs(key_, revision_)};
  fence.then = {EtcdPut(key_, fence_note, lease_)};
  fence.otherwise = {EtcdRead({key_})};
  const Duration left = std::max(Duration::zero(), end - RealClock().Monotonic());
  const Result<Json> answer = client_.Ask("/v3/kv/txn", fence.Question(), left);
  if (!answer.ok()) {
    Error why =
        Explained(answer.error()).Doing("finding out what became of a write without an answer");
    if (why.code != Code::kStaleEpoch) why.code = Code::kTimeout;   // it may have been applied
    return why;
  }
  KEEL_TRY_ASSIGN(const EtcdReply reply, EtcdTxnReply(*answer));
  if (reply.succeeded) {
    revision_ = reply.revision;
    unsettled_.clear();
    return false;
  }
  if (reply.results.size() != 1 || reply.results[0].empty()) return LeaseIsOver();
  const EtcdKeyValue& own = reply.results[0][0];
  revision_ = own.mod_revision;
  unsettled_.clear();
  return own.value == note;
}

// Takes the results of our own reads off, which tell why the compares did not hold.
Result<EtcdReply> EtcdWriter::WithoutOwn(EtcdReply reply) const {
  if (reply.succeeded) {
    reply.results.clear();
    return reply;
  }
  const size_t own = fence_ ? 2 : 1;
  if (reply.results.size() < own) {
    return Error{Code::kCorrupt, "an answer to a transaction lacks results"};
  }
  const size_t first = reply.results.size() - own;
  if (fence_) {
    const std::vector<EtcdKeyValue>& claim = reply.results[first + 1];
    if (claim.empty() || claim[0].create_revision != fence_->create_revision) {
      return Error{Code::kStaleEpoch,
                   "nothing is written to " + EtcdClusterText(client_.access()) + ": the claim '" +
                       fence_->key + "' is " + (claim.empty() ? "gone" : "another's") +
                       "; another host may have taken over, follow it"};
    }
  }
  const std::vector<EtcdKeyValue>& note = reply.results[first];
  if ((note.empty() ? 0 : note[0].mod_revision) != revision_) return LeaseIsOver();
  reply.results.resize(first);
  return reply;
}

Error EtcdWriter::LeaseIsOver() const {
  return {Code::kStaleEpoch, "nothing is written to " + EtcdClusterText(client_.access()) +
                                 ": the lease that our keys hang on is over; was this host stopped "
                                 "or cut off for longer than it lasts? Take another lease"};
}

Error EtcdWriter::Explained(const Error& error) const {
  return lease_ != 0 && error.code == Code::kNotFound ? LeaseIsOver() : error;
}

void EtcdWriter::Forget() {
  if (revision_ == 0 && unsettled_.empty()) return;
  EtcdTxn txn;
  txn.then = {EtcdDelete({key_})};
  (void)client_.AskOnce("/v3/kv/txn", txn.Question(), kEtcdAttemptLimit);
}

}  // namespace keel
