// One answer that goes on for ever, taken up at the next member whenever it ends.
#include "store/etcd/watch.h"

#include <algorithm>
#include <utility>

namespace keel {
namespace {

// A member that has delivered nothing for so long is asked whether it still answers.
constexpr Duration kSilenceMax = std::chrono::seconds(2);
// Between attempts at a member that ends the watch at once.
constexpr Duration kPause = std::chrono::milliseconds(50);

}  // namespace

EtcdWatch::EtcdWatch(EtcdAccess access, EtcdRange range, int64_t from_revision)
    : client_(std::move(access)), range_(std::move(range)), next_revision_(from_revision) {}

Status EtcdWatch::Begin(Duration limit, const CancelToken& cancel) {
  if (over_) return *over_;
  const TimePoint end = RealClock().Monotonic() + std::max(limit, kEtcdAttemptLimit);
  while (connection_ == nullptr) {
    const Duration left = end - RealClock().Monotonic();
    if (left <= Duration::zero()) {
      return Error{Code::kTimeout, EtcdClusterText(client_.access()) + " does not follow changes "
                                       "at present; check that more than half of its members run"};
    }
    KEEL_TRY_ASSIGN(const bool has_begun, TryBegin(left, cancel));
    if (!has_begun) RealClock().SleepUntil(std::min(end, RealClock().Monotonic() + kPause));
  }
  return Ok();
}

// False: the member that was asked did not begin; another one is asked next.
Result<bool> EtcdWatch::TryBegin(Duration limit, const CancelToken& cancel) {
  Json create = EtcdRangeQuestion(range_);
  if (next_revision_ != 0) create["start_revision"] = std::to_string(next_revision_);
  KEEL_TRY_ASSIGN(connection_,
                  client_.Follow("/v3/watch", {{"create_request", create}}, limit, cancel));
  heard_ = RealClock().Monotonic();
  const Result<std::optional<std::string>> line =
      connection_->Line(heard_ + kEtcdAttemptLimit, CancelToken::Never());
  if (!line.ok() || !line->has_value()) {
    Leave();
    return false;
  }
  KEEL_TRY(Read(**line));
  return connection_ != nullptr;
}

Result<std::vector<EtcdChange>> EtcdWatch::Next(Duration limit, const CancelToken& cancel) {
  const TimePoint end = RealClock().Monotonic() + limit;
  for (;;) {
    if (cancel.cancelled()) return Error{Code::kCancelled, "watching etcd was cancelled"};
    KEEL_TRY(Begin(end - RealClock().Monotonic(), cancel));
    const TimePoint look = heard_ + kSilenceMax;
    const Result<std::optional<std::string>> line =
        connection_->Line(std::min(end, look), cancel);
    if (!line.ok()) {
      Leave();
    } else if (line->has_value()) {
      heard_ = RealClock().Monotonic();
      KEEL_TRY_ASSIGN(std::vector<EtcdChange> changes, Read(**line));
      if (!changes.empty()) return changes;
    }
    const TimePoint now = RealClock().Monotonic();
    if (connection_ != nullptr && now >= heard_ + kSilenceMax && !MemberStillAnswers()) {
      connection_.reset();
    }
    if (now >= end && connection_ != nullptr) return std::vector<EtcdChange>();
  }
}

// The kernel of a member that is stopped keeps its connections, so only a question finds out.
bool EtcdWatch::MemberStillAnswers() {
  const EtcdMember before = client_.member();
  Json question = EtcdRangeQuestion(range_);
  question["serializable"] = true;
  question["count_only"] = true;
  const Result<Json> answer = client_.Ask("/v3/kv/range", question, kEtcdAttemptLimit);
  heard_ = RealClock().Monotonic();
  return answer.ok() && client_.member() == before;
}

Result<std::vector<EtcdChange>> EtcdWatch::Read(const std::string& line) {
  std::vector<EtcdChange> changes;
  KEEL_TRY_ASSIGN(const Json message, ParseJson(line));
  const auto result = message.is_object() ? message.find("result") : message.end();
  if (result == message.end() || !result->is_object()) {  // such as: it has no leader
    Leave();
    return changes;
  }
  if (result->value("canceled", false)) return Ended(*result);
  KEEL_TRY_ASSIGN(const int64_t revision, EtcdRevision(*result));
  if (next_revision_ == 0) next_revision_ = revision + 1;
  const auto events = result->find("events");
  if (events == result->end() || !events->is_array()) return changes;
  for (const Json& event : *events) {
    const auto kv = event.is_object() ? event.find("kv") : event.end();
    if (kv == event.end()) continue;
    KEEL_TRY_ASSIGN(EtcdKeyValue changed, EtcdKeyValueOf(*kv));
    const bool is_deletion = event.value("type", "PUT") == "DELETE";
    next_revision_ = std::max(next_revision_, changed.mod_revision + 1);
    changes.push_back({std::move(changed.key),
                       is_deletion ? std::nullopt : std::optional(std::move(changed.value)),
                       changed.mod_revision});
  }
  return changes;
}

// etcd says that it will deliver nothing more here.
Result<std::vector<EtcdChange>> EtcdWatch::Ended(const Json& result) {
  KEEL_TRY_ASSIGN(const int64_t compacted, EtcdInt64(result, "compact_revision"));
  if (compacted > 0) {
    over_ = Error{Code::kNotFound, EtcdClusterText(client_.access()) +
                                       " has compacted the changes from revision " +
                                       std::to_string(next_revision_) + " up to " +
                                       std::to_string(compacted) +
                                       "; read all keys anew and watch from there"};
    connection_.reset();
    return *over_;
  }
  const std::string reason = result.value("cancel_reason", "");
  if (reason.find("permission denied") != std::string::npos) {
    over_ = Error{Code::kInvalid, EtcdClusterText(client_.access()) + " does not let user '" +
                                      client_.access().user +
                                      "' watch these keys; grant its role this prefix"};
    connection_.reset();
    return *over_;
  }
  Leave();  // such as a token that has become too old between two questions
  return std::vector<EtcdChange>();
}

void EtcdWatch::Leave() {
  connection_.reset();
  client_.AskNextMember();
}

}  // namespace keel
