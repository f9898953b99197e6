// A name service that never answers must not be asked on the way to the store. The probe counts the
// questions; that c10d alone does ask shows that the count would notice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/harness/ranks.h"

namespace keel {
namespace {

constexpr Duration kLimit = std::chrono::seconds(60);  // c10d alone needs a second a question

// The number behind "queries " that the probe printed; nothing where namespaces are forbidden.
std::optional<int> QueriesOf(const std::string& program, const Environment& changes = {}) {
  const TempDir folder;
  const auto probe = Ranks::Start({.argv = {std::string(KEEL_BIN_DIR) + "/" + program},
                                   .environment = [&](int) { return changes; }},
                                  folder);
  KEEL_CHECK(probe.ok(), probe.error().message);
  const Result<ExitStatus> end = (*probe)->Wait(0, kLimit);
  KEEL_CHECK(end.ok(), end.error().message);
  if (*end == ExitStatus::Exited(77)) return std::nullopt;
  const std::string output = (*probe)->Stdout(0);
  const size_t at = output.find("queries ");
  KEEL_CHECK(end->ok() && at != std::string::npos,
             program << " " << end->Text() << ": " << (*probe)->Output(0));
  return std::stoi(output.substr(at + 8));
}

void ExpectQueries(const std::string& program, const Environment& changes,
                   const testing::Matcher<int>& expected) {
  const std::optional<int> queries = QueriesOf(program, changes);
  if (!queries) GTEST_SKIP() << "this machine allows no network namespaces";
  EXPECT_THAT(*queries, expected);
}

TEST(SilentDns, C10dAloneAsksAndWouldStall) {
  ExpectQueries("silent_dns_probe_raw", {}, testing::Gt(0));
}

TEST(SilentDns, OurProgramsNeverAsk) { ExpectQueries("silent_dns_probe_keel", {}, testing::Eq(0)); }

TEST(SilentDns, AProgramThatIsNotOursDoesNotAskWhenTheLibraryIsPreloaded) {
  ExpectQueries("silent_dns_probe_raw", {{"LD_PRELOAD", KEEL_NUMERIC_NAMES_FILE}}, testing::Eq(0));
}

}  // namespace
}  // namespace keel
