// Who may have a status line.
#include "elastic/launch/terminal_use.h"

#include <gtest/gtest.h>

namespace keel {
namespace {

TEST(StatusLine, IsNotForProgramsThatReadUs) {
  LaunchConfig config;
  config.log_format = LogFormat::kJson;
  EXPECT_FALSE(WantsStatusLine(config, "xterm"));
}

}  // namespace
}  // namespace keel
