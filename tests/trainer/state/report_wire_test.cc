// The bytes of a member's report, and what is said of texts that are none.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/json_faults.h"
#include "trainer/state/reform.h"

namespace keel {
namespace {

MemberReport SomeReport() {
  MemberReport report;
  report.step = 7;
  report.pending = true;
  report.layout = "00ff";
  report.trail = "t7";
  report.compared = true;
  report.by_parts = true;
  report.doubts = 2;
  report.unproven = true;
  report.recheck_every = 25;
  report.numbers = "{\"step\":7}";
  report.inexact_since = 3;
  report.fingerprint = "threads=1";
  report.together = "evaluation=none";
  report.beginning = "--init-from=none";
  report.directory = "0123456789abcdef\xff";
  report.save_every = 7;
  report.codec = "zstd";
  report.config = {{"name", "a \"b\""}, {"lr", "0.1"}};
  report.lane_ns = 1200;
  report.link_ns = 3400;
  report.last_losses = {0.1f, -0.0f, std::numeric_limits<float>::infinity(), -1.5f};
  return report;
}

std::string SaidOf(const std::string& text) {
  const Result<MemberReport> report = ParseReport(text);
  if (report.ok()) return "";
  const std::string start = "a member's report: ";
  EXPECT_EQ(report.error().code, Code::kCorrupt);
  EXPECT_EQ(report.error().message.substr(0, start.size()), start);
  return report.error().message.substr(start.size());
}

TEST(ReportWire, AReport) {
  EXPECT_EQ(ReportText(SomeReport()),
            R"({"step":7,"pending":true,"layout":"00ff","trail":"t7","compared":true,"by)"
            R"(_parts":true,"doubts":2,"unproven":true,"recheck_every":25,)"
            R"("numbers":"{\"step\":7}",)"
            R"("inexact_since":3,"f)"
            R"(ingerprint":"threads=1","together":"evaluation=none","beginning":"--ini)"
            R"(t-from=none","dir)"
            R"(ectory":"0123456789abcdef�","save_every":7,"codec":"zstd","config":{"lr":)"
            R"("0.1","name":"a \"b\""},"lane_ns":1200,"link_ns":3400,"last_losses":[1036)"
            R"(831949,2147483648,2139095040,3217031168]})");
  EXPECT_EQ(ReportText({}),
            R"({"step":-1,"pending":false,"layout":"","trail":"","compared":false,"by_pa)"
            R"(rts":false,"doubts":0,"unproven":false,"recheck_every":-1,"numbers":"","inexact_s)"
            R"(ince":-1,"fingerpri)"
            R"(nt":"","together":"")"
            R"(,"beginning":"","directory":"","save_every":0,"codec":"","config":{},"lan)"
            R"(e_ns":0,"link_ns":0,"last_losses":[]})");
}

constexpr const char* kReportFaults =
    R"(step: @ is missing; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
pending: @ is missing; @: expected true or false, found null
layout: @ is missing; @: expected a string, found null
trail: @ is missing; @: expected a string, found null
compared: @ is missing; @: expected true or false, found null
by_parts: @ is missing; @: expected true or false, found null
doubts: @ is missing; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
unproven: @ is missing; @: expected true or false, found null
recheck_every: @ is missing; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
numbers: @ is missing; @: expected a string, found null
inexact_since: @ is missing; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
fingerprint: @ is missing; @: expected a string, found null
together: @ is missing; @: expected a string, found null
beginning: @ is missing; @: expected a string, found null
directory: @ is missing; @: expected a string, found null
save_every: @ is missing; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
codec: @ is missing; @: expected a string, found null
config: @ is missing; @: expected an object, found null
lane_ns: @ is missing; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
link_ns: @ is missing; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
last_losses: @ is missing; @: expected an array, found null
config/lr: taken; @: expected a string, found null
config/name: taken; @: expected a string, found null
one more in '': taken
one more in '/config': @: expected a string, found the number 1
order in '': step pending layout trail compared by_parts doubts unproven recheck_every )"
    R"(numbers inexact_since fingerprint together beginning directory )"
    R"(save_every codec config lane_ns link_ns last_losses
order in '/config': lr name
)";

TEST(ReportWire, Faults) {
  EXPECT_EQ(JsonFaults(ReportText(SomeReport()), SaidOf), kReportFaults);
}

constexpr const char* kReportOtherFaults =
    R"(line 1, column 1: unexpected end of input; expected '[', '{', or a literal
field 'step': expected an object, found an array
field 'step': expected an object, found the number 7
field 'step' is missing
field 'last_losses': item 0: expected a whole number, found a string

field 'x': expected a string, found the number 1
field 'step': expected a whole number, found the number 7.0
)";

TEST(ReportWire, OtherFaults) {
  std::string said;
  for (const char* text : {"", "[]", "7", "{}"}) said += SaidOf(text) + "\n";
  const auto with = [&](const std::string& old, const std::string& put) {
    std::string text = ReportText(SomeReport());
    EXPECT_NE(text.find(old), std::string::npos) << text;
    said += SaidOf(text.replace(text.find(old), old.size(), put)) + "\n";
  };
  with("\"last_losses\":[", "\"last_losses\":[\"x\",");
  with("\"last_losses\":[", "\"last_losses\":[-1,4294967296,");
  with("\"config\":{", "\"config\":{\"x\":1,");
  with("\"step\":7", "\"step\":7.0");
  EXPECT_EQ(said, kReportOtherFaults);
}

}  // namespace
}  // namespace keel
