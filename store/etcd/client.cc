// One attempt after the other, and what the members' words mean.
#include "store/etcd/client.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "store/etcd/messages.h"

namespace keel {
namespace {

// After each round of members that gave no answer, so that refusals do not make a busy loop.
constexpr Duration kPauseLeast = std::chrono::milliseconds(10);
constexpr uint64_t kPauseSpreadMs = 40;
constexpr Duration kLoginLimit = std::chrono::seconds(3);

// What gRPC's numbers in etcd's refusals say.
constexpr int64_t kGrpcInvalidArgument = 3;
constexpr int64_t kGrpcNotFound = 5;
constexpr int64_t kGrpcPermissionDenied = 7;
constexpr int64_t kGrpcResourceExhausted = 8;
constexpr int64_t kGrpcFailedPrecondition = 9;
constexpr int64_t kGrpcOutOfRange = 11;
constexpr int64_t kGrpcUnauthenticated = 16;

bool Has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// What store/resolve.h says of a name. It holds its own cure.
bool IsOfNames(const std::string& words) {
  return Has(words, "cannot be resolved") || Has(words, "name service did not answer");
}

// A member that was there, or not, has said nothing.
bool IsSilence(const std::optional<Error>& failure) {
  return failure && failure->code == Code::kTimeout && !IsOfNames(failure->message);
}

// A refusal's number and words: as an answer, and within an answer that goes on line by line.
struct Words {
  int64_t code = 0;
  std::string text;
};
Words WordsOf(const Json& answer) {
  const Json* said = &answer;
  if (const auto error = answer.find("error"); error != answer.end() && error->is_object()) {
    said = &*error;
  }
  Words words;
  for (const char* name : {"code", "grpc_code"}) {
    const Result<int64_t> code = EtcdInt64(*said, name);
    if (code.ok() && *code != 0) words.code = *code;
  }
  for (const char* name : {"error", "message"}) {
    const auto text = said->find(name);
    if (text != said->end() && text->is_string()) words.text = text->get<std::string>();
  }
  return words;
}

}  // namespace

EtcdClient::EtcdClient(EtcdAccess access, CancelToken ending)
    : access_(std::move(access)), ending_(std::move(ending)), random_(EntropySeed()) {
  KEEL_CHECK(!access_.members.empty(), "an etcd cluster without members");
  current_ = random_.Uniform(access_.members.size());  // or all clients would ask the first one
}

// Lets `attempt` try the members one after the other, until one has answered or refused.
template <class F>
Result<EtcdClient::Attempt> EtcdClient::InTurn(Duration limit, bool may_repeat,
                                               const CancelToken& cancel, F&& attempt) {
  const TimePoint end = RealClock().Monotonic() + limit;
  turn_end_ = end;
  cancel_ = cancel.can_be_cancelled() ? cancel : ending_;
  const size_t members = access_.members.size();
  // Of several members one may be dead while others answer. One that is alone is given at once what
  // it needed before.
  if (members > 1) patience_ = kEtcdAttemptLimit;
  std::vector<std::optional<Error>> failures(members);
  std::vector<Duration> given(members);   // the most that one attempt at that member had
  const auto explain = [&] {
    std::vector<std::string> words;
    for (size_t i = 0; i < members; ++i) {
      if (!failures[i]) continue;
      std::string said = failures[i]->message;
      if (IsSilence(failures[i])) {
        said += " within the " + DurationText(given[i]) + " that it was given";
      }
      if (std::find(words.begin(), words.end(), said) == words.end()) words.push_back(said);
    }
    return Everyone(words);
  };
  for (size_t asked = 1;; ++asked) {
    if (cancel_.cancelled()) return Error{Code::kCancelled, "asking etcd was cancelled"};
    const TimePoint now = RealClock().Monotonic();
    const Duration most = std::min(patience_, end - now);
    Attempt made = attempt(now + most);
    using Kind = Attempt::Kind;
    const bool has_answered = made.kind == Kind::kAnswered || made.kind == Kind::kRefused;
    const bool is_quick = RealClock().Monotonic() - now < kEtcdAttemptLimit;
    if (has_answered && is_quick) patience_ = kEtcdAttemptLimit;
    if (made.kind == Kind::kRefused) return made.error;
    if (made.kind == Kind::kAnswered) return made;
    // A last attempt that is cut short says less than the one before it.
    const bool says_less = IsSilence(made.error) && most < given[current_];
    if (!says_less) failures[current_] = made.error;
    given[current_] = std::max(given[current_], most);
    const bool ends_round = asked % members == 0;
    if (ends_round && std::any_of(failures.begin(), failures.end(), IsSilence)) {
      patience_ = std::min(2 * patience_, kEtcdAttemptLimitMost);
    }
    if (made.kind == Kind::kLost && !may_repeat) return made;
    AskNextMember();
    const bool is_everyones = std::all_of(failures.begin(), failures.end(), [](const auto& one) {
      return one && (one->code == Code::kInvalid || one->code == Code::kCorrupt);
    });
    if (is_everyones) return Error{failures[0]->code, explain()};
    TimePoint next = RealClock().Monotonic();
    if (ends_round) {
      next = next + kPauseLeast + std::chrono::milliseconds(random_.Uniform(kPauseSpreadMs));
    }
    // An attempt without any time would only say that it had none.
    if (next >= end) {
      return Error{Code::kTimeout,
                   "no answer within " + DurationText(limit) + " from " + explain()};
    }
    RealClock().SleepUntil(next);
  }
}

// "the etcd cluster at A, B: A refused the connection; B did not answer within the 2 s that it was
// given; check ..."
std::string EtcdClient::Everyone(const std::vector<std::string>& words) const {
  const std::string all = JoinList(words, "; ");
  const bool is_of_names = !words.empty() && std::all_of(words.begin(), words.end(), IsOfNames);
  if (is_of_names) return EtcdClusterText(access_) + ": " + all;
  std::string cure = "check that more than half of its members run and can be reached from here";
  if (Has(all, "that it was given")) cure += ", and that they are no slower than that";
  const bool is_understood = Has(all, "refused the connection") || Has(all, " said: ") ||
                             Has(all, "answered with status");
  if (!access_.tls && !is_understood) cure += ", and whether they want TLS";
  if (Has(all, "CA file does not vouch")) {
    cure = "give the CA that signed the members' certificates, and the host names in them";
  } else if (Has(all, "refused our certificate")) {
    cure = "give a client certificate and key that the members' CA has signed";
  } else if (Has(all, "does not speak TLS")) {
    cure = "leave the CA file out, or turn TLS on at the members";
  } else if (Has(all, "over TLS")) {
    cure += ", and leave the CA file out if they do not speak TLS";
  } else if (Has(all, "wants TLS")) {
    cure = "give the CA file of the cluster";
  } else if (Has(all, "cannot be used")) {
    cure = "etcd was not asked";
  } else if (Has(all, "JSON gateway")) {
    cure = "give the client endpoints of etcd 3.4 or newer, which runs with --enable-grpc-gateway";
  }
  return EtcdClusterText(access_) + ": " + all + "; " + cure;
}

Result<Json> EtcdClient::Ask(const std::string& path, const Json& question, Duration limit,
                             const CancelToken& cancel) {
  const std::string text = DumpJson(question);
  KEEL_TRY_ASSIGN(Attempt made, InTurn(limit, true, cancel, [&](TimePoint end) {
                    return TryAsk(path, text, end);
                  }));
  return std::move(made.answer);
}

Result<std::optional<Json>> EtcdClient::AskOnce(const std::string& path, const Json& question,
                                                Duration limit) {
  const std::string text = DumpJson(question);
  KEEL_TRY_ASSIGN(Attempt made,
                  InTurn(limit, false, CancelToken::Never(), [&](TimePoint end) {
                    return TryAsk(path, text, end);
                  }));
  if (made.kind == Attempt::Kind::kAnswered) return std::optional(std::move(made.answer));
  AskNextMember();
  return std::optional<Json>();
}

Result<std::unique_ptr<EtcdConnection>> EtcdClient::Follow(const std::string& path,
                                                           const Json& question, Duration limit,
                                                           const CancelToken& cancel) {
  const std::string text = DumpJson(question);
  std::unique_ptr<EtcdConnection> opened;
  // etcd looks at a watch's token only once, and never says that it is old later.
  token_.clear();
  KEEL_TRY(InTurn(limit, true, cancel, [&](TimePoint end) {
    return TryFollow(path, text, end, opened);
  }));
  return opened;
}

void EtcdClient::AskNextMember() {
  connection_.reset();
  current_ = (current_ + 1) % access_.members.size();
  if (current_ == 0) ++turn_;
}

EtcdClient::Attempt EtcdClient::Connect(TimePoint end,
                                        std::unique_ptr<EtcdConnection>& connection) {
  Result<std::unique_ptr<EtcdConnection>> opened =
      EtcdConnection::Open(member(), access_.tls, turn_, end, cancel_);
  if (!opened.ok()) return {Attempt::Kind::kNotSent, {}, opened.error()};
  connection = std::move(*opened);
  if (&connection == &connection_) has_served_ = false;
  return {Attempt::Kind::kAnswered};
}

EtcdClient::Attempt EtcdClient::TryAsk(const std::string& path, const std::string& question,
                                       TimePoint end) {
  using Kind = Attempt::Kind;
  if (connection_ == nullptr || !connection_->usable()) {
    if (Attempt made = Connect(end, connection_); made.kind != Kind::kAnswered) return made;
  }
  connection_->Heed(cancel_);
  for (const bool is_again : {false, true}) {
    const bool is_fresh = NeedsToken();
    if (is_fresh) {
      Attempt made = TryAuthenticate(end);
      if (made.kind == Kind::kLost) made.kind = Kind::kNotSent;  // the question was not
      end = AfterLogin(end);
      if (made.kind == Kind::kAnswered && !connection_->usable()) made = Connect(end, connection_);
      if (made.kind != Kind::kAnswered) return made;
    }
    const Result<EtcdAnswer> answer = connection_->Ask({path, question, token_}, end);
    if (!answer.ok()) {
      // etcd from 3.5.7 on hangs up without a word on a token that it does not know. A connection
      // that has served before may also have been closed for another reason.
      if (answer.error().code == Code::kPeerLost && !has_served_) token_.clear();
      return {Kind::kLost, {}, answer.error()};
    }
    has_served_ = true;
    Attempt made = Judge(*answer);
    const bool has_old_token = NeedsToken() && made.kind == Kind::kNotSent;
    if (!has_old_token || is_fresh || is_again) return made;
  }
  return {};  // not reached: the second time returns
}

EtcdClient::Attempt EtcdClient::TryFollow(const std::string& path, const std::string& question,
                                          TimePoint end,
                                          std::unique_ptr<EtcdConnection>& opened) {
  using Kind = Attempt::Kind;
  if (NeedsToken()) {
    if (connection_ == nullptr || !connection_->usable()) {
      if (Attempt made = Connect(end, connection_); made.kind != Kind::kAnswered) return made;
    }
    connection_->Heed(cancel_);
    if (Attempt made = TryAuthenticate(end); made.kind != Kind::kAnswered) return made;
    end = AfterLogin(end);
  }
  if (Attempt made = Connect(end, opened); made.kind != Kind::kAnswered) return made;
  const Result<int> status = opened->Begin({path, question, token_}, end);
  if (!status.ok()) return {Kind::kLost, {}, status.error()};
  if (*status == 200) {
    opened->Heed(CancelToken::Never());   // whoever reads its lines has a token for each
    return {Kind::kAnswered};
  }
  const Result<std::string> body = opened->Rest();
  if (!body.ok()) return {Kind::kLost, {}, body.error()};
  return Judge({*status, *body});
}

// The question has as long as any other, if the call does.
TimePoint EtcdClient::AfterLogin(TimePoint end) const {
  return std::max(end, std::min(turn_end_, RealClock().Monotonic() + patience_));
}

// A member computes long on a password, also where nobody waits for that any more. After its
// restart all log in at once.
EtcdClient::Attempt EtcdClient::TryAuthenticate(TimePoint end) {
  const Json question = {{"name", access_.user}, {"password", access_.password}};
  end = std::max(end, std::min(turn_end_, RealClock().Monotonic() + kLoginLimit));
  const Result<EtcdAnswer> answer =
      connection_->Ask({"/v3/auth/authenticate", DumpJson(question)}, end);
  if (!answer.ok()) return {Attempt::Kind::kLost, {}, answer.error()};
  has_served_ = true;
  Attempt made = Judge(*answer);
  if (made.kind != Attempt::Kind::kAnswered) return made;
  const Result<std::string> token = Field<std::string>(made.answer, "token");
  if (!token.ok()) return {Attempt::Kind::kRefused, {}, token.error()};
  token_ = *token;
  return made;
}

EtcdClient::Attempt EtcdClient::Judge(const EtcdAnswer& answer) {
  const std::string where = EtcdMemberText(member());
  if (Has(answer.body, "HTTP request to an HTTPS server")) {
    return {Attempt::Kind::kNotSent, {}, {Code::kInvalid, where + " wants TLS"}};
  }
  Result<Json> json = ParseJson(answer.body);
  const bool is_etcds = json.ok() && json->is_object();
  if (!is_etcds && answer.status >= 500) {
    // A load balancer's word about a member behind it does not say what that member has done.
    return {Attempt::Kind::kLost, {},
            {Code::kPeerLost, where + " answered with status " + std::to_string(answer.status) +
                                  ", as a load balancer does that finds no member"}};
  }
  if (!is_etcds) {
    return {Attempt::Kind::kNotSent, {},
            {Code::kCorrupt, where + " does not serve etcd's JSON gateway (its answer has status " +
                                 std::to_string(answer.status) + ")"}};
  }
  if (answer.status == 200 && !json->contains("error")) {
    return {Attempt::Kind::kAnswered, std::move(*json), {}};
  }
  return Refusal(*json, answer.status);
}

// What etcd's own words mean. Words that do not say that nothing was done leave that open.
EtcdClient::Attempt EtcdClient::Refusal(const Json& answer, int status) {
  using Kind = Attempt::Kind;
  const auto [code, text] = WordsOf(answer);
  const std::string cluster = EtcdClusterText(access_);
  const auto refused = [&](Code kind, const std::string& message) {
    return Attempt{Kind::kRefused, {}, {kind, message}};
  };
  if (code == kGrpcUnauthenticated || Has(text, "user name is empty") ||
      Has(text, "revision of auth store is old")) {
    token_.clear();
    if (!access_.user.empty()) {
      return {Kind::kNotSent, {}, {Code::kPeerLost, EtcdMemberText(member()) + " said: " + text}};
    }
    return refused(Code::kInvalid, cluster + " asks for a user; give a user and a password");
  }
  if (Has(text, "authentication failed")) {
    return refused(Code::kInvalid, cluster + " does not take the password of user '" +
                                       access_.user + "'; check both");
  }
  if (Has(text, "authentication is not enabled")) {
    return refused(Code::kInvalid, cluster + " has no users; leave user and password out, or "
                                             "enable authentication there");
  }
  if (code == kGrpcPermissionDenied) {
    return refused(Code::kInvalid, cluster + " does not let user '" + access_.user +
                                       "' do this; grant its role this prefix (etcdctl role "
                                       "grant-permission --prefix=true ROLE readwrite PREFIX)");
  }
  if (Has(text, "database space exceeded")) {
    return refused(Code::kNoSpace, cluster + " has a full database; compact and defragment it, "
                                             "then disarm its alarm (etcdctl alarm disarm)");
  }
  const std::string words = cluster + " refused: " + text;
  if (code == kGrpcNotFound || code == kGrpcOutOfRange) return refused(Code::kNotFound, words);
  if (code == kGrpcFailedPrecondition) {
    return refused(Has(text, "already exists") ? Code::kExists : Code::kInvalid, words);
  }
  if (code == kGrpcInvalidArgument) return refused(Code::kInvalid, words);
  const Kind kind = code == kGrpcResourceExhausted ? Kind::kNotSent : Kind::kLost;
  return {kind, {}, {Code::kPeerLost, EtcdMemberText(member()) + " said: " +
                                          (text.empty() ? "status " + std::to_string(status)
                                                        : text)}};
}

}  // namespace keel
