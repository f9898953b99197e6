// Each launcher is told of the same endpoint, which is a port of this machine.
#include "tests/tools/job_hosts.h"

#include <algorithm>
#include <map>

#include "base/random.h"
#include "tests/harness/free_port.h"
#include "tests/support/file_text.h"

namespace keel {
namespace {

std::string NewMark() {
  Random random(EntropySeed());
  return "KEEL_TEST_JOB_" + RandomId(random, 16);
}

}  // namespace

JobHosts::JobHosts(int workers_per_host)
    : workers_per_host_(workers_per_host),
      done_file_(folder_.File("done")),
      port_(FreePort()),
      mark_(NewMark()) {}

std::unique_ptr<Launched> JobHosts::Start(const std::string& name, std::vector<std::string> options,
                                          const std::vector<std::string>& program,
                                          const Environment& environment) {
  std::vector<std::string> arguments = {
      "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:" + std::to_string(port_), "--rdzv-id=job",
      "--nproc-per-node=" + std::to_string(workers_per_host_)};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), program.begin(), program.end());
  return std::make_unique<Launched>(folder_, name, std::move(arguments),
                                    With(environment, {{mark_, "1"}}));
}

std::unique_ptr<Launched> JobHosts::StartForeign(const std::string& name,
                                                 const std::vector<std::string>& options) {
  return Start(name, options,
               {"--no-python", "sh", "-c",
                "echo up group=$GROUP_RANK rank=$RANK of=$WORLD_SIZE; "
                "while [ ! -e " + done_file_ + " ]; do sleep 0.05; done"});
}

std::unique_ptr<Launched> JobHosts::StartSurvivor(const std::string& name,
                                                  const std::vector<std::string>& options,
                                                  const Environment& environment) {
  return Start(name, options, {KEEL_BIN_DIR "/survivor", done_file_}, environment);
}

void JobHosts::LetFinish() { WriteFile(done_file_, ""); }

std::vector<Entry> AwaitEntries(Launched& host, int world, int workers, int64_t after,
                                int64_t without) {
  std::map<int64_t, std::vector<Entry>> epochs;
  for (int i = 1;; ++i) {
    const std::string line =
        host.Await("^epoch [0-9]+ rank [0-9]+ of " + std::to_string(world) + " ", i);
    if (line.empty()) return {};   // the test has failed
    const Entry entry = {NumberAfter(line, "epoch"), NumberAfter(line, "pid"),
                         NumberAfter(line, "count")};
    if (entry.epoch <= after || entry.pid == without) continue;
    std::vector<Entry>& entries = epochs[entry.epoch];
    entries.push_back(entry);
    if (static_cast<int>(entries.size()) < workers) continue;
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.pid < b.pid; });
    return entries;
  }
}

}  // namespace keel
