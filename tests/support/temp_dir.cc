// Lives in TMPDIR, or /tmp.
#include "tests/support/temp_dir.h"

#include <boost/filesystem.hpp>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "base/environment.h"

namespace keel {
namespace {

bool MustStay() {
  const Environment environment = OwnEnvironment();
  const auto keep = environment.find("KEEL_KEEP_TEMP");
  return ::testing::Test::HasFailure() || (keep != environment.end() && keep->second == "1");
}

}  // namespace

TempDir::TempDir() {
  const Environment environment = OwnEnvironment();
  const auto root = environment.find("TMPDIR");
  path_ = (root == environment.end() ? "/tmp" : root->second) + "/keel-test-XXXXXX";
  const bool made = mkdtemp(path_.data()) != nullptr;
  KEEL_CHECK(made, "making " << path_ << ": " << std::strerror(errno));
}

TempDir::~TempDir() {
  if (MustStay()) {
    std::fprintf(stderr, "Kept for a look: %s\n", path_.c_str());
    return;
  }
  boost::system::error_code failed;
  boost::filesystem::remove_all(path_, failed);
  if (failed) std::fprintf(stderr, "removing %s: %s\n", path_.c_str(), failed.message().c_str());
}

}  // namespace keel
