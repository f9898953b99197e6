// What TempDir promises. That it stays after a failure is shown through KEEL_KEEP_TEMP, the same
// branch.
#include "tests/support/temp_dir.h"

#include <boost/filesystem.hpp>
#include <gtest/gtest.h>

#include <cstdlib>

namespace keel {
namespace {

TEST(TempDir, IsUniqueAndGoesWithAllItHolds) {
  std::string path;
  {
    const TempDir first;
    const TempDir second;
    EXPECT_NE(first.path(), second.path());
    path = first.path();
    ASSERT_TRUE(boost::filesystem::create_directories(first.File("a/b/c")));
  }
  EXPECT_FALSE(boost::filesystem::exists(path));
}

TEST(TempDir, StaysWhenAskedTo) {
  std::string path;
  ASSERT_EQ(setenv("KEEL_KEEP_TEMP", "1", 1), 0);
  {
    const TempDir folder;
    path = folder.path();
  }
  ASSERT_EQ(unsetenv("KEEL_KEEP_TEMP"), 0);
  EXPECT_TRUE(boost::filesystem::exists(path));
  boost::filesystem::remove_all(path);
}

}  // namespace
}  // namespace keel
