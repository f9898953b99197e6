// JobTest: what the tests of whole training jobs share: the real `keelrun` with
// tests/trainer/model_train.cc, started in several ways, and the last line that it ends with.
// Promises   every wait ends (tests/harness/launched.h).
// Threads    one.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/harness/free_port.h"
#include "tests/harness/launched.h"

namespace keel {

using Words = std::vector<std::string>;

inline Words Joined(Words all, const Words& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

class JobTest : public ::testing::Test {
 protected:
  static constexpr const char* kProgram = KEEL_BIN_DIR "/model_train";

  std::unique_ptr<Launched> Start(int workers, const Words& options,
                                  const Words& of_keelrun = {}) {
    const Words arguments = {"--standalone", "--nproc-per-node=" + std::to_string(workers)};
    return Launch(Joined(Joined(Joined(arguments, of_keelrun), {kProgram}), options));
  }
  // A host of a job that goes on with or without the others.
  std::unique_ptr<Launched> StartHost(int workers, const Words& options,
                                      const std::string& hosts = "1:2") {
    return Launch(Joined({"--rdzv-backend=c10d", "--rdzv-id=job", "--nnodes=" + hosts,
                          "--rdzv-endpoint=127.0.0.1:" + std::to_string(port_),
                          "--nproc-per-node=" + std::to_string(workers),
                          "--rdzv-conf=last_call_timeout=0.2", kProgram},
                         options));
  }
  // Without a launcher.
  std::unique_ptr<Launched> StartAlone(const Words& options) {
    return std::make_unique<Launched>(folder_, Name(),
                                      Launched::Command{Joined({kProgram}, options)});
  }
  // The last line of a job that shall end well.
  std::string LastLine(int workers, const Words& options) {
    const auto job = Start(workers, options);
    EXPECT_EQ(job->ExitCode(), 0) << job->Output();
    return LastLineOf(*job);
  }
  static std::string LastLineOf(Launched& job) {
    EXPECT_EQ(job.Count("^final step="), 1) << job.Output();
    return job.Await("^final step=");
  }

  std::unique_ptr<Launched> Launch(const Words& arguments) {
    return std::make_unique<Launched>(folder_, Name(), arguments);
  }

  TempDir folder_;
  const uint16_t port_ = FreePort();

 private:
  std::string Name() { return "job" + std::to_string(started_++); }

  int started_ = 0;
};

}  // namespace keel
