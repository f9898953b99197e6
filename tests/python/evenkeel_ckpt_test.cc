// The reader in Python against the engine: what one has written, the other must read, to the bit.
// check_evenkeel_ckpt.py does Python's half; this program writes checkpoints and raw copies.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/digest.h"
#include "base/file_helpers.h"
#include "base/posix_files.h"
#include "ckpt/dtype.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

class PythonReader : public testing::Test {
 protected:
  void SetUp() override {
    if (::access(KEEL_TEST_PYTHON, X_OK) != 0) {
      GTEST_SKIP() << "there is no " << KEEL_TEST_PYTHON << " (numpy, zstandard): "
                   << "tools/setup.sh --tests makes it";
    }
  }

  // Runs a check, which must succeed; `arguments` go through the shell.
  void Check(const std::string& arguments) {
    const std::string command = KEEL_TEST_PYTHON " -B " KEEL_SOURCE_DIR
                                                 "/tests/python/check_evenkeel_ckpt.py " +
                                arguments + " 2>&1";
    FILE* const pipe = ::popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::string out;
    char buffer[4096];
    for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
      out.append(buffer, got);
    }
    const int status = ::pclose(pipe);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << out;
    std::printf("%s", out.c_str());
  }

  void Write(const std::string& path, std::span<const std::byte> bytes) {
    const auto file = files_.Open(path, {.write = true, .create = true, .truncate = true});
    ASSERT_OK(file);
    ASSERT_OK((*file)->WriteAt(0, bytes));
  }

  // Tensors one behind the other in DIR/bytes, and a line for each in DIR/list.
  void Dump(const TestState& state, const std::string& dir) {
    ASSERT_OK(MakeDirs(files_, dir));
    std::string all, list;
    for (size_t i = 0; i < state.specs.size(); ++i) {
      const TensorSpec& spec = state.specs[i];
      list += spec.name + "\t" + std::string(DtypeName(spec.dtype)) + "\t" +
              ShapeText(spec.shape) + "\t" + std::to_string(all.size()) + "\t" +
              std::to_string(state.bytes[i].size()) + "\n";
      all.append(reinterpret_cast<const char*>(state.bytes[i].data()), state.bytes[i].size());
    }
    Write(dir + "/bytes", BytesOf(all));
    Write(dir + "/list", BytesOf(list));
  }

  void SaveBy(uint32_t writers, SavePlan plan, const TestState& state) {
    plan.parts = writers;
    std::vector<std::unique_ptr<Save>> saves;
    for (plan.part = 0; plan.part < writers; ++plan.part) {
      MemorySource source(state.Spans());
      auto save = Save::Begin(files_, plan);
      ASSERT_OK(save);
      ASSERT_OK((*save)->WriteShard(source, {}));
      saves.push_back(std::move(*save));
    }
    ASSERT_OK(saves[0]->Commit(1'795'000'000'000'000'000));
  }

  const TempDir dir_;
  PosixFiles files_;
};

// Of every dtype: many elements, one, none; and weights that the planes codec takes apart.
TestState AllDtypesState() {
  Random random(11);
  TestState state;
  for (const Dtype dtype : AllDtypes()) {
    const std::string name(DtypeName(dtype));
    state.Add("many." + name, dtype, {3, 333}, random);
    state.Add("scalar." + name, dtype, {}, random);
    state.Add("empty." + name, dtype, {0, 7}, random);
    if (dtype == Dtype::kBool) {
      for (std::byte& one : state.bytes[state.bytes.size() - 3]) one &= std::byte{1};
      state.bytes[state.bytes.size() - 2][0] = std::byte{1};
    }
  }
  state.Add("weights[0]/\xC3\xA9", Dtype::kF32, {90'001}, random);
  state.Add("half", Dtype::kBf16, {50'003}, random);
  const auto& weights = state.bytes[state.bytes.size() - 2];
  for (size_t i = 0; i < state.bytes.back().size(); i += 2) {  // the upper halves of the weights
    std::memcpy(state.bytes.back().data() + i, weights.data() + 2 * i + 2, 2);
  }
  state.Add("zeros", Dtype::kF64, {40'000}, random);
  std::fill(state.bytes.back().begin(), state.bytes.back().end(), std::byte{0});
  return state;
}

TEST_F(PythonReader, HashesAsTheEngineDoes) {
  Random random(3);
  std::string bytes(5'000'000, '\0');
  random.Bytes(std::as_writable_bytes(std::span(bytes)));
  std::vector<std::pair<size_t, size_t>> ranges;
  for (size_t length = 0; length <= 1100; ++length) ranges.push_back({random.Uniform(999), length});
  for (const size_t length : {2048, 2049, 4096, 65'536, 524'288, 524'287, 1'000'003, 4'999'000}) {
    ranges.push_back({random.Uniform(999), length});
  }
  std::string lines;
  for (const auto& [at, length] : ranges) {
    const Digest digest = DigestOf(BytesOf(bytes).subspan(at, length));
    lines += std::to_string(at) + " " + std::to_string(length) + " " + digest.Hex() + "\n";
  }
  Write(dir_.File("bytes"), BytesOf(bytes));
  Write(dir_.File("digests"), BytesOf(lines));
  Check("digests " + dir_.path());
}

// As cron, a container or a full disk give it to a program.
TEST_F(PythonReader, AsAProgramItListsOnAnAsciiTerminalAndSaysThatADiskIsFull) {
  const TestState state = AllDtypesState();
  SaveBy(1, PlanOf(state, dir_.File("run"), 1, 1), state);
  const std::string program = "LC_ALL=C PYTHONIOENCODING=ascii " KEEL_TEST_PYTHON
                              " -B " KEEL_SOURCE_DIR "/tools/python/evenkeel_ckpt.py ";
  const auto run = [&](const std::string& redirection, int exit_code, const std::string& part) {
    const std::string out = dir_.File("out");
    const std::string command = program + dir_.File("run") + " >" + out + " 2>&1 " + redirection;
    const int status = std::system(command.c_str());
    EXPECT_EQ(WEXITSTATUS(status), exit_code);
    const auto text = ReadWhole(files_, out, 1 << 20);
    ASSERT_OK(text);
    EXPECT_NE(text->find(part), std::string::npos) << *text;
    EXPECT_EQ(text->find("Traceback"), std::string::npos) << *text;
  };
  run("", 0, "weights[0]/\\xe9");
  run(">/dev/full", 1, "No space left on device");
}

TEST_F(PythonReader, LoadsWhatTheEngineWrites) {
  const TestState state = AllDtypesState();
  Dump(state, dir_.File("dump"));
  uint64_t step = 0;
  for (const Codec codec : {Codec::kNone, Codec::kZstd, Codec::kPlanes}) {
    for (const uint32_t writers : {1u, 3u}) {
      for (const uint32_t frame_bytes : {64u * 15, 4096u, kFrameBytes}) {
        ++step;
        SavePlan plan = PlanOf(state, dir_.File("run"), step, step, frame_bytes);
        plan.description.codec = codec;
        SaveBy(writers, plan, state);
      }
    }
  }
  Check("compare " + dir_.File("run") + " " + dir_.File("dump"));
}

TEST_F(PythonReader, LoadsACheckpointOfNothing) {
  const TestState none;
  Dump(none, dir_.File("dump"));
  SaveBy(2, PlanOf(none, dir_.File("run"), 1, 1), none);
  Check("compare " + dir_.File("run") + " " + dir_.File("dump"));
}

TEST_F(PythonReader, LoadsPartsByPattern) {
  const TestState state = AllDtypesState();
  SaveBy(2, PlanOf(state, dir_.File("run"), 1, 1, 4096), state);
  Check("partial " + dir_.File("run"));
}

TEST_F(PythonReader, FindsEveryFlippedByte) {
  const TestState state = TestState::Make(4, 3000);
  SaveBy(2, PlanOf(state, dir_.File("run"), 1, 1, 1024), state);
  Check("flips " + dir_.File("run") + " 21 400");
}

TEST_F(PythonReader, FindsEveryTruncation) {
  const TestState state = TestState::Make(4, 200);
  SaveBy(1, PlanOf(state, dir_.File("run"), 1, 1, 1024), state);
  Check("cuts " + dir_.File("run"));
}

TEST_F(PythonReader, FindsTheCheckpointThatIsMeant) {
  const TestState state = TestState::Make(4, 200);
  for (const uint64_t step : {1, 20, 300}) {
    SaveBy(1, PlanOf(state, dir_.File("run"), step, step, 1024), state);
  }
  ASSERT_OK(MakeDirs(files_, dir_.File("run/step-000000400")));
  Check("resolve " + dir_.File("run"));
}

TEST_F(PythonReader, TakesTheNextWhereAJobReplacesTheOnlyCheckpoint) {
  const TestState state = TestState::Make(4, 200);
  for (const uint64_t step : {20, 300}) {
    SaveBy(1, PlanOf(state, dir_.File("run"), step, step, 1024), state);
  }
  Check("replaced " + dir_.File("run"));
}

TEST_F(PythonReader, ListsOnTheCommandLine) {
  const TestState state = TestState::Make(4, 200);
  SaveBy(1, PlanOf(state, dir_.File("run"), 7, 7, 1024), state);
  Check("command " + dir_.File("run"));
}

TEST_F(PythonReader, RefusesAnotherStepThanTheOneThatIsNamed) {
  const TestState state = TestState::Make(4, 200);
  SaveBy(1, PlanOf(state, dir_.File("run"), 20, 20, 1024), state);
  ASSERT_OK(files_.Rename(dir_.File("run/step-000000020"), dir_.File("run/step-000000021")));
  Check("misnamed " + dir_.File("run"));
}

}  // namespace
}  // namespace keel
