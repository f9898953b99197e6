// keel cat: values as text, JSON and .npy; and what only a terminal gets to see.
#include <cstring>

#include "base/clock.h"
#include "tests/tools/keel_program.h"
#include "tests/tools/on_terminal.h"

namespace keel {
namespace {

const std::string kKeel = KEEL_BIN_DIR "/keel ";

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class KeelCat : public KeelProgram {
 protected:
  template <class T>
  void Add(const std::string& name, Dtype dtype, std::vector<int64_t> shape,
           const std::vector<T>& values) {
    Random random(1);
    named_.Add(name, dtype, std::move(shape), random);
    ASSERT_EQ(named_.bytes.back().size(), values.size() * sizeof(T)) << name;
    if (values.empty()) return;
    std::memcpy(named_.bytes.back().data(), values.data(), values.size() * sizeof(T));
  }
  void SetUp() override {
    Add<float>("m", Dtype::kF32, {2, 3}, {0.1f, -2, 3e-8f, 4, 5.5f, 1e30f});
    Add<int64_t>("big", Dtype::kI64, {2}, {INT64_MIN, INT64_MAX});
    Add<uint64_t>("huge", Dtype::kU64, {}, {UINT64_MAX});
    Add<uint8_t>("cube", Dtype::kU8, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
    Add<uint16_t>("half", Dtype::kBf16, {3}, {0x3F80, 0xC040, 0x7FC1});
    Add<uint8_t>("tiny", Dtype::kF8E4M3, {2}, {0x7E, 0x01});
    Add<float>("complex", Dtype::kC64, {1}, {1.5f, -2});
    Add<float>("odd", Dtype::kF32, {3}, {NAN, INFINITY, -INFINITY});
    Add<float>("none", Dtype::kF32, {0, 4}, {});
    step_ = SaveStep(named_, 5);
  }
  std::string Cat(const std::string& arguments) {
    return RunKeel("cat " + step_ + " " + arguments).out;
  }
  std::string Npy(const std::string& arguments) {
    const std::string path = dir_.path() + "/out.npy";
    const Ran ran = RunKeel("cat " + step_ + " " + arguments + " --format npy --output " + path);
    EXPECT_EQ(ran.exit_code, 0) << ran.out;
    const auto content = ReadWhole(files_, path, 1 << 24);
    EXPECT_OK(content);
    return content.ok() ? *content : "";
  }

  TestState named_;
  std::string step_;
};

TEST_F(KeelCat, OneRowALineWithAllDigits) {
  EXPECT_EQ(Cat("m"), "0.1 -2 3e-08\n4 5.5 1e+30\n");
  EXPECT_EQ(Cat("big"), "-9223372036854775808\n9223372036854775807\n");
  EXPECT_EQ(Cat("huge"), "18446744073709551615\n");
  EXPECT_EQ(Cat("cube"), "1 2\n3 4\n\n5 6\n7 8\n");
  EXPECT_EQ(Cat("tiny"), "448\n0.001953125\n");
  EXPECT_EQ(Cat("complex"), "1.5-2i\n");
  EXPECT_EQ(Cat("none"), "");
}

TEST_F(KeelCat, SlicesAsInPython) {
  EXPECT_EQ(Cat("m --slice ':, 1'"), "-2\n5.5\n");
  EXPECT_EQ(Cat("m '--slice=-1, ::-1'"), "1e+30\n5.5\n4\n");
  EXPECT_EQ(Cat("m --slice=-1:"), "4 5.5 1e+30\n");
  EXPECT_EQ(Cat("cube --slice '..., 0'"), "1 3\n5 7\n");
  EXPECT_EQ(Cat("m --slice 5:"), "");
  const Ran ran = RunKeel("cat " + step_ + " m --slice 0,3");
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_TRUE(Has(ran.out, "index 3 is not in dimension 1, which has 3 elements")) << ran.out;
}

TEST_F(KeelCat, SlicesAcrossFramesGiveTheRightElements) {
  const std::string step = SaveStep(state_, 9, "", 64);
  const float* const weight = reinterpret_cast<const float*>(state_.bytes[0].data());
  const Json json = KeelJson("cat " + step + " model.weight --slice '200:3:-49, ::3'");
  ASSERT_EQ(json["shape"], Json({5, 3}));
  for (size_t row = 0; row < 5; ++row) {
    for (size_t column = 0; column < 3; ++column) {
      const float expected = weight[(200 - 49 * row) * 8 + 3 * column];
      EXPECT_EQ(json["values"][row][column].get<float>(), expected);
    }
  }
}

TEST_F(KeelCat, JsonKeepsWhatJsonCanAndNamesTheRest) {
  const Json json = KeelJson("cat " + step_ + " odd");
  EXPECT_EQ(json["values"], Json({"nan", "inf", "-inf"}));
  EXPECT_EQ(json["dtype"], "f32");
  EXPECT_EQ(KeelJson("cat " + step_ + " huge")["values"], Json(UINT64_MAX));
  EXPECT_EQ(KeelJson("cat " + step_ + " big")["values"][0], Json(INT64_MIN));
  EXPECT_EQ(KeelJson("cat " + step_ + " complex")["values"], Json::parse("[[1.5, -2.0]]"));
  EXPECT_EQ(KeelJson("cat " + step_ + " none")["values"], Json::array());
  TestState large;
  Random random(1);
  large.Add("large", Dtype::kU8, {100'001}, random);
  const std::string step = SaveStep(large, 6);
  const Ran ran = RunKeel("cat --json " + step + " large");
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_TRUE(Has(ran.out, "at most 100000 values")) << ran.out;
  EXPECT_EQ(KeelJson("cat " + step + " large --slice ::2")["shape"], Json({50'001}));
}

TEST_F(KeelCat, NpyIsWhatNumpyWrites) {
  const std::string npy = Npy("m --slice 0:1");
  const std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }";
  ASSERT_EQ(npy.size(), 128u + 12);
  EXPECT_EQ(npy.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(npy.substr(10, head.size()), head);
  EXPECT_EQ(npy.substr(10 + head.size(), 118 - head.size()),
            std::string(117 - head.size(), ' ') + "\n");
  EXPECT_EQ(std::memcmp(npy.data() + 128, named_.bytes[0].data(), 12), 0);
  EXPECT_TRUE(Has(Npy("big"), "'<i8', 'fortran_order': False, 'shape': (2,), }"));
  EXPECT_TRUE(Has(Npy("huge"), "'<u8', 'fortran_order': False, 'shape': (), }"));
  EXPECT_TRUE(Has(Npy("complex"), "'<c8'"));
  EXPECT_TRUE(Has(Npy("cube"), "'|u1'"));
  EXPECT_EQ(Npy("none").size(), 128u);
}

TEST_F(KeelCat, WhatNumpyLacksBecomesFloat32ExactlyToo) {
  const std::string npy = Npy("half");
  EXPECT_TRUE(Has(npy, "'<f4'"));
  const uint32_t expected[] = {0x3F800000, 0xC0400000, 0x7FC10000};
  ASSERT_EQ(npy.size(), 128 + sizeof expected);
  EXPECT_EQ(std::memcmp(npy.data() + 128, expected, sizeof expected), 0);
}

TEST_F(KeelCat, AReaderThatHasSeenEnoughEndsItQuietly) {
  TestState large;
  Random random(1);
  large.Add("large", Dtype::kF32, {1 << 20}, random);
  const std::string step = SaveStep(large, 6);
  const std::string err = dir_.path() + "/err";
  const Ran ran = RunKeel("cat " + step + " large 2>" + err + " | head -2 | wc -l; cat " + err);
  EXPECT_EQ(ran.out, "2\n");
}

TEST_F(KeelCat, ADamagedFrameIsAnErrorAndLeavesNoFile) {
  FlipByte(ShardOf(step_), 64 + 40 + 3);
  const std::string path = dir_.path() + "/out";
  const Ran ran = RunKeel("cat " + step_ + " m --output " + path);
  EXPECT_EQ(RunKeel("cat " + step_ + " big").exit_code + ran.exit_code, 3) << "only one frame";
  EXPECT_FALSE(*Exists(files_, path) && ran.exit_code == 3);
  EXPECT_FALSE(*Exists(files_, path + ".keel-tmp"));
}

TEST_F(KeelCat, ALinkIsFollowedAndStays) {
  const std::string file = dir_.File("file"), link = dir_.File("link"), far = dir_.File("far");
  const std::string expected = RunKeel("cat " + step_ + " m").out;
  ASSERT_EQ(RunShell("ln -s file " + link + "; ln -s " + link + " " + far).exit_code, 0);
  for (int twice = 0; twice < 2; ++twice) {  // it leads to nothing yet, then to a file
    const Ran ran = RunKeel("cat " + step_ + " m --output " + far);
    EXPECT_EQ(ran.exit_code, 0) << ran.out;
    EXPECT_EQ(RunShell("cat " + file).out, expected);
    EXPECT_EQ(RunShell("readlink " + link + " " + far).out, "file\n" + link + "\n");
  }
  ASSERT_EQ(RunShell("ln -s loop " + dir_.File("loop")).exit_code, 0);
  EXPECT_EQ(RunKeel("cat " + step_ + " m --output " + dir_.File("loop")).exit_code, 3);
}

TEST_F(KeelCat, WhatIsNoFileIsWrittenToAndNeverReplaced) {
  const std::string expected = RunKeel("cat " + step_ + " m").out;
  // Links as /dev has them, in a folder of our own: a mistake must not cost the machine its own.
  const std::string out = dir_.File("stdout"), file = dir_.File("file"), pipe = dir_.File("pipe");
  ASSERT_EQ(RunShell("ln -s /proc/self/fd/1 " + out + "; mkfifo " + pipe).exit_code, 0);
  const std::string cat = KEEL_BIN_DIR "/keel cat " + step_ + " m --output ";
  EXPECT_EQ(RunShell(cat + out).out, expected);
  EXPECT_EQ(RunShell("{ echo before; " + cat + out + "; } > " + file + "; cat " + file).out,
            "before\n" + expected);
  EXPECT_EQ(RunShell("readlink " + out).out, "/proc/self/fd/1\n");
  EXPECT_EQ(RunShell("cat " + pipe + " & " + cat + pipe + " >/dev/null; wait").out, expected);
  EXPECT_EQ(RunShell("test -p " + pipe).exit_code, 0);
  EXPECT_EQ(RunShell(cat + "/proc/self/fd/7 7>" + file + " >/dev/null; cat " + file).out,
            expected);
  EXPECT_EQ(RunShell(cat + "/dev/null && test -c /dev/null").exit_code, 0);
}

TEST_F(KeelCat, HelpfulErrors) {
  const Ran name = RunKeel("cat " + step_ + " bigg");
  EXPECT_EQ(name.exit_code, 3);
  EXPECT_TRUE(Has(name.out, "did you mean 'big'")) << name.out;
  EXPECT_TRUE(Has(Cat("m --output " + dir_.path()), "no file but a directory"));
  EXPECT_TRUE(Has(Cat("m --format npy --json"), "--output"));
  EXPECT_EQ(RunKeel("cat " + step_).exit_code, 2);
}

TEST_F(KeelCat, NpyIsNotForTerminals) {
  const OnScreen screen = RunOnTerminal(kKeel + "cat " + step_ + " m --format npy");
  EXPECT_EQ(screen.exit_code, 3);
  EXPECT_TRUE(Has(screen.text, "cannot be shown on a terminal")) << screen.text;
  EXPECT_FALSE(Has(screen.text, "NUMPY"));
  EXPECT_TRUE(Has(RunKeel("cat " + step_ + " m --format npy | cat").out, "NUMPY"));
}

TEST_F(KeelCat, ColoursAreForTerminalsThatShowThem) {
  EXPECT_TRUE(Has(RunOnTerminal(kKeel + "ls " + root()).text, "\x1b[32mcomplete\x1b[0m"));
  for (const char* const how : {"NO_COLOR=1 ", "TERM=dumb "}) {
    const OnScreen screen = RunOnTerminal(how + kKeel + "ls " + root());
    EXPECT_TRUE(Has(screen.text, "complete")) << screen.text;
    EXPECT_FALSE(Has(screen.text, "\x1b")) << how << screen.text;
  }
  EXPECT_FALSE(Has(RunOnTerminal(kKeel + "ls " + root() + " | cat").text, "\x1b"));
}

TEST_F(KeelCat, NoBarForWorkOfAMoment) {
  const TimePoint start = RealClock().Monotonic();
  const OnScreen screen = RunOnTerminal(kKeel + "verify " + step_);
  EXPECT_EQ(screen.exit_code, 0);
  if (RealClock().Monotonic() - start >= std::chrono::seconds(1)) {
    GTEST_SKIP() << "this machine was too busy for work of a moment";
  }
  EXPECT_FALSE(Has(screen.text, "\x1b[K")) << screen.text;
}

TEST_F(KeelCat, SizesThatOverflowBeforeA0AreTooMuchForJson) {
  TestState state;
  Random random(1);
  state.Add("hostile", Dtype::kU8, {4, int64_t{1} << 62, 0}, random);
  const Ran ran = RunKeel("cat " + SaveStep(state, 6) + " hostile --json");
  EXPECT_EQ(ran.exit_code, 3) << ran.out;
  EXPECT_TRUE(Has(ran.out, "is too much for --json")) << ran.out;
}

}  // namespace
}  // namespace keel
