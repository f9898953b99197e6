// Errors of GPUs in the kernel's log: how the log is read, which lines tell one, and what each
// number is taken for.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/fd.h"
#include "base/file_helpers.h"
#include "base/posix_files.h"
#include "base/text.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/temp_dir.h"
#include "tools/keel/health_look.h"
#include "tools/keel/health_xid.h"
#include "tools/keel/kernel_log.h"
#include "tools/keel/xid_table.h"

namespace keel {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

using Findings = std::vector<HealthFinding>;

std::string XidText(const Findings& findings) {
  std::string text;
  for (const HealthFinding& one : findings) {
    EXPECT_EQ(one.check, "xid");
    text += std::string(FitnessName(one.fitness)) + ": " + one.what + "\n";
  }
  return text;
}

Findings OfLog(const std::string& log) {
  XidReader reader;
  for (const std::string& line : SplitList(log, '\n')) reader.Add(line);
  return XidFindings(reader, "the log");
}

std::string Xid(int number, const std::string& words = "", const std::string& bus = "0000:3b:00") {
  return "NVRM: Xid (PCI:" + bus + "): " + std::to_string(number) +
         (words.empty() ? "" : ", " + words);
}

// --- the table ---

TEST(XidTable, EachNumberIsInOneRowAndWhatMakesUnfitHasACure) {
  std::vector<const XidKind*> rows;
  for (int number = 0; number < 1000; ++number) {
    const XidKind* const kind = FindXid(number);
    if (kind == nullptr) continue;
    EXPECT_LE(kind->first, kind->last);
    EXPECT_THAT(std::string(kind->what), Not(IsEmpty()));
    const bool may_be_unfit =
        kind->meaning != XidMeaning::kTold && kind->meaning != XidMeaning::kProgram;
    EXPECT_EQ(std::string(kind->cure).empty(), !may_be_unfit) << number;
    // In order, so that no row hides another one.
    if (!rows.empty() && rows.back() != kind) {
      EXPECT_GT(kind->first, rows.back()->last);
    }
    rows.push_back(kind);
  }
  EXPECT_GT(rows.size(), 50u);
}

TEST(XidTable, FollowsTheCatalogue) {
  const auto meaning = [](int number) {
    const XidKind* const kind = FindXid(number);
    EXPECT_NE(kind, nullptr) << number;
    return kind == nullptr ? XidMeaning::kTold : kind->meaning;
  };
  for (const int number : {46, 48, 62, 64, 74, 79, 95, 119, 120, 140, 143}) {
    EXPECT_EQ(meaning(number), XidMeaning::kUnfit) << number;
  }
  for (const int number : {63, 92, 94, 121}) EXPECT_EQ(meaning(number), XidMeaning::kTold);
  for (const int number : {13, 31, 43, 45}) EXPECT_EQ(meaning(number), XidMeaning::kProgram);
  for (const int number : {0, -1, 999, 65535}) EXPECT_EQ(FindXid(number), nullptr);
}

// "| unfit | 46, 48 |", "144 to 150"
TEST(XidTable, ThePageHasTheSameNumbers) {
  PosixFiles files;
  const auto page = ReadWhole(files, KEEL_SOURCE_DIR "/docs/trust.md", 1 << 20);
  ASSERT_OK(page);
  const std::pair<const char*, std::vector<XidMeaning>> rows[] = {
      {"| unfit | ", {XidMeaning::kUnfit}},
      {"| as the driver's words say | ", {XidMeaning::kUnfitIfFatal, XidMeaning::kAction}},
      {"| of a program | ", {XidMeaning::kProgram}}};
  for (const auto& [row, meanings] : rows) {
    const size_t at = page->find(row);
    ASSERT_NE(at, std::string::npos) << row;
    const size_t begin = at + std::string(row).size();
    std::vector<std::string> written;
    for (int number = 0; number < 1000; ++number) {
      const XidKind* const kind = FindXid(number);
      if (kind == nullptr || std::count(meanings.begin(), meanings.end(), kind->meaning) == 0) {
        continue;
      }
      const std::string range = kind->first == kind->last ? std::to_string(number)
                                                          : std::to_string(kind->first) + " to " +
                                                                std::to_string(kind->last);
      if (number == kind->first) written.push_back(range);
    }
    EXPECT_EQ(page->substr(begin, page->find(" |", begin) - begin), JoinList(written, ", "));
  }
}

// --- lines ---

TEST(XidLines, AreFoundInEveryKindOfLog) {
  const std::string words = "pid=1234, name=python3, GPU has fallen off the bus.";
  for (const std::string before :
       {"", "4,1339,5140900123,-;", "[ 5140.900123] ", "kern  :err   : [Mon Nov 30 2026] ",
        "kern  :err   : ", "<4>[ 5140.900123][ T1234] ", "Nov 30 09:30:26 node7 kernel: ",
        "2026-11-30T09:30:26+00:00 node7 kernel: [ 514.9] ", "[ 5140.900123] node7 kernel: ",
        "Mon 2026-11-30 09:30:26 UTC node7 kernel: ", "1764495026.123456 10.0.0.7 kernel: ",
        "Nov  3 2026 09:30:26.123 node7 kernel: ", "2026-11-30 09:30:26 node7 kernel: ",
        "<3>1 2026-11-30T09:30:26.123456+00:00 node7 kernel - - - ",
        "1 2026-11-30T09:30:26Z node7 kernel - - [meta sequenceId=\"1\"] "}) {
    const auto xid = ParseXidLine(before + Xid(79, words));
    ASSERT_TRUE(xid.has_value()) << before;
    EXPECT_EQ(xid->bus, "0000:3b:00");
    EXPECT_EQ(xid->number, 79);
    EXPECT_EQ(xid->words, words);
  }
  EXPECT_EQ(ParseXidLine("NVRM: Xid (0000:03:00): 14, Channel 00000001")->bus, "0000:03:00");
  EXPECT_EQ(ParseXidLine(Xid(31, "", "0000:3b:00 GPU-I:05"))->bus, "0000:3b:00 GPU-I:05");
}

TEST(XidLines, WhatProgramsWriteIntoASystemsLogIsNone) {
  const std::string stamp = "Nov  1 09:30:26 node7 ";
  const std::string broken = stamp + "kernel: " + Xid(79);
  for (const std::string tag :
       {"bob: ", "bob: [x] ", "bob: kernel: ", "bob kernel: ", "kernel[7]: ", "bob: ;",
        "bob - - - ", "bob: 4,1339,5140900123,-;", "bob: Nov 30 09:30:26 node7 kernel: "}) {
    EXPECT_FALSE(ParseXidLine(stamp + tag + Xid(79)).has_value()) << tag;
    EXPECT_EQ(XidText(OfLog(stamp + tag + Xid(79))),
              "fit: the log has no error of a GPU (Xid); it does not say when the machine "
              "started\nnot known: the log speaks of errors of GPUs (Xid) in 1 line of which it is "
              "not known whether the kernel wrote them\n");
    EXPECT_FALSE(IsFit(OfLog(broken + "\n" + stamp + tag + "Linux version 5.10")))
        << "that is no start of the machine: " << tag;
  }
  EXPECT_TRUE(ParseXidLine(broken).has_value());
  EXPECT_TRUE(IsFit(OfLog(broken + "\n" + stamp + "kernel: Linux version 5.10")));
}

TEST(XidLines, OthersAreNone) {
  for (const char* line :
       {"", "NVRM: Xid (", "NVRM: Xid (PCI:0000:3b:00): ", "NVRM: Xid (PCI:0000:3b:00): x",
        "NVRM: Xid (PCI:0000:3b:00) 79", "NVRM: Xid (): 79", "NVRM: Xid (PCI:0000:3b:00): 123456",
        "NVRM: Xid (PCI:0000:3b:00): 79x", "NVRM: Xid (PCI:0000:3b:00): -79",
        "xNVRM: Xid (PCI:0000:3b:00): 79",
        "nvidia-nvswitch0: SXid (PCI:0000:c6:00.0): 12028, Fatal",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.95.05"}) {
    EXPECT_FALSE(ParseXidLine(line).has_value()) << line;
  }
  EXPECT_FALSE(ParseXidLine("NVRM: Xid (" + std::string(1000, 'b') + "): 79").has_value());
}

TEST(XidLines, AnyBytesGiveOneLine) {
  constexpr char kBytes[] = "NVRM: Xid (PCI:\0\xff\x1b[2J): 999, \x80\xff\0\x1b";
  const std::string bytes(kBytes, sizeof kBytes - 1);
  XidReader reader;
  for (size_t size = 0; size <= bytes.size(); ++size) {
    reader.Add(bytes.substr(size));
    reader.Add(bytes.substr(0, size));
  }
  const Findings findings = XidFindings(reader, "the log");
  EXPECT_THAT(XidText(findings), HasSubstr("(Xid 999, "));
  for (const HealthFinding& one : findings) {
    for (const char byte : one.what) ASSERT_GE(static_cast<unsigned char>(byte), ' ');
  }
}

// --- what is concluded ---

TEST(XidFindings, NoErrorIsFit) {
  EXPECT_EQ(XidText(OfLog("5,0,0,-;Linux version 6.1.0 (gcc)\n6,1,9,-;pci 0000:3b:00.0: [10de]")),
            "fit: the log has no error of a GPU (Xid)\n");
}

TEST(XidFindings, OneThatFellOffTheBusIsUnfit) {
  const Findings findings =
      OfLog("5,0,0,-;Linux version 6.1.0\n4,900,60000000,-;" + Xid(79, "GPU has fallen") +
         "\n4,901,120000000,-;" + Xid(79, "GPU has fallen") + "\n4,902,120000000,-;" +
         Xid(31, "", "0000:5e:00"));
  EXPECT_EQ(XidText(findings),
            "unfit: the log says that GPU 0000:3b:00 has fallen off the bus (Xid 79, 2 times, the "
            "last one 2 min 0 s after the machine started)\n");
  EXPECT_THAT(findings[0].cure, StartsWith("restart the machine"));
  EXPECT_FALSE(IsFit(findings));
}

TEST(XidFindings, EachGpuAndNumberIsToldOnce) {
  const Findings findings = OfLog(Xid(48) + "\n" + Xid(48) + "\n" + Xid(95) + "\n" +
                               Xid(48, "", "0000:5e:00"));
  ASSERT_EQ(findings.size(), 3u) << XidText(findings);
  for (const HealthFinding& one : findings) EXPECT_EQ(one.fitness, Fitness::kUnfit);
}

TEST(XidFindings, WhatProgramsMadeSaysNothingOfTheMachine) {
  const Findings findings = OfLog(Xid(31) + "\n" + Xid(13) + "\n" + Xid(31, "", "0000:5e:00"));
  EXPECT_EQ(XidText(findings),
            "fit: the log has no error of a GPU (Xid) that makes it unfit, and 3 that programs "
            "made (13, 31), which say nothing of the machine; it does not say when the machine "
            "started\n");
}

TEST(XidFindings, AContainedErrorIsToldAndFit) {
  const Findings findings = OfLog(Xid(94, "Contained: SM") + "\n" + Xid(63));
  EXPECT_TRUE(IsFit(findings));
  EXPECT_THAT(XidText(findings),
              HasSubstr("fit: the log says that GPU 0000:3b:00 has met an error of its memory that "
                        "reached one program alone (Xid 94, 1 time), which alone does not make it "
                        "unfit\n"));
}

TEST(XidFindings, OneThatIsNotKnownIsToldWithItsWords) {
  const Findings findings = OfLog(Xid(997, "something new"));
  EXPECT_TRUE(IsFit(findings));
  EXPECT_THAT(XidText(findings),
              HasSubstr("not known: the log has an error of GPU 0000:3b:00 that this keel does not "
                        "know (Xid 997, 1 time): \"something new\"\n"));
}

TEST(XidFindings, OfNvlinkTheDriversWordsDecide) {
  EXPECT_FALSE(IsFit(OfLog(Xid(149, "NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x025525c6)"))));
  for (const char* words : {"RLW_REMAP Nonfatal XC0 i0 Link 00 (0x1)", "SAW_MVB Non-fatal", ""}) {
    EXPECT_TRUE(IsFit(OfLog(Xid(145, words)))) << words;
  }
  EXPECT_FALSE(IsFit(OfLog(Xid(145, "RLW Fatal XC0") + "\n" + Xid(145, "RLW Nonfatal XC0"))))
      << "a later one that is not fatal takes none back";
}

TEST(XidFindings, TheLastActionThatTheDriverAsksForHolds) {
  const std::string to_reset =
      Xid(154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)");
  const std::string to_none =
      Xid(154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)");
  const Findings findings = OfLog(to_none + "\n" + to_reset);
  EXPECT_FALSE(IsFit(findings));
  EXPECT_THAT(findings[0].what, EndsWith("to 0x1 (GPU Reset Required)\""));
  EXPECT_TRUE(IsFit(OfLog(to_reset + "\n" + to_none)));
  EXPECT_THAT(XidText(OfLog(to_reset + "\n" + to_none)),
              HasSubstr("waits for nothing any more (Xid 154, 2 times)"));
  EXPECT_TRUE(IsFit(OfLog(Xid(154)))) << "it does not say what";
  EXPECT_TRUE(IsFit(OfLog(to_none.substr(0, to_none.size() - 2)))) << "nor where it is cut";
}

TEST(XidFindings, OnlyWhatStandsBehindTheLastStartCounts) {
  const std::string stamp = " 09:30:26 node7 kernel: ";
  EXPECT_EQ(XidText(OfLog("Nov  1" + stamp + "[    0.000000] Linux version 6.1.0-27-amd64\n" +
                          "Nov  1" + stamp + "[  514.900123] " + Xid(79) + "\n" +
                          "Nov  2" + stamp + "[    0.000000] Linux version 6.1.0-28-amd64\n")),
            "fit: the log has no error of a GPU (Xid)\n");
  EXPECT_FALSE(
      IsFit(OfLog("x: Linux version 6.1.0\n" + Xid(79) + "\nwe took Linux version control")));
}

TEST(XidFindings, ALogThatBeginsLateSaysSo) {
  EXPECT_EQ(XidText(OfLog("6,6763,49870468537,-;sw: port 1 entered forwarding state")),
            "fit: the log has no error of a GPU (Xid); it begins 13 h 51 min after the machine "
            "started\n");
}

TEST(XidFindings, AFloodOfErrorsStaysShort) {
  XidReader reader;
  for (int bus = 0; bus < 1000; ++bus) reader.Add(Xid(63, "", "bus" + std::to_string(bus)));
  for (int i = 0; i < 1000; ++i) reader.Add(Xid(13));
  const Findings findings = XidFindings(reader, "the log");
  EXPECT_LT(findings.size(), 12u);
  EXPECT_THAT(findings.back().what, StartsWith("the log has 1992 further errors"));
  EXPECT_EQ(findings.back().fitness, Fitness::kUnknown);
}

TEST(XidFindings, ALogThatCannotBeReadIsNoFault) {
  for (const int error : {ENOENT, EPERM, EACCES, EIO}) {
    const HealthFinding finding = SilentKernelLog(error);
    EXPECT_EQ(finding.fitness, Fitness::kUnknown);
    EXPECT_THAT(finding.what, HasSubstr("/dev/kmsg"));
  }
  EXPECT_THAT(SilentKernelLog(EPERM).cure, StartsWith("look as root"));
  EXPECT_THAT(SilentKernelLog(ENOENT).cure, StartsWith("look outside of the container"));
}

// --- reading ---

class KernelLog : public testing::Test {
 protected:
  std::string Write(const std::string& content) {
    const std::string path = dir_.File("log");
    EXPECT_OK(WriteDurably(files_, path, content));
    return path;
  }
  std::vector<std::string> Lines(const std::string& path,
                                 Duration limit = std::chrono::minutes(5)) {
    std::vector<std::string> lines;
    read_ = ReadKernelLog(path, RealClock().Monotonic() + limit,
                          [&](std::string_view line) { lines.emplace_back(line); });
    return lines;
  }

  const TempDir dir_;
  PosixFiles files_;
  KernelLogRead read_;
};

TEST_F(KernelLog, IsReadLineByLine) {
  EXPECT_EQ(Lines(Write("a\n\nb\r\nc")), (std::vector<std::string>{"a", "b\r", "c"}));
  EXPECT_EQ(read_.error, 0);
  EXPECT_TRUE(read_.is_whole);
  EXPECT_TRUE(Lines(Write("")).empty());
}

TEST_F(KernelLog, CutAnywhereItTellsWhatIsWhole) {
  const std::string log = "5,0,0,-;Linux version 6.1.0\n6,1,9,-;x\n" + Xid(79, "bus") + "\n";
  const size_t told = log.find("79") + 2;
  size_t visits = 0;
  for (size_t size = 0; size <= log.size(); ++size, ++visits) {
    XidReader reader;
    for (const std::string& line : Lines(Write(log.substr(0, size)))) reader.Add(line);
    EXPECT_EQ(IsFit(XidFindings(reader, "the log")), size < told) << size;
  }
  EXPECT_EQ(visits, log.size() + 1);
}

TEST_F(KernelLog, ALongLineIsCutAndTheNextOneIsRead) {
  const auto lines = Lines(Write(std::string(300000, 'x') + "\n" + Xid(79) + "\n"));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], std::string(4096, 'x'));
  EXPECT_EQ(lines[1], Xid(79));
}

TEST_F(KernelLog, WhatIsNoFileIsAnError) {
  Lines(dir_.File("none"));
  EXPECT_EQ(read_.error, ENOENT);
  Lines(dir_.path());
  EXPECT_EQ(read_.error, EISDIR);
}

// As /dev/kmsg behind its last record: there may come more.
TEST_F(KernelLog, WhatMayComeLaterIsNotWaitedFor) {
  const std::string path = dir_.File("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(Lines(path).empty()) << "nobody writes";
  const Fd writer(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(writer.valid());
  ASSERT_EQ(::write(writer.number(), "a\nb", 3), 3);
  EXPECT_EQ(Lines(path), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(read_.is_whole);
}

TEST_F(KernelLog, OneThatNeverEndsIsReadUntilTheDeadline) {
  EXPECT_TRUE(Lines("/dev/zero", std::chrono::milliseconds(50)).empty());
  EXPECT_FALSE(read_.is_whole);
  const auto findings = LookAtXids("/dev/zero", std::chrono::milliseconds(50), "");
  ASSERT_OK(findings);
  EXPECT_THAT(XidText(*findings),
              EndsWith("not known: /dev/zero could not be read to its end within 50 ms\n"));
}

TEST_F(KernelLog, TheKernelsOwnMayBeMissingAndAnotherOneMayNot) {
  const auto own = LookAtXids("", std::chrono::minutes(5), dir_.path());
  ASSERT_OK(own);
  EXPECT_THAT(XidText(*own), StartsWith("not known: there is no /dev/kmsg"));
  EXPECT_EQ(LookAtXids(dir_.File("none"), std::chrono::minutes(5), "").error().code,
            Code::kNotFound);
  ASSERT_OK(MakeDirs(files_, dir_.File("dev")));
  ASSERT_OK(WriteDurably(files_, dir_.File("dev/kmsg"), "4,7,1000,-;" + Xid(79) + "\n"));
  const auto there = LookAtXids("", std::chrono::minutes(5), dir_.path());
  ASSERT_OK(there);
  EXPECT_THAT(XidText(*there), StartsWith("unfit: the kernel's log says that GPU 0000:3b:00 "));
}

}  // namespace
}  // namespace keel
