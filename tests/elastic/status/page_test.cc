// The page: what it shows, what it never lets through, and how large it can get.
#include "elastic/status/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "elastic/status/charts.h"
#include "tests/elastic/status/some_status.h"

namespace keel {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kNonce = "0123456789abcdef";

JobStatus SmallStatus() {
  JobStatus status(JobOf());
  status.OnHosts({HostOf(0, 2, 40), HostOf(1, 2, 41)}, kBegin);
  status.OnEpoch(EpochOf(1, 4, 2), kBegin + kSecondNanos);
  status.OnEvent("death", "rank 3 on node1 was killed by signal 9", kBegin + 2 * kSecondNanos);
  status.OnBreak(BreakOf(1, BreakCause::kDied, "rank 3 died"), kBegin + 2 * kSecondNanos);
  status.OnEpoch(EpochOf(2, 3, 2, "reformed"), kBegin + 3 * kSecondNanos);
  return status;
}

std::string PageOf(const JobStatus& status, int64_t now = kBegin + 10 * kSecondNanos) {
  return StatusPageText(status, now, kNonce);
}

size_t CountOf(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

// The name of each tag, with its slash in front where it closes; nothing where a tag has no end.
std::optional<std::vector<std::string>> TagsOf(const std::string& page) {
  std::vector<std::string> tags;
  for (size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at)) {
    const size_t name_end = page.find_first_of(" >", at);
    if (name_end == std::string::npos) return std::nullopt;
    std::string name = page.substr(at + 1, name_end - at - 1);
    bool is_quoted = false;
    size_t end = name_end;
    for (; end < page.size() && (is_quoted || page[end] != '>'); ++end) {
      if (page[end] == '"') is_quoted = !is_quoted;
      if (page[end] == '<' && !is_quoted) return std::nullopt;
    }
    if (end == page.size()) return std::nullopt;
    const bool is_whole = page[end - 1] == '/' || name == "meta" || name == "link" ||
                          name.starts_with('!');
    if (!is_whole) tags.push_back(std::move(name));
    at = end;
  }
  return tags;
}

// Every element that is opened is closed, in order.
void ExpectWellFormed(const std::string& page) {
  const auto tags = TagsOf(page);
  ASSERT_TRUE(tags.has_value()) << "a tag without an end";
  std::vector<std::string> open;
  for (const std::string& tag : *tags) {
    if (!tag.starts_with('/')) {
      open.push_back(tag);
      continue;
    }
    ASSERT_FALSE(open.empty()) << tag;
    ASSERT_EQ("/" + open.back(), tag);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty()) << open.back();
}

TEST(StatusPage, ShowsMembersEpochsAndEvents) {
  const std::string page = PageOf(SmallStatus());
  EXPECT_THAT(page, HasSubstr("<title>run7: running</title>"));
  EXPECT_THAT(page, HasSubstr("<b>2</b><span>for 7 s</span>")) << "the epoch";
  EXPECT_THAT(page, HasSubstr("<b>3</b><span>on 2 hosts</span>")) << "the workers";
  EXPECT_THAT(page, HasSubstr("<b>41</b>")) << "the step";
  EXPECT_THAT(page, HasSubstr("node0 (this one)"));
  EXPECT_THAT(page, HasSubstr("<td>node1</td><td>10.0.0.1</td>"));
  EXPECT_THAT(page, HasSubstr("rank 3 on node1 was killed by signal 9"));
  EXPECT_EQ(CountOf(page, "<rect class=\"broken\""), 1U);
  EXPECT_EQ(CountOf(page, "<rect class=\"running\""), 1U);
  EXPECT_EQ(CountOf(page, "<rect class=\"death\""), 1U);
  EXPECT_THAT(page, HasSubstr("<td>node1</td><td>1 exited with a code, 2 killed by a signal</td>"));
  ExpectWellFormed(page);
}

TEST(StatusPage, IsAPageFromTheFirstMomentOn) {
  const JobStatus status(JobOf());
  for (const int64_t now : {kBegin, kBegin - 5, kBegin + 1}) {
    const std::string page = PageOf(status, now);
    EXPECT_THAT(page, HasSubstr("None yet"));
    ExpectWellFormed(page);
  }
}

TEST(StatusPage, EscapesWhateverOthersWrote) {
  const std::string evil = "\"><script>alert(1)</script><img src=x onerror='b()'>\x1b[2J\xff";
  StatusJob job = JobOf(evil);
  job.host = job.program = job.store = evil;
  JobStatus status(job);
  StatusHost here = HostOf(0, 1, 1, evil);
  here.record.address = here.record.reason = here.record.seats[0].ended = evil;
  here.record.state = MemberState::kLeaving;
  StatusHost gone = HostOf(1, 1, 1, evil);
  gone.gone = evil;
  status.OnHosts({here, gone}, kBegin);
  status.OnEpoch(EpochOf(1, 1, 1, evil), kBegin);
  status.OnBreak(BreakOf(1, BreakCause::kDied, evil), kBegin);
  status.OnEvent("death", evil, kBegin);
  status.OnEvent(evil, evil, kBegin);
  const std::string page = PageOf(status);
  EXPECT_EQ(CountOf(page, "<script"), 1U);
  EXPECT_EQ(CountOf(page, "</script>"), 1U);
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("onerror='")));
  EXPECT_EQ(page.find('\x1b'), std::string::npos);
  EXPECT_EQ(page.find('\xff'), std::string::npos);
  EXPECT_GE(CountOf(page, "&lt;script&gt;alert(1)"), 10U);
  ExpectWellFormed(page);
}

TEST(StatusPage, LoadsNothingFromAnywhereAndLetsNothingElseRun) {
  const std::string page = PageOf(SmallStatus());
  for (const char* loaded : {"http:", "https:", "src=", "@import", "url(", "<iframe", " style=",
                             " onclick"}) {
    EXPECT_THAT(page, Not(HasSubstr(loaded)));
  }
  EXPECT_EQ(CountOf(page, "href="), 1U) << "the icon's, which is empty";
  EXPECT_EQ(CountOf(page, std::string("<script nonce=\"") + kNonce + "\">"), 1U);
  EXPECT_EQ(CountOf(page, std::string("<style nonce=\"") + kNonce + "\">"), 1U);
  const std::string policy = StatusPagePolicy(kNonce);
  EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(policy, HasSubstr(std::string("script-src 'nonce-") + kNonce + "'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
}

TEST(StatusPage, HoldsUpWith64HostsAnd10000Events) {
  const JobStatus status = BigStatus();
  const std::string page = PageOf(status, kBegin + 2600 * kSecondNanos);
  EXPECT_LT(page.size(), 2U << 20);
  EXPECT_THAT(page, HasSubstr("The newest 200 of 10064"));
  EXPECT_THAT(page, HasSubstr("node63"));
  EXPECT_EQ(CountOf(page, "<rect class=\"broken\""), 300U);
  EXPECT_THAT(page, HasSubstr("epoch 2500: 512 workers on 64 hosts"));
  ExpectWellFormed(page);
}

TEST(StatusPage, ShowsWhatWorkersTellOfThemselves) {
  JobStatus status = SmallStatus();
  EXPECT_THAT(PageOf(status), Not(HasSubstr("Step times")));
  status.OnFigures({FiguresOf(0, 10, 2.0), FiguresOf(1, 10, 2.0)}, SomeTime(), kBegin);
  status.OnFigures({FiguresOf(0, 20, 0.125), FiguresOf(1, 20, 0.125)}, SomeTime(),
                   kBegin + kSecondNanos);
  status.OnSaved(15, kBegin + kSecondNanos);
  const std::string page = PageOf(status);
  EXPECT_THAT(page, HasSubstr("<b>0.125</b>")) << "the loss";
  EXPECT_THAT(page, HasSubstr("<b>640</b>")) << "samples a second";
  EXPECT_THAT(page, HasSubstr("<b>90.0%</b>")) << "goodput";
  EXPECT_THAT(page, HasSubstr("<b>15</b><span>at ")) << "the checkpoint";
  EXPECT_THAT(page, HasSubstr("<td class=\"n\">40.00</td>")) << "ms a step";
  EXPECT_THAT(page, HasSubstr("width=\"750.0\" height=\"18.0\"><title>forward 30.000 ms"));
  EXPECT_THAT(page, HasSubstr("<td>starting</td><td class=\"n\">10.0%</td>"));
  EXPECT_EQ(CountOf(page, "<polyline"), 2U);
  ExpectWellFormed(page);
}

// A loss that is no number is a gap in the curve, and said.
TEST(StatusPage, ALossThatIsNotFiniteIsAGap) {
  JobStatus status = SmallStatus();
  for (int64_t i = 1; i <= 9; ++i) {
    std::optional<double> loss;
    if (i % 3 != 0) loss = 1.0;
    status.OnFigures({FiguresOf(0, i, loss)}, SomeTime(), kBegin + i * kSecondNanos);
  }
  EXPECT_EQ(CountOf(LossSvg(status, kBegin + 10 * kSecondNanos), "<polyline"), 3U);
  EXPECT_THAT(PageOf(status), HasSubstr("<b>not finite</b>"));
}

TEST(StatusPage, NamesOfPartsAreEscaped) {
  JobStatus status(JobOf());
  StatusFigures figures = FiguresOf(0, 10, 1.0);
  figures.told.parts = {{"<script>\"'", 1'000'000}, {"\xff", 0}};
  status.OnFigures({figures}, SomeTime(), kBegin);
  const std::string page = PageOf(status);
  EXPECT_EQ(CountOf(page, "<script"), 1U);
  EXPECT_GE(CountOf(page, "&lt;script&gt;&quot;&#39;"), 2U);
  ExpectWellFormed(page);
}

TEST(StatusPage, SaysWhereAllOfAJobIsSeen) {
  StatusJob job = JobOf();
  job.sees_all = false;
  EXPECT_THAT(PageOf(JobStatus(job)), HasSubstr("the page of the host that coordinates"));
  EXPECT_THAT(PageOf(JobStatus(JobOf())), Not(HasSubstr("the page of the host that keeps")));
}

// Its first epoch is at the left, in proportion to the time that it took.
TEST(StatusPage, TheTimeLineIsInProportion) {
  JobStatus status(JobOf());
  status.OnEpoch(EpochOf(1, 4, 1), kBegin + 10 * kSecondNanos);
  status.OnBreak(BreakOf(1, BreakCause::kDied, "rank 0 died"), kBegin + 50 * kSecondNanos);
  status.OnEpoch(EpochOf(2, 2, 1), kBegin + 60 * kSecondNanos);
  const std::string drawing = TimelineSvg(status, kBegin + 100 * kSecondNanos);
  EXPECT_THAT(drawing, HasSubstr("<rect class=\"broken\" x=\"100.0\" y=\"18.0\" width=\"400.0\" "
                                 "height=\"90.0\">"));
  EXPECT_THAT(drawing, HasSubstr("<rect class=\"running\" x=\"600.0\" y=\"63.0\" width=\"400.0\" "
                                 "height=\"45.0\">"));
}

// A launcher that is silent, as in a debugger, answers no more and refuses nothing.
TEST(StatusPage, DoesNotWaitForEverForALauncherThatIsSilent) {
  EXPECT_THAT(PageOf(SmallStatus()), HasSubstr("signal: AbortSignal.timeout(5000)"));
}

}  // namespace
}  // namespace keel
