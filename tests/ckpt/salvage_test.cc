// Salvage: what it calls whole is what was written, to the last bit; what it calls lost cannot be
// had; and attempts do not mix.
#include "ckpt/salvage.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "base/file_helpers.h"
#include "base/json.h"
#include "base/memory_files.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/sanitizers.h"

namespace keel {
namespace {

const std::string kStepDir = "/c/step-000000007";
const std::string kNewDir = "/new/step-000000007";
constexpr uint32_t kFrame = 256;

class SalvageTest : public testing::Test {
 protected:
  // The attempt's name.
  std::string Save(const TestState& state, uint64_t seed, uint32_t parts, bool commits) {
    MemorySource source(state.Spans());
    SavePlan plan = PlanOf(state, "/c", 7, seed, kFrame);
    plan.parts = parts;
    for (plan.part = 0; plan.part < parts; ++plan.part) {
      const auto save = keel::Save::Begin(*disk_, plan);
      EXPECT_TRUE(save.ok()) << save.error().message;
      EXPECT_OK((*save)->WriteShard(source, {}));
      if (commits && plan.part + 1 == parts) {
        EXPECT_OK((*save)->Commit(0));
      }
    }
    return plan.attempt;
  }

  std::unique_ptr<Salvage> Survey(const std::string& attempt = "") {
    auto salvage = Salvage::Survey(*disk_, kStepDir, attempt, {.threads = 1});
    EXPECT_TRUE(salvage.ok()) << salvage.error().message;
    return salvage.ok() ? std::move(*salvage) : nullptr;
  }

  std::string Path(const std::string& name) { return JoinPath(kStepDir, name); }
  std::string Content(const std::string& path) { return *ReadWhole(*disk_, path, 1 << 24); }
  void Replace(const std::string& path, std::string_view content) {
    const auto file = disk_->Open(path, {.write = true, .create = true, .truncate = true});
    ASSERT_OK(file);
    ASSERT_OK((*file)->WriteAt(0, BytesOf(content)));
  }
  void Flip(const std::string& path, size_t byte, int bit) {
    std::string content = Content(path);
    content.at(byte) = static_cast<char>(content[byte] ^ 1 << bit);
    Replace(path, content);
  }

  // Writes what is whole; holds every tensor against `state`, and the lost ones against the note.
  void ExpectWritten(const Salvage& salvage, const TestState& state) {
    ASSERT_OK(salvage.Write(*disk_, "/new", "00000000000000aa", 5, {}));
    const AttemptFate& fate = salvage.fates()[*salvage.decision().chosen];
    ASSERT_OK_AND_ASSIGN(const auto written, Checkpoint::Open(*disk_, kNewDir));
    Json lost = Json::array();
    std::vector<RestoreTarget> targets;
    TestState loaded = state.Blank();
    for (size_t i = 0; i < state.specs.size(); ++i) {
      const std::string& name = state.specs[i].name;
      ASSERT_EQ(written->layout().Find(name).has_value(), fate.tensors[i].is_whole()) << name;
      if (fate.tensors[i].is_whole()) {
        targets.push_back({loaded.specs[i], loaded.bytes[i]});
      } else {
        lost.push_back(name);
      }
    }
    ASSERT_OK(Restore(*written, targets, {.threads = 1}));
    for (size_t i = 0; i < state.specs.size(); ++i) {
      if (!fate.tensors[i].is_whole()) continue;
      ASSERT_EQ(loaded.bytes[i], state.bytes[i]) << state.specs[i].name << ": other bits";
    }
    const Description& description = written->manifest().description;
    ASSERT_EQ(description.user.count("repair"), 1u);
    ASSERT_EQ(description.metadata.at("cursor"), MetadataValue(int64_t{12345}));
    const auto noted = description.user.find("repair_lost");
    ASSERT_EQ(noted == description.user.end() ? "[]" : noted->second, DumpJson(lost));
  }

  std::unique_ptr<MemoryFiles> disk_ = std::make_unique<MemoryFiles>();
  const TestState state_ = TestState::Make(3, 3000);
  const TestState other_ = TestState::Make(4, 3000);
};

TEST_F(SalvageTest, AWholeCheckpointNeedsNoRepair) {
  Save(state_, 1, 3, true);
  const auto salvage = Survey();
  EXPECT_TRUE(salvage->needs_no_repair());
  EXPECT_TRUE(salvage->fates()[0].is_whole());
}

TEST_F(SalvageTest, ASaveThatWasNeverCommittedIsPromoted) {
  Save(state_, 1, 3, false);
  const auto salvage = Survey();
  EXPECT_FALSE(salvage->needs_no_repair());
  ASSERT_TRUE(salvage->fates()[0].is_whole());
  ExpectWritten(*salvage, state_);
}

TEST_F(SalvageTest, AMissingShardLosesItsFramesAndIsNamed) {
  const std::string attempt = Save(state_, 1, 4, true);
  const std::string name = ShardFileName({attempt, 1, 4});
  ASSERT_OK(disk_->Remove(Path(name)));
  const auto salvage = Survey();
  const AttemptFate& fate = salvage->fates()[0];
  EXPECT_FALSE(fate.is_whole());
  const FrameRange gone = fate.layout.PartOf(1, 4);
  for (size_t i = 0; i < fate.tensors.size(); ++i) {
    const FrameRange frames = fate.layout.FramesOf(i);
    const bool hit = frames.count > 0 && frames.first < gone.end() && gone.first < frames.end();
    EXPECT_EQ(fate.tensors[i].is_whole(), !hit) << state_.specs[i].name;
    if (!hit) continue;
    ASSERT_EQ(fate.tensors[i].lost.size(), 1u) << "one shard, one reason, one range";
    EXPECT_NE(fate.tensors[i].lost[0].reason.find(name + " is missing"), std::string::npos);
  }
  ExpectWritten(*salvage, state_);
}

TEST_F(SalvageTest, ADamagedFrameLosesTheElementsInIt) {
  const std::string attempt = Save(state_, 1, 1, true);
  const std::string path = Path(ShardFileName({attempt, 0, 1}));
  Flip(path, kShardHeaderBytes + kFrameHeaderBytes + 3, 2);
  const auto salvage = Survey();
  const AttemptFate& fate = salvage->fates()[0];
  const size_t hit = *fate.layout.Find("double");  // of width 8, so it is in frame 0
  ASSERT_EQ(fate.tensors[hit].lost.size(), 1u);
  EXPECT_EQ(fate.tensors[hit].lost[0].first, 0u);
  EXPECT_EQ(fate.tensors[hit].lost[0].last, kFrame / 8 - 1);
  EXPECT_EQ(fate.whole_count(), fate.tensors.size() - 1);
  ExpectWritten(*salvage, state_);
}

TEST_F(SalvageTest, ADamagedFooterLosesNothing) {
  for (const bool commits : {true, false}) {
    disk_ = std::make_unique<MemoryFiles>();
    const std::string attempt = Save(state_, 1, 2, commits);
    const std::string path = Path(ShardFileName({attempt, 1, 2}));
    Flip(path, Content(path).size() - kShardTailBytes - 100, 0);
    const auto salvage = Survey();
    EXPECT_TRUE(salvage->fates()[0].is_whole());
    EXPECT_FALSE(salvage->needs_no_repair());
    ExpectWritten(*salvage, state_);
  }
}

TEST_F(SalvageTest, OfATruncatedShardTheFramesBeforeTheCutAreSaved) {
  const std::string attempt = Save(state_, 1, 2, false);
  const std::string path = Path(ShardFileName({attempt, 1, 2}));
  const std::string content = Content(path);
  Replace(path, std::string_view(content).substr(0, content.size() / 2));
  const auto salvage = Survey();
  const AttemptFate& fate = salvage->fates()[0];
  EXPECT_FALSE(fate.is_whole());
  EXPECT_GT(fate.whole_count(), 0u);
  ExpectWritten(*salvage, state_);
}

TEST_F(SalvageTest, WithoutManifestAndFootersNothingIsKnown) {
  const std::string attempt = Save(state_, 1, 1, false);
  const std::string path = Path(ShardFileName({attempt, 0, 1}));
  const std::string content = Content(path);
  Replace(path, std::string_view(content).substr(0, content.size() - 1));
  const auto salvage = Survey();
  EXPECT_FALSE(salvage->decision().chosen.has_value());
  EXPECT_NE(salvage->fates()[0].trouble.find(path), std::string::npos)
      << salvage->fates()[0].trouble;
  EXPECT_FALSE(salvage->Write(*disk_, "/new", "00000000000000aa", 5, {}).ok());
}

TEST_F(SalvageTest, AttemptsDoNotMix) {
  const std::string a = Save(state_, 1, 2, false);
  const std::string b = Save(other_, 2, 2, false);
  // Together they hold every frame; each alone lacks a half.
  ASSERT_OK(disk_->Remove(Path(ShardFileName({a, 0, 2}))));
  ASSERT_OK(disk_->Remove(Path(ShardFileName({b, 1, 2}))));
  const auto salvage = Survey();
  ASSERT_EQ(salvage->fates().size(), 2u);
  const AttemptFate& chosen = salvage->fates()[*salvage->decision().chosen];
  EXPECT_FALSE(chosen.is_whole());
  ExpectWritten(*salvage, chosen.attempt == a ? state_ : other_);
  ASSERT_OK_AND_ASSIGN(const auto written, Checkpoint::Open(*disk_, kNewDir));
  EXPECT_NE(written->manifest().description.user.at("repaired_from").find(chosen.attempt),
            std::string::npos);
}

TEST_F(SalvageTest, AnUncommittedAttemptThatIsWholeBeatsADamagedCommittedOne) {
  const std::string a = Save(state_, 1, 2, true);
  ASSERT_OK(disk_->Remove(Path(std::string(kManifestName))));
  const std::string b = Save(other_, 2, 2, true);
  ASSERT_OK(disk_->Remove(Path(ShardFileName({b, 1, 2}))));
  EXPECT_EQ(Survey()->fates()[*Survey()->decision().chosen].attempt, a);
  EXPECT_NE(Survey()->decision().reason.find("never committed"), std::string::npos);
  ExpectWritten(*Survey(b), other_);
}

TEST_F(SalvageTest, ShardsUnderTheNameOfAnotherAttemptAreRefused) {
  const std::string b = Save(other_, 2, 2, false);
  const std::string a = Save(state_, 1, 2, true);
  Replace(Path(ShardFileName({a, 1, 2})), Content(Path(ShardFileName({b, 1, 2}))));
  const auto salvage = Survey(a);
  EXPECT_FALSE(salvage->fates()[0].is_whole());
  ExpectWritten(*salvage, state_);
  // Cut off as well, so that frames are hunted for: the manifest knows better.
  const std::string foreign = Content(Path(ShardFileName({b, 1, 2})));
  Replace(Path(ShardFileName({a, 1, 2})), std::string_view(foreign).substr(0, foreign.size() - 9));
  const auto again = Survey(a);
  for (size_t i = 0; i < state_.specs.size(); ++i) {
    EXPECT_EQ(again->fates()[0].tensors[i].is_whole(), salvage->fates()[0].tensors[i].is_whole())
        << state_.specs[i].name;
  }
}

TEST_F(SalvageTest, AFrameWithTheNumberOfAnotherIsNotTakenForIt) {
  // Without a manifest and a footer only the frames vouch for themselves, but not for their number.
  TestState state;
  Random random(9);
  state.Add("a", Dtype::kU8, {kFrame}, random);
  state.Add("b", Dtype::kU8, {kFrame}, random);
  state.Add("c", Dtype::kU8, {2 * kFrame}, random);
  for (auto& bytes : state.bytes) random.Bytes(bytes);
  const std::string attempt = Save(state, 1, 2, false);
  // A second writer whose shard stays whole knows the description.
  const std::string path = Path(ShardFileName({attempt, 0, 2}));
  std::string content = Content(path);
  const size_t second = content.find("KRM1", kShardHeaderBytes + 4);
  ASSERT_NE(second, std::string::npos);
  content[second + 16] = 0;           // frame 1 says that it is frame 0
  content[kShardHeaderBytes] = 'X';   // which is gone
  Replace(path, std::string_view(content).substr(0, content.size() - 1));
  const auto salvage = Survey();
  EXPECT_EQ(salvage->fates()[0].whole_count(), 1u) << "only c, which the other shard holds";
  ExpectWritten(*salvage, state);
}

TEST_F(SalvageTest, AnAttemptThatIsBeingWrittenIsLeftAlone) {
  MemorySource source(state_.Spans());
  ASSERT_OK_AND_ASSIGN(const auto save, keel::Save::Begin(*disk_, PlanOf(state_, "/c", 7, 1)));
  ASSERT_OK(save->WriteShard(source, {}));
  const auto salvage = Survey();
  EXPECT_TRUE(salvage->fates()[0].is_live);
  EXPECT_FALSE(salvage->decision().chosen.has_value());
}

TEST_F(SalvageTest, NothingIsWrittenWhereAStepIs) {
  Save(state_, 1, 1, false);
  const auto salvage = Survey();
  for (const std::string& root : {std::string("/c"), std::string("/x/../c"), kStepDir}) {
    const auto written = salvage->Write(*disk_, root, "00000000000000aa", 5, {});
    EXPECT_FALSE(written.ok()) << root;
  }
  ASSERT_OK_AND_ASSIGN(const auto entries, disk_->List(kStepDir));
  EXPECT_EQ(entries.size(), 1u) << "the place that was read has changed";
}

TEST_F(SalvageTest, ARepairOfARepairKeepsTheFirstLosses) {
  const std::string attempt = Save(state_, 1, 1, true);
  Flip(Path(ShardFileName({attempt, 0, 1})), kShardHeaderBytes + kFrameHeaderBytes + 3, 2);
  ASSERT_OK(Survey()->Write(*disk_, "/second", "00000000000000bb", 5, {}));
  ASSERT_OK(disk_->Remove("/second/step-000000007/manifest.json"));
  ASSERT_OK_AND_ASSIGN(const auto again,
                       Salvage::Survey(*disk_, "/second/step-000000007", "", {.threads = 1}));
  ASSERT_OK(again->Write(*disk_, "/third", "00000000000000cc", 5, {}));
  ASSERT_OK_AND_ASSIGN(const auto third, Checkpoint::Open(*disk_, "/third/step-000000007"));
  EXPECT_EQ(third->manifest().description.user.at("repair_lost"), "[\"double\"]");
}

// --- at random ---

// One of the things that happen to files. What it was, in words.
std::string Harm(MemoryFiles& files, const std::string& path, Random& random) {
  std::string content = *ReadWhole(files, path, 1 << 24);
  const auto rewrite = [&](std::string_view with) {
    const auto file = files.Open(path, {.write = true, .truncate = true});
    EXPECT_OK((*file)->WriteAt(0, BytesOf(with)));
  };
  switch (random.Uniform(5)) {
    case 0:
      EXPECT_OK(files.Remove(path));
      return "removed " + path;
    case 1: {
      const size_t bytes = random.Uniform(content.size());
      rewrite(std::string_view(content).substr(0, bytes));
      return "cut " + path + " to " + std::to_string(bytes);
    }
    case 2: {  // a lost page
      const size_t at = random.Uniform(content.size());
      for (size_t i = at; i < std::min(content.size(), at + 512); ++i) content[i] = 0;
      rewrite(content);
      return "cleared 512 bytes from " + std::to_string(at) + " of " + path;
    }
    default: break;
  }
  std::string what = "flipped in " + path + ":";
  for (uint64_t i = random.Uniform(4) + 1; i > 0; --i) {
    const size_t at = random.Uniform(content.size());
    content[at] = static_cast<char>(content[at] ^ 1 << random.Uniform(8));
    what += " " + std::to_string(at);
  }
  rewrite(content);
  return what;
}

// Whether all frames of a tensor lie in shards that nobody has touched.
bool IsUntouched(const Layout& layout, size_t tensor, const std::vector<bool>& touched) {
  const auto parts = static_cast<uint32_t>(touched.size());
  const FrameRange frames = layout.FramesOf(tensor);
  for (uint32_t part = 0; part < parts; ++part) {
    const FrameRange share = layout.PartOf(part, parts);
    const bool overlaps = share.first < frames.end() && frames.first < share.end();
    if (touched[part] && frames.count > 0 && overlaps) return false;
  }
  return true;
}

TEST_F(SalvageTest, RandomHarmNeverMakesItLie) {
  const uint64_t seed = 20261121;
  std::printf("seed %d\n", static_cast<int>(seed));
  int whole = 0, lost = 0, unusable = 0;
  for (int round = 0; round < Rounds(300, 60); ++round) {
    Random random = Random(seed).Fork(std::to_string(round));
    disk_ = std::make_unique<MemoryFiles>();
    const auto parts = static_cast<uint32_t>(random.Uniform(5) + 1);
    if (random.Chance(0.3)) Save(other_, 2, 2, false);
    const std::string attempt = Save(state_, 1, parts, random.Chance(0.7));
    std::string what = "round " + std::to_string(round);
    if (random.Chance(0.3) && *Exists(*disk_, Path("manifest.json"))) {
      what += "\n  " + Harm(*disk_, Path("manifest.json"), random);
    }
    std::vector<bool> touched(parts);
    for (uint32_t part = 0; part < parts; ++part) {
      touched[part] = random.Chance(0.4);
      const std::string path = Path(ShardFileName({attempt, part, parts}));
      if (touched[part]) what += "\n  " + Harm(*disk_, path, random);
    }
    SCOPED_TRACE(what);
    const auto surveyed = Salvage::Survey(*disk_, kStepDir, attempt, {.threads = 1});
    if (!surveyed.ok()) {
      ASSERT_EQ(surveyed.error().code, Code::kNotFound) << surveyed.error().message;
      ++unusable;
      continue;
    }
    const auto& salvage = *surveyed;
    const AttemptFate& fate = salvage->fates()[0];
    if (!fate.trouble.empty()) {
      ++unusable;
      continue;
    }
    for (size_t i = 0; i < fate.tensors.size(); ++i) {
      ++(fate.tensors[i].is_whole() ? whole : lost);
      if (IsUntouched(fate.layout, i, touched)) {
        EXPECT_TRUE(fate.tensors[i].is_whole()) << "no shard of " << state_.specs[i].name
                                                << " was touched: "
                                                << fate.tensors[i].lost[0].reason;
      }
    }
    if (salvage->decision().chosen.has_value()) ExpectWritten(*salvage, state_);
    if (HasFailure()) return;
  }
  std::printf("%d tensors whole, %d lost, %d attempts unusable\n", whole, lost, unusable);
  EXPECT_GT(whole, Rounds(300, 60));
  EXPECT_GT(lost, Rounds(300, 60));
}

// A manifest may say so much that nobody could go through its frames one by one.
TEST_F(SalvageTest, FramesThatNobodyHasAreLostInOneGo) {
  const SavePlan plan = PlanOf(state_, "/c", 7, 1, kFrame);
  Manifest manifest;
  manifest.description = plan.description;
  manifest.attempt = plan.attempt;
  constexpr int64_t kBytes = int64_t{1} << 50;
  manifest.description.layout = *Layout::Make({{"x", Dtype::kU8, {kBytes}}}, kFrame);
  manifest.tensor_digests.push_back(DigestOf({}));
  for (const uint32_t part : {0u, 1u}) {
    manifest.shards.push_back({ShardFileName({plan.attempt, part, 2}), 4096, DigestOf({}),
                               manifest.description.layout.PartOf(part, 2)});
  }
  ASSERT_OK(MakeDirs(*disk_, kStepDir));
  Replace(Path("manifest.json"), ManifestText(manifest));
  const auto salvage = Survey();
  ASSERT_NE(salvage, nullptr);
  const std::vector<LostRange>& lost = salvage->fates()[0].tensors[0].lost;
  ASSERT_EQ(lost.size(), 2u) << "one for each shard";
  EXPECT_EQ(lost[0].first, 0u);
  EXPECT_EQ(lost[0].last + 1, lost[1].first);
  EXPECT_EQ(lost[1].last, static_cast<uint64_t>(kBytes - 1));
  EXPECT_NE(lost[1].reason.find("is missing"), std::string::npos) << lost[1].reason;
  EXPECT_FALSE(salvage->decision().chosen.has_value());
}

}  // namespace
}  // namespace keel
