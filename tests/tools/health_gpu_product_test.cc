// What gpu_product.py says that GPUs have computed, and what is concluded: from its words here, and
// from programs that stand for Python.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/file_helpers.h"
#include "base/posix_files.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/temp_dir.h"
#include "tools/keel/health_gpu_product.h"
#include "tools/keel/health_look.h"

namespace keel {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Findings = std::vector<HealthFinding>;

constexpr const char* kGpus =
    R"({"torch": "2.11.0+cu130", "gpus": [{"index": 0, "name": "NVIDIA H100", "uuid": "GPU-aa", )"
    R"("bus": "00000000:3B:00.0"}, {"index": 1, "name": "NVIDIA H100"}]})"
    "\n";
constexpr const char* kSoundZero =
    R"({"gpu": 0, "products": 24, "kinds": ["float32", "TF32"], "wrong": [], "trouble": "", )"
    R"("hung": false})"
    "\n";
constexpr const char* kSoundOne =
    R"({"gpu": 1, "products": 48, "kinds": ["TF32", "float32", "x"], "wrong": [], "trouble": "", )"
    R"("hung": false})"
    "\n";

std::string ProductText(const Findings& findings) {
  std::string text;
  for (const HealthFinding& one : findings) {
    EXPECT_EQ(one.check, "gpu product");
    if (one.fitness == Fitness::kUnfit) {
      EXPECT_NE(one.cure, "") << one.what;
    }
    text += std::string(FitnessName(one.fitness)) + ": " + one.what + "\n";
  }
  return text;
}

Findings OfOutput(const std::string& out, const std::string& trouble = "",
                  const std::string& err = "") {
  return GpuProductFindings({"python3", trouble, out, err});
}

std::string OfGpuOne(const std::string& more) {
  return R"({"gpu": 1, "products": 48, )" + more + "}\n";
}

TEST(HealthGpuProduct, GpusThatComputeRightlyAreFit) {
  EXPECT_EQ(ProductText(OfOutput(std::string(kGpus) + kSoundZero + kSoundOne)),
            "fit: 2 GPUs computed what they should, 72 matrix products in all (float32, TF32)\n");
}

TEST(HealthGpuProduct, AWrongOneIsNamedWithWhatDiffers) {
  const Findings findings = OfOutput(
      std::string(kGpus) + kSoundZero +
      OfGpuOne(R"("wrong": [{"kind": "bfloat16", "times": 2, "elements": 4096, "differing": 3, )"
               R"("shape": "64 x 96 by 96 x 64", "row": 4, "column": 17, "found": "12", )"
               R"("right": "13"}])"));
  EXPECT_EQ(ProductText(findings),
            "fit: 1 GPU computed what they should, 24 matrix products in all (float32, TF32)\n"
            "unfit: GPU 1 (NVIDIA H100) computed another product than it should, with bfloat16: 3 "
            "of 4096 elements differ, the first at row 4, column 17: 12, not 13 (64 x 96 by 96 x "
            "64; 2 of 48 products were wrong)\n");
}

TEST(HealthGpuProduct, AWrongComparisonIsAFaultToo) {
  const std::string wrong = OfGpuOne(R"("wrong": [{"kind": "TF32", "times": 1, "differing": 0}])");
  EXPECT_THAT(ProductText(OfOutput(std::string(kGpus) + kSoundZero + wrong)),
              HasSubstr("unfit: GPU 1 (NVIDIA H100) computed another product than it should, with "
                        "TF32: the processor finds it right, where the GPU found"));
}

TEST(HealthGpuProduct, WhatAllGpusGetWrongAlikeIsNoFaultOfOne) {
  const auto wrong = [](int gpu, const char* found, int times) {
    return "{\"gpu\": " + std::to_string(gpu) + R"(, "products": 48, "wrong": [{"kind": "TF32", )" +
           R"("elements": 9, "differing": 1, "row": 0, "column": 0, "shape": "3 x 3 by 3 x 3", )" +
           R"("right": "1", "found": ")" + found + R"(", "times": )" + std::to_string(times) +
           "}]}\n";
  };
  const Findings alike = OfOutput(kGpus + wrong(0, "2", 7) + wrong(1, "2", 9));
  EXPECT_EQ(ProductText(alike),
            "not known: all 2 GPUs computed the same other product than they should, with TF32: 1 "
            "of 9 elements differ, the first at row 0, column 0: 2, not 1 (3 x 3 by 3 x 3), which "
            "their kernels may do, and no fault of one GPU\n");
  const std::string three =
      R"({"torch": "2.11.0", "gpus": [{"index": 0}, {"index": 1}, {"index": 2}]})" "\n";
  EXPECT_TRUE(IsFit(OfOutput(three + wrong(0, "2", 7) + wrong(1, "2", 9) +
                             R"({"gpu": 2, "products": 0, "trouble": "out of memory"})" "\n")))
      << "one that has computed nothing says nothing of the others";
  for (const std::string& out : {wrong(0, "2", 7) + wrong(1, "3", 7), wrong(1, "2", 7) + kSoundZero,
                                 wrong(1, "2", 7)}) {
    EXPECT_FALSE(IsFit(OfOutput(kGpus + out))) << out;
  }
}

TEST(HealthGpuProduct, OneThatHangsIsUnfit) {
  EXPECT_THAT(ProductText(OfOutput(std::string(kGpus) + kSoundZero +
                                   OfGpuOne(R"("wrong": [], "hung": true)"))),
              EndsWith("unfit: GPU 1 (NVIDIA H100) did not finish matrix products that take "
                       "milliseconds\n"));
}

TEST(HealthGpuProduct, OfCudasErrorsOnlyThoseOfHardwareAreFaults) {
  for (const char* words :
       {"CUDA error: uncorrectable ECC error encountered", "CUDA error: unspecified launch failure",
        "CUDA error: an illegal memory access was encountered"}) {
    EXPECT_TRUE(IsOfHardware(words));
    const std::string trouble = OfGpuOne(R"("trouble": ")" + std::string(words) + "\"");
    EXPECT_THAT(ProductText(OfOutput(std::string(kGpus) + kSoundZero + trouble)),
                EndsWith("unfit: GPU 1 (NVIDIA H100) could not compute a matrix product: " +
                         std::string(words) + "\n"));
  }
  for (const char* words :
       {"CUDA out of memory. Tried to allocate 20.00 MiB.",
        "CUDA error: no kernel image is available for execution on the device",
        "CUDA error: all CUDA-capable devices are busy or unavailable"}) {
    EXPECT_FALSE(IsOfHardware(words));
    const std::string trouble = OfGpuOne(R"("trouble": ")" + std::string(words) + "\"");
    const Findings findings = OfOutput(std::string(kGpus) + kSoundZero + trouble);
    EXPECT_TRUE(IsFit(findings)) << ProductText(findings);
    EXPECT_THAT(ProductText(findings), HasSubstr("not known: GPU 1 (NVIDIA H100) could"));
  }
}

TEST(HealthGpuProduct, APythonThatCannotIsNoFault) {
  const Findings findings =
      OfOutput("{\"trouble\": \"it cannot import PyTorch: No module named 'torch'\"}\n");
  EXPECT_EQ(ProductText(findings),
            "not known: python3 computed no product: it cannot import PyTorch: No module named "
            "'torch'\n");
  EXPECT_THAT(findings[0].cure, HasSubstr("--python"));
}

TEST(HealthGpuProduct, SilenceAndGarbageAreNoFault) {
  const std::vector<std::string> outs = {
      "", "garbage", "{}", "[]", "null\n1\n\"x\"\n", "{\"gpus\": []}\n", "{\"gpus\": 3}",
      "{\"gpus\": [1, null, {}, {\"index\": -1}, {\"index\": \"0\"}]}\n",
      "{\"gpu\": 0, \"products\": 9}\n", std::string("\0\xff\xfe{", 4)};
  for (const std::string& out : outs) {
    const Findings findings = OfOutput(out);
    ASSERT_EQ(findings.size(), 1u) << out;
    EXPECT_THAT(ProductText(findings),
                StartsWith("not known: python3 ended, and told of no product"));
  }
  EXPECT_EQ(ProductText(OfOutput("", "was killed by signal 9", "one\nlast words\n")),
            "not known: python3 was killed by signal 9, and told of no product, and says \"last "
            "words\"\n");
}

TEST(HealthGpuProduct, WordsOfOthersBesideItsOwnAreLeft) {
  EXPECT_THAT(ProductText(OfOutput("hello\n" + std::string(kGpus) + "{\"a\": 1}\n" + kSoundZero +
                                   "bye\n" + kSoundOne)),
              StartsWith("fit: 2 GPUs"));
}

TEST(HealthGpuProduct, AGpuOfWhichNothingIsToldIsNotKnown) {
  EXPECT_THAT(ProductText(OfOutput(std::string(kGpus) + kSoundZero, "did not end within 31 s")),
              AllOf(StartsWith("fit: 1 GPU "),
                    HasSubstr("not known: python3 did not end within 31 s, and told of no product "
                              "of GPU 1 (NVIDIA H100)")));
  EXPECT_TRUE(IsFit(OfOutput(kGpus))) << "nobody computed anything";
  EXPECT_EQ(OfOutput(kGpus)[0].fitness, Fitness::kUnknown);
}

// Whatever is missing or of another kind, at whatever place it is cut.
TEST(HealthGpuProduct, TakesAnyWords) {
  const std::string whole =
      std::string(kGpus) +
      OfGpuOne(R"("wrong": [{"kind": 3, "differing": -1}, 7, null, {"kind": "\u001b[2J\n"}], )"
               R"("trouble": "\u001b[31m", "hung": "yes")") +
      R"({"gpu": 0, "products": 18446744073709551615, "wrong": {}})";
  size_t visits = 0;
  for (size_t size = 0; size <= whole.size(); ++size, ++visits) {
    for (const HealthFinding& one : OfOutput(whole.substr(0, size))) {
      for (const char byte : one.what) ASSERT_GE(static_cast<unsigned char>(byte), ' ');
    }
  }
  EXPECT_EQ(visits, whole.size() + 1);
}

// --- programs that stand for Python ---

class HealthPython : public testing::Test {
 protected:
  Findings Ask(const std::string& script, Duration limit = std::chrono::minutes(5)) {
    const std::string path = dir_.File("python3");
    EXPECT_OK(WriteDurably(files_, path, "#!/bin/bash\n" + script + "\n"));
    EXPECT_EQ(::chmod(path.c_str(), 0755), 0);
    const auto findings = ComputeOnGpus({path, true, limit}, "/lib/gpu_product.py", 0.25);
    EXPECT_OK(findings);
    return findings.ok() ? *findings : Findings();
  }

  const TempDir dir_;
  PosixFiles files_;
};

TEST_F(HealthPython, IsStartedWithTheModule) {
  (void)Ask("echo \"$*\" >" + dir_.File("asked"));
  const auto asked = ReadWhole(files_, dir_.File("asked"), 4096);
  ASSERT_OK(asked);
  EXPECT_EQ(*asked, "-B -u /lib/gpu_product.py --seconds=0.25\n");
}

TEST_F(HealthPython, WhateverItDoesInsteadIsNoFault) {
  const std::pair<const char*, const char*> rows[] = {
      {"exit 0", " ended, and told of no product"},
      {"echo Traceback: x >&2; exit 1", " exited with 1, and told of no product, and says \"Trace"},
      {"kill -SEGV $$", " killed by signal 11 (SIGSEGV), and told of no product"},
      {"while :; do echo 0123456789012345678901234567890123456789; done", " said more than 1 MiB"},
      {"head -c 100000 /dev/urandom", " ended, and told of no product"}};
  for (const auto& [script, words] : rows) {
    const Findings findings = Ask(script);
    ASSERT_EQ(findings.size(), 1u) << script;
    EXPECT_EQ(findings[0].fitness, Fitness::kUnknown) << script;
    EXPECT_THAT(findings[0].what, HasSubstr(words)) << script;
  }
  const auto none = ComputeOnGpus({"no-such-python", false, {}}, "/lib/gpu_product.py", 0);
  ASSERT_OK(none);
  EXPECT_THAT(ProductText(*none), StartsWith("not known: there is no no-such-python on the PATH"));
}

TEST_F(HealthPython, WhatHangsIsEndedAndItsWordsCount) {
  const Findings findings = Ask("cat <<'END'\n" + std::string(kGpus) + kSoundZero +
                                    "END\nexec sleep 3600",
                                std::chrono::seconds(3));
  EXPECT_THAT(ProductText(findings),
              AllOf(StartsWith("fit: 1 GPU "),
                    HasSubstr("did not end within 3.25 s, and told of no product of GPU 1")));
}

}  // namespace
}  // namespace keel
