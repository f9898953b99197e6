// keel repair: what the program says and writes; what it may claim is tests/ckpt/salvage_test.cc's.
#include "tests/tools/keel_program.h"

namespace keel {
namespace {

class KeelRepair : public KeelProgram {
 protected:
  std::string out() const { return dir_.path() + "/out"; }
};

TEST_F(KeelRepair, SavesWhatIsWholeElsewhere) {
  const std::string step = SaveStep(state_, 100);
  FlipByte(ShardOf(step), 200);
  const Json dry = KeelJson("repair " + step + " --dry-run", 1);
  EXPECT_EQ(dry["lost_tensors"], 1);
  EXPECT_EQ(dry["written"], nullptr);
  const std::string named = RunKeel("repair " + step + " --dry-run --whole").out;
  EXPECT_NE(named.find("whole  model.bias f32 [7]"), std::string::npos) << named;
  const Ran ran = RunKeel("repair " + step + " " + out());
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.out.find("whole  model.bias"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("lost   double f64 [251]\n         elements 0 to 127: shard "),
            std::string::npos)
      << ran.out;
  EXPECT_EQ(RunKeel("verify " + out()).exit_code, 0);
  EXPECT_EQ(RunKeel("verify " + step).exit_code, 1) << "the old one has changed";
  const Json diff = KeelJson("diff " + step + " " + out(), 1);
  EXPECT_EQ(diff["removed"], Json({"double"}));
  EXPECT_EQ(diff["changed"], Json::array());
  const Json inspected = KeelJson("inspect " + out());
  EXPECT_EQ(inspected["user"]["repair_lost"], "[\"double\"]");
  EXPECT_EQ(inspected["user"]["note"], "a \"quoted\" line");
  EXPECT_NE(RunKeel("ls " + out()).out.find("repair: \"7 of 8 tensors"), std::string::npos)
      << "it passes for a whole one";
  EXPECT_EQ(RunKeel("repair " + step + " " + out()).exit_code, 3) << "something is there now";
}

TEST_F(KeelRepair, PromotesWhatWasNeverCommitted) {
  const std::string step = SaveStep(state_, 100);
  ASSERT_OK(files_.Remove(step + "/manifest.json"));
  const Json json = KeelJson("repair " + root() + " " + out());
  EXPECT_EQ(json["lost_tensors"], 0);
  EXPECT_EQ(json["written"], out() + "/step-000000100");
  EXPECT_EQ(json["attempts"][0]["committed"], false);
  const Json inspected = KeelJson("inspect " + out() + "@100");
  EXPECT_EQ(inspected["tensors"].size(), state_.specs.size());
  EXPECT_EQ(inspected["user"]["repair"], "all of 8 tensors of an uncommitted attempt");
}

TEST_F(KeelRepair, AWholeOneIsLeftAlone) {
  SaveStep(state_, 100);
  const Json json = KeelJson("repair " + root() + " " + out());
  EXPECT_EQ(json["written"], nullptr);
  EXPECT_FALSE(*Exists(files_, out()));
}

TEST_F(KeelRepair, NothingWholeIsNothingWritten) {
  const std::string step = SaveStep(state_, 100);
  ASSERT_OK(files_.Remove(ShardOf(step)));
  const Json json = KeelJson("repair " + step + " " + out(), 1);
  EXPECT_EQ(json["attempt"], nullptr);
  EXPECT_EQ(json["attempts"][0]["whole_bytes"], 0);
  EXPECT_FALSE(*Exists(files_, out()));
}

TEST_F(KeelRepair, AsksWhichStepWhereThereAreSeveral) {
  SaveStep(state_, 100);
  const std::string step = SaveStep(state_, 200);
  ASSERT_OK(files_.Remove(step + "/manifest.json"));
  const Ran ran = RunKeel("repair " + root() + " " + out());
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_NE(ran.out.find("200: partial"), std::string::npos) << ran.out;
  EXPECT_EQ(RunKeel("repair " + root() + " --step 200 " + out()).exit_code, 0);
  EXPECT_EQ(RunKeel("repair " + root() + "@200 " + out() + "2").exit_code, 0);
  EXPECT_EQ(RunKeel("repair " + root() + "@300 " + out() + "3").exit_code, 3);
  EXPECT_EQ(RunKeel("repair " + root() + "@200").exit_code, 3) << "no OUT_DIR";
}

TEST_F(KeelRepair, NeverInPlace) {
  const std::string step = SaveStep(state_, 100);
  ASSERT_OK(files_.Remove(step + "/manifest.json"));
  for (const std::string& where : {root(), root() + "/../run", step}) {
    EXPECT_EQ(RunKeel("repair " + step + " " + where).exit_code, 3) << where;
  }
  ASSERT_OK_AND_ASSIGN(const auto entries, files_.List(step));
  EXPECT_EQ(entries.size(), 1u);
}

TEST_F(KeelRepair, AStepUnderTheNumberOfAnotherIsWrittenUnderItsOwn) {
  const std::string saved = SaveStep(state_, 30);
  std::string from = saved;
  for (const std::string name : {"step-000000040", "step-000000040.damaged-0123456789abcdef"}) {
    const std::string moved = root() + "/" + name, to = dir_.path() + "/new-" + name;
    ASSERT_OK(files_.Rename(from, moved));
    from = moved;
    const Json json = KeelJson("repair " + moved + " " + to);
    EXPECT_EQ(json["manifest"], "its manifest is of step 30");
    EXPECT_EQ(json["written"], to + "/step-000000030");
    EXPECT_EQ(RunKeel("verify " + to).exit_code, 0);
    EXPECT_EQ(RunKeel("diff --no-metadata " + moved + " " + to).exit_code, 0);
  }
  ASSERT_OK(files_.Rename(from, saved + ".damaged-0123456789abcdef"));
  const Json json = KeelJson("repair " + saved + ".damaged-0123456789abcdef " + out());
  EXPECT_EQ(json["written"], nullptr) << "that is its number";
}

}  // namespace
}  // namespace keel
