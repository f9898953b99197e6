// Supervisor: one launcher on one host: it tells the Host what happens, and does what the Host
// says.
// Promises   Run() returns when the job is over for this host, with a code of
//            elastic/protocol/exit_codes.h; then no worker is left, nor any descendant of one.
//            From then on the signals that stop a job are blocked in its thread, so that one more
//            signal does not take the exit code from those who wait for it.
// Does not   judge (elastic/decisions/host_machine.h, elastic/decisions/membership.h); print (the
//            summary is the caller's).
// Threads    Run() in the thread that made the supervisor, which must be the main one or outlive
//            it: the workers are tied to that thread (elastic/process/spawn.h).
// Errors     of Open(): those of OpenMeeting(), and of making the log folder.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/environment.h"
#include "base/files.h"
#include "base/random.h"
#include "elastic/board/board.h"
#include "elastic/decisions/host_machine.h"
#include "elastic/launch/config.h"
#include "elastic/launch/meeting.h"
#include "elastic/notice/poller.h"
#include "elastic/process/interrupts.h"
#include "elastic/process/lost_children.h"
#include "elastic/report/job_story.h"
#include "elastic/report/launcher_event.h"
#include "elastic/report/status_line.h"
#include "elastic/report/time_ledger.h"
#include "elastic/status/alive_port.h"
#include "elastic/status/server.h"
#include "elastic/workers/crew.h"
#include "elastic/workers/health_check.h"
#include "store/seal/seal.h"
#include "store/store_maker.h"

namespace keel {

struct SupervisorWorld {
  StoreMaker& stores;
  Files& files;
  Clock& clock;
  Random random;
  Environment environment;   // ours, which workers inherit
  JobHome* home = nullptr;   // for LaunchConfig::Meeting::kEtcd
  // Of the job's token. `stores` and `home` then give sealed stores alone.
  std::optional<Seal> seal = {};
};

// It has more than 25 methods and 12 data members because it joins all parts of a launcher: each
// event from one of them, and each action of the Host, is a method.
class Supervisor {
 public:
  // To be called before what may take long: signals that come from now on are heard once Open() has
  // got so far. But SIGINT still ends the process: nobody has joined anything yet.
  static void HoldSignalsUntilOpen(const LaunchConfig& config);
  // Hosts the store if that is our part, so a taken port is an error here.
  static Result<std::unique_ptr<Supervisor>> Open(LaunchConfig config, SupervisorWorld world);
  ~Supervisor();

  int Run();
  const JobStory& story() const { return story_; }
  // How long to wait for the reader of our output once Run() has returned.
  TimePoint show_by() const { return show_by_; }
  // True once Run() has returned, if the log folder does not answer: the destructor would wait for
  // it, maybe for ever.
  bool has_silent_logs() const { return has_silent_logs_; }

 private:
  Supervisor(LaunchConfig config, SupervisorWorld world, Meeting meeting);
  Status OpenParts();
  Status OpenBoard();
  Status OpenCrew();
  Status OpenPage();
  void OpenAlivePort();
  std::string StoreText() const;

  // What happens.
  void OnMemberEvent(const MemberEvent& event);
  void TellShunned(const ShunnedRecord& record);
  void OnTrouble(const Status& status);
  void OnReason(const Error& reason);
  void OnNoStore(const std::string& reason);
  void OnWorkerEnded(int index, const ExitStatus& status);
  Status HearSignals();
  void AwaitSignal();
  void OnSignal(int signal);
  bool IsFirstInterrupt();
  Duration TimeToStop(int signal);
  void WatchNotices();
  void OnNotice(const NoticeEvent& event);
  void HoldSignals() const;
  void KillNow();
  void ArmTimer();
  void ShowStatus();
  void TellWait();
  void ReapLost();

  // To all who want to know of it: the log, the story, and the status page if there is one.
  void Tell(const LauncherEvent& event);

  // For people who watch the status page, if there is one.
  void TellHosts();
  void TellFigures();
  void TakeFigures(int index, const FiguresMessage& figures);

  // What the host wants.
  void Carry();
  void Do(const StartWorker& action, const std::string& why);
  void Do(const EnterEpoch& action, const std::string& why);
  void Do(const SendToWorker& action, const std::string& why);
  void Do(const SignalWorker& action, const std::string& why);
  void Do(const Publish& action, const std::string& why);
  void Do(const ReportBreak& action, const std::string& why);
  void Do(const RegisterAnew& action, const std::string& why);
  void Do(const ExitHost& action, const std::string& why);
  void EndStory(int code, const std::string& outcome);

  // A worker that the host wants to start, and that may have to wait until this machine is found
  // to be fit.
  struct WantedStart {
    StartWorker action;
    std::string why;
  };
  void StartNow(const WantedStart& wanted);
  void CheckHealth();
  void OnHealth(const HealthOutcome& outcome);
  void ReleaseStarts();
  bool DropStart(int index);

  TimePoint Now() { return world_.clock.Monotonic(); }
  int64_t Wall() { return world_.clock.WallNanos(); }

  const LaunchConfig config_;
  SupervisorWorld world_;
  Meeting meeting_;
  const std::string incarnation_;
  boost::asio::io_context loop_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer kill_timer_;
  boost::asio::steady_timer status_timer_;
  boost::asio::steady_timer page_timer_;
  boost::asio::steady_timer wait_timer_;
  boost::asio::steady_timer reap_timer_;
  std::optional<StatusLine> status_;   // on a terminal
  std::unique_ptr<StatusServer> page_;
  std::unique_ptr<AlivePort> alive_port_;
  std::vector<StatusHost> seen_hosts_;   // as the coordinator sees them, if it is ours
  int64_t slot_ = -1;
  TimeLedger ledger_;
  std::vector<std::optional<StatusFigures>> figures_;   // by seat
  JobStory story_;
  std::set<std::string> shunned_told_;   // incarnations
  std::string trouble_;               // why the store cannot be reached; empty: it can
  bool no_store_ = false;             // no store can be used, now or later
  TimePoint show_by_;
  bool has_silent_logs_ = false;
  std::optional<int> exit_code_;      // once the host has exited
  Interrupts interrupts_;
  bool interrupted_ = false;          // by SIGINT, ever
  bool killing_ = false;              // upon the second one
  bool carrying_ = false;
  bool has_started_ = false;          // a worker, ever
  bool has_contact_ = false;          // with a store, ever
  LostChildren lost_children_;
  TimePoint healthy_until_{};         // unless a worker ends
  std::vector<WantedStart> wanted_;   // for the next check
  std::vector<WantedStart> checked_;  // for the one that runs
  TimePoint check_began_{};
  std::shared_ptr<HealthCheck> health_;   // while it runs
  HostMachine host_;
  std::unique_ptr<Crew> crew_;
  std::unique_ptr<Board> board_;
  std::unique_ptr<NoticePoller> notices_;
};

}  // namespace keel
