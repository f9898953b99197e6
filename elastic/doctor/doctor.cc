// The hosts meet, exchange facts, look at each other, exchange that, add up, exchange that, and
// judge.
#include "elastic/doctor/doctor.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/file_helpers.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "base/within.h"
#include "elastic/doctor/buckets.h"
#include "elastic/doctor/lease.h"
#include "elastic/doctor/port.h"
#include "elastic/doctor/records.h"
#include "elastic/doctor/ring.h"
#include "elastic/launch/meeting.h"
#include "elastic/process/quiet_thread.h"
#include "elastic/protocol/limits.h"
#include "elastic/status/http_server.h"
#include "store/bucket_files.h"
#include "store/host_port.h"
#include "store/own_address.h"
#include "store/resolve.h"

namespace keel {
namespace {

constexpr Duration kOwnStoreLimit = std::chrono::seconds(30);
constexpr Duration kStoreOperationLimit = std::chrono::seconds(5);   // or one attempt
constexpr Duration kPause = std::chrono::milliseconds(100);
constexpr Duration kLookLimit = std::chrono::seconds(4);      // at one host
constexpr Duration kSumLimit = std::chrono::seconds(10);
constexpr Duration kLeaveLimit = std::chrono::seconds(5);
constexpr uint64_t kProbeBytesMax = 4096;

// A file that other hosts look for; it exists as long as this object.
class Probe {
 public:
  Probe(Files& files, std::string directory, std::string name)
      : files_(files), path_(JoinPath(directory, name)), name_(std::move(name)) {}
  ~Probe() {
    if (!is_there_) return;
    (void)Within<Status>(kDiskLimit, [&files = files_, path = path_] {
      return files.Remove(path);
    });
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  Status Write() {
    const auto written = Within<Status>(kDiskLimit, [&files = files_, path = path_, name = name_] {
      return WriteDurably(files, path, name);
    });
    is_there_ = written && written->ok();
    return written.value_or(DiskSilent(kDiskLimit));
  }

 private:
  Files& files_;
  const std::string path_;
  const std::string name_;
  bool is_there_ = false;
};

// A value that is not sealed by the token of whoever reads it is none to him.
Error Unreadable(const Error& error) {
  return {Code::kInvalid, "what another host reported cannot be read (" + error.message +
                              "): is it another version of Evenkeel, or has it another token, or "
                              "none?"};
}

std::string ProbeName(const std::string& round, int64_t ticket) {
  return ".keelrun-doctor-" + round + "-" + std::to_string(ticket);
}

class Doctor {
 public:
  Doctor(const LaunchConfig& config, DoctorWorld& world)
      : config_(config), world_(world), prefix_("keel/" + config.run_id + "/doctor/") {}

  std::vector<Finding> Run() {
    view_.is_alone = config_.hosts.most == 1;
    view_.is_by_directory = config_.meets_by_lease;
    view_.allow_inexact = config_.allow_inexact;
    const bool looks_alone = view_.is_alone || view_.is_by_directory;
    const Status met = looks_alone ? LookAlone() : MeetOthers();
    if (!met.ok()) view_.meeting_trouble = met.error().message;
    if (view_.hosts.empty()) view_.hosts = {facts_};
    return AllFindings(view_);
  }

 private:
  std::string Key(const std::string& name) const { return prefix_ + name; }
  std::string Key(const std::string& name, int64_t ticket) const {
    return prefix_ + name + "/" + std::to_string(ticket);
  }
  TimePoint In(Duration limit) { return world_.clock.Monotonic() + limit; }
  // For other hosts, whose health checks may take longer than ours did.
  Duration ComeLimit() const {
    return config_.doctor->limit +
           (config_.health_command.empty() ? Duration(0) : config_.health_limit);
  }

  void Gather(const Meeting& meeting) {
    facts_ = BriefFacts(config_, world_.environment, meeting.own_name, meeting.own_address);
    AddSlowFacts(facts_, config_, world_.environment, world_.files,
                 world_.random.Fork("doctor-logs"));
    facts_.program_trouble = world_.program_trouble;
    facts_.has_health_check = !config_.health_command.empty();
    facts_.health_trouble = world_.health_trouble;
    OpenPage();
    TryLease();
    facts_.buckets = LookAtBuckets(BucketsOf(config_), world_.random.Fork("doctor-buckets"));
  }
  void OpenPage();
  void TryLease();
  // The meeting to use when the hosts cannot meet.
  static Meeting LocalMeeting() {
    Meeting meeting;
    meeting.own_name = OwnHostName();
    meeting.own_address = "127.0.0.1";
    return meeting;
  }
  Result<Meeting> MeetNobody();
  Status LookAlone();
  Status MeetOthers();
  Status TakePart(const Meeting& meeting);
  Status OpenPorts();
  Result<std::unique_ptr<Store>> Reach(const Meeting& meeting);
  Status LearnRound(const Meeting& meeting);
  void AskStore();
  void WriteProbe();
  Status DecideWhoCame();
  Status ReadWhoCame();
  Status LookAtOthers();
  DoctorSight LookAt(size_t host);
  Status AddUpWithOthers();
  Status Tell(const std::string& name, const std::string& text);
  // What each host that came told under that name; empty for a host that did not within a limit.
  Result<std::vector<std::optional<std::string>>> Hear(const std::string& name, Duration limit);
  Status Leave(bool leads);

  const LaunchConfig& config_;
  DoctorWorld& world_;
  const std::string prefix_;
  DoctorFacts facts_;
  DoctorView view_;
  std::unique_ptr<Store> store_;
  std::string round_;
  int64_t ticket_ = 0;
  std::vector<int64_t> tickets_;   // of the hosts that came, in the order of view_.hosts
  size_t place_ = 0;               // our own index among them
  std::optional<Probe> probe_;
  std::unique_ptr<DoctorPort> port_;
  std::unique_ptr<DoctorPort> last_port_;   // of --port-range
  std::unique_ptr<HttpServer> page_;
};

// As the job does, and until the end: of two launchers on one machine only one can have an address.
void Doctor::OpenPage() {
  if (!config_.status) return;
  const auto& [address, port, token] = *config_.status;
  facts_.status = AddressText(address, port);
  auto opened = HttpServer::Open("the status page", address, port, world_.clock,
                                 [](const StatusRequest&) {
                                   return PlainReply(503, "the doctor is here; there is no job");
                                 });
  if (!opened.ok()) facts_.status_trouble = opened.error().message;
  if (opened.ok()) page_ = *std::move(opened);
}

void Doctor::TryLease() {
  facts_.lease = config_.lease_directory;
  facts_.is_lease_found = config_.is_lease_found;
  if (facts_.lease.empty()) return;
  const Status tried =
      TryLeaseDirectory(world_.files, facts_.lease, world_.random.Fork("doctor-lease"));
  if (tried.ok()) return;
  facts_.is_lease_missing = facts_.is_lease_found && !IsBucketPath(facts_.lease) &&
                            tried.error().code == Code::kNotFound;
  if (!facts_.is_lease_missing) facts_.lease_trouble = tried.error().message;
}

// Even a job of one host has a store, and each host of one that meets by a directory may keep it.
Result<Meeting> Doctor::MeetNobody() {
  if (world_.stores == nullptr) return Error{Code::kNotFound, world_.stores_trouble};
  KEEL_TRY_ASSIGN(Meeting meeting, OpenMeeting(config_, *world_.stores));
  if (config_.meets_by_lease) {
    KEEL_TRY_ASSIGN(meeting.server, world_.stores->Serve("", 0));
    meeting.host = "127.0.0.1";
    meeting.port = meeting.server->port();
  }
  return meeting;
}

Status Doctor::LookAlone() {
  const Result<Meeting> meeting = MeetNobody();
  if (meeting.ok()) {
    Gather(*meeting);
    Result<std::unique_ptr<Store>> store = Reach(*meeting);
    if (store.ok()) store_ = *std::move(store);
    if (!store.ok()) facts_.store_trouble = store.error().message;
  } else {
    Gather(LocalMeeting());
    facts_.store_trouble = meeting.error().message;
  }
  if (store_) AskStore();
  round_ = RandomId(world_.random, 16);
  WriteProbe();
  return Ok();
}

Status Doctor::MeetOthers() {
  if (world_.stores == nullptr) {
    Gather(LocalMeeting());
    facts_.store_trouble = world_.stores_trouble;
    return Error{Code::kNotFound, "without a store the hosts cannot meet"};
  }
  const Result<Meeting> meeting = OpenMeeting(config_, *world_.stores);
  if (!meeting.ok()) {
    Gather(LocalMeeting());
    return meeting.error();
  }
  Gather(*meeting);
  return TakePart(*meeting);
}

Status Doctor::TakePart(const Meeting& meeting) {
  const bool leads = meeting.server != nullptr;
  Result<std::unique_ptr<Store>> store = Reach(meeting);
  if (!store.ok()) {
    return Error{store.error().code,
                 "the store at " + config_.endpoint_host + ":" + std::to_string(meeting.port) +
                     " could not be reached: " + store.error().message};
  }
  store_ = *std::move(store);
  AskStore();
  KEEL_TRY(LearnRound(meeting));
  KEEL_TRY(OpenPorts());
  KEEL_TRY_ASSIGN(ticket_, store_->Add(Key("tickets"), 1));
  WriteProbe();
  probe_.reset();   // a user who interrupts the wait for hosts leaves nothing there
  KEEL_TRY(Tell("host", DoctorFactsText(facts_)));
  if (leads) KEEL_TRY(DecideWhoCame());
  KEEL_TRY(ReadWhoCame());
  // From here on the other hosts are known, and what they told shows what went wrong.
  Status looked = LookAtOthers();
  if (looked.ok()) looked = AddUpWithOthers();
  const Status left = Leave(leads);
  for (const Status& one : {looked, left}) {
    if (!one.ok()) LogWarn("doctor-interrupted", {{"reason", one.error().message}});
  }
  return Ok();
}

// A firewall that lets part of a range through shows at its other end.
Status Doctor::OpenPorts() {
  KEEL_TRY_ASSIGN(port_, DoctorPort::Open(round_, world_.clock, config_.ports));
  facts_.port = port_->port();
  if (config_.ports.is_any()) return Ok();
  KEEL_TRY_ASSIGN(last_port_, DoctorPort::Open(round_, world_.clock, config_.ports,
                                               ListenSocket::From::kLast));
  facts_.last_port = last_port_->port();
  return Ok();
}

// A store that does not answer yet may still come: hosts are started one after the other.
Result<std::unique_ptr<Store>> Doctor::Reach(const Meeting& meeting) {
  const TimePoint end = In(ComeLimit());
  const bool is_ours = meeting.server != nullptr;
  for (;;) {
    auto store = world_.stores->Connect(meeting.host, meeting.port,
                                        is_ours ? kOwnStoreLimit : kStoreOperationLimit);
    if (store.ok() || world_.clock.Monotonic() >= end) return store;
    world_.clock.SleepFor(kPause);
  }
}

// The host with the store draws the round's name: nothing of another round is believed.
Status Doctor::LearnRound(const Meeting& meeting) {
  if (meeting.server != nullptr) {
    round_ = RandomId(world_.random, 16);
    return store_->Set(Key("round"), round_);
  }
  const Status there = store_->Wait({Key("round")}, ComeLimit());
  if (!there.ok()) {
    return Error{Code::kNotFound,
                 "a store answers at " + config_.endpoint_host + ":" +
                     std::to_string(meeting.port) +
                     ", but it is not a doctor's: a job may be running there, or the doctor "
                     "there has another --rdzv-id"};
  }
  KEEL_TRY_ASSIGN(const std::optional<std::string> round, store_->Get(Key("round")));
  round_ = round.value_or("");
  return Ok();
}

void Doctor::AskStore() {
  facts_.torch = LoadedTorch(world_.files);
  const TimePoint began = world_.clock.Monotonic();
  const Result<std::optional<std::string>> answer = store_->Get(Key("round"));
  facts_.store_nanos = (world_.clock.Monotonic() - began).count();
  if (!answer.ok()) facts_.store_trouble = answer.error().message;
}

void Doctor::WriteProbe() {
  if (facts_.directory.empty()) return;
  probe_.emplace(world_.files, facts_.directory, ProbeName(round_, ticket_));
  const Status written = probe_->Write();
  if (!written.ok()) {
    facts_.directory_trouble = written.error().message;
    return;
  }
  const auto space = Within<DiskSpace>(
      kDiskLimit, [directory = facts_.directory] { return SpaceOf(directory); });
  facts_.directory_space = space.value_or(DiskSpace{});
}

// Waits until all possible hosts have told their facts, or the limit; those that have told them
// came.
Status Doctor::DecideWhoCame() {
  const TimePoint end = In(ComeLimit());
  const auto most = static_cast<int64_t>(config_.hosts.most);
  std::vector<int64_t> came;
  for (;;) {
    KEEL_TRY_ASSIGN(const int64_t drawn, store_->Add(Key("tickets"), 0));
    came.clear();
    for (int64_t ticket = 1; ticket <= drawn; ++ticket) {
      KEEL_TRY_ASSIGN(const auto facts, store_->Get(Key("host", ticket)));
      if (facts) came.push_back(ticket);
    }
    if (static_cast<int64_t>(came.size()) >= most || world_.clock.Monotonic() >= end) break;
    world_.clock.SleepFor(kPause);
  }
  if (static_cast<int64_t>(came.size()) > most) came.resize(static_cast<size_t>(most));
  return store_->Set(Key("came"), DumpJson(Json{{"tickets", came}}));
}

Status Doctor::ReadWhoCame() {
  KEEL_TRY(store_->Wait({Key("came")}, ComeLimit() + kDoctorTellLimit));
  KEEL_TRY_ASSIGN(const std::optional<std::string> text, store_->Get(Key("came")));
  const Result<Json> json = ParseJson(text.value_or(""));
  if (!json.ok()) return Unreadable(json.error());
  KEEL_TRY_ASSIGN(tickets_, Field<std::vector<int64_t>>(*json, "tickets"));
  const auto own = std::find(tickets_.begin(), tickets_.end(), ticket_);
  if (own == tickets_.end()) {
    return Error{Code::kNotFound, "this host came too late: the doctors had begun without it (" +
                                      std::to_string(tickets_.size()) + " of at most " +
                                      std::to_string(config_.hosts.most) + " were there)"};
  }
  place_ = static_cast<size_t>(own - tickets_.begin());
  std::vector<DoctorFacts> hosts;
  for (const int64_t ticket : tickets_) {
    KEEL_TRY_ASSIGN(const std::optional<std::string> told, store_->Get(Key("host", ticket)));
    const Result<DoctorFacts> facts = ParseDoctorFacts(told.value_or(""));
    if (!facts.ok()) return Unreadable(facts.error());
    hosts.push_back(*facts);
  }
  view_.hosts = std::move(hosts);
  return Ok();
}

Status Doctor::LookAtOthers() {
  if (facts_.directory_trouble.empty()) WriteProbe();
  KEEL_TRY(Tell("probe", "1"));
  KEEL_TRY(Hear("probe", kDoctorTellLimit));
  std::vector<DoctorSight> sights(tickets_.size());
  std::vector<std::thread> looking;
  for (size_t host = 0; host < tickets_.size(); ++host) {
    if (host == place_) continue;
    looking.push_back(StartQuietThread("doctor-look", [this, host, &sights] {
      sights[host] = LookAt(host);
    }));
  }
  for (std::thread& one : looking) one.join();
  KEEL_TRY(Tell("sights", DoctorSightsText(sights)));
  KEEL_TRY_ASSIGN(const auto told, Hear("sights", kDoctorTellLimit));
  view_.sights.resize(tickets_.size());
  for (size_t host = 0; host < told.size(); ++host) {
    if (!told[host]) continue;
    KEEL_TRY_ASSIGN(view_.sights[host], ParseDoctorSights(*told[host]));
  }
  return Ok();
}

DoctorSight Doctor::LookAt(size_t host) {
  const DoctorFacts& other = view_.hosts[host];
  DoctorSight sight;
  const Result<std::string> number = ResolveHost(other.host, kLookLimit);
  if (number.ok()) {
    sight.name_number = *number;
  } else {
    sight.name_trouble = number.error().message;
  }
  const auto knock = [&](int64_t port) {
    return Knock(other.address, static_cast<uint16_t>(port), round_, world_.clock,
                 In(kLookLimit));
  };
  Result<Knocked> knocked = knock(other.port);
  if (knocked.ok() && other.last_port != 0) knocked = knock(other.last_port);
  if (knocked.ok()) {
    sight.round_trip_ns = knocked->round_trip_ns;
    sight.clock_ahead_ns = knocked->clock_ahead_ns;
    sight.clock_doubt_ns = knocked->clock_doubt_ns;
  } else {
    sight.reach_trouble = knocked.error().message;
  }
  if (facts_.directory.empty()) return sight;
  const std::string name = ProbeName(round_, tickets_[host]);
  const Result<std::string> probe =
      Within<Result<std::string>>(
          kDiskLimit,
          [&files = world_.files, path = JoinPath(facts_.directory, name)] {
            return ReadWhole(files, path, kProbeBytesMax);
          })
          .value_or(DiskSilent(kDiskLimit));
  if (!probe.ok()) {
    sight.probe_trouble = probe.error().message;
  } else if (*probe != name) {
    sight.probe_trouble = "its file there has other content";
  }
  return sight;
}

// Only if every host reaches every other one; all hosts decide by the same facts.
Status Doctor::AddUpWithOthers() {
  const size_t size = tickets_.size();
  for (const std::vector<DoctorSight>& sights : view_.sights) {
    const bool all_reached = sights.size() == size &&
        std::all_of(sights.begin(), sights.end(), [](const DoctorSight& sight) {
          return sight.reach_trouble.empty();
        });
    if (!all_reached) return Ok();
  }
  if (size < 2) return Ok();
  const DoctorFacts& next = view_.hosts[(place_ + 1) % size];
  const RingPlace ring{place_, size, next.address, static_cast<uint16_t>(next.port)};
  const DoctorSum sum = AddUpAround(ring, round_, *port_, world_.clock, In(kSumLimit));
  KEEL_TRY(Tell("sum", DoctorSumText(sum)));
  KEEL_TRY_ASSIGN(const auto told, Hear("sum", kDoctorTellLimit));
  for (const std::optional<std::string>& text : told) {
    view_.sums.push_back({"it reported nothing", 0, 0});
    if (!text) continue;
    KEEL_TRY_ASSIGN(view_.sums.back(), ParseDoctorSum(*text));
  }
  return Ok();
}

Status Doctor::Tell(const std::string& name, const std::string& text) {
  return store_->Set(Key(name, ticket_), text);
}

Result<std::vector<std::optional<std::string>>> Doctor::Hear(const std::string& name,
                                                             Duration limit) {
  std::vector<std::string> keys;
  for (const int64_t ticket : tickets_) keys.push_back(Key(name, ticket));
  const Status all = store_->Wait(keys, limit);
  if (!all.ok() && all.error().code != Code::kTimeout) return all.error();
  return store_->GetMany(keys);
}

// The probe must exist until all have looked, the store until all have read.
Status Doctor::Leave(bool leads) {
  KEEL_TRY(Tell("done", "1"));
  if (!leads) return Ok();
  KEEL_TRY(Hear("done", kLeaveLimit));
  return Ok();
}

}  // namespace

std::vector<Finding> RunDoctor(const LaunchConfig& config, DoctorWorld world) {
  KEEL_CHECK(config.doctor, "the doctor was not asked for");
  return Doctor(config, world).Run();
}

}  // namespace keel
