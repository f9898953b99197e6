// Every byte arrives, and none beside them, wherever a copy begins and ends.
#include "ckpt/copy_aside.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace keel {
namespace {

TEST(CopyAside, CopiesTheBytesAndNoOther) {
  constexpr size_t kRoom = 1200;
  Random random(7);
  for (size_t to = 0; to < 70; ++to) {
    const size_t from = to * 37 % 65;
    for (const size_t bytes : {0, 1, 15, 63, 64, 65, 127, 128, 500, 1024}) {
      std::vector<std::byte> source(kRoom);
      for (std::byte& one : source) one = static_cast<std::byte>(random.Uniform(255));
      std::vector<std::byte> target(kRoom, std::byte{255});
      auto expected = target;
      std::copy_n(source.begin() + from, bytes, expected.begin() + to);
      CopyAside(target.data() + to, source.data() + from, bytes);
      ASSERT_EQ(target, expected) << bytes << " bytes from " << from << " to " << to;
    }
  }
}

}  // namespace
}  // namespace keel
