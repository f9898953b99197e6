// keel export and import: to safetensors files and back, bit for bit, and with Python's own reader.
#include <unistd.h>

#include <map>

#include "base/text.h"
#include "ckpt/safetensors_file.h"
#include "ckpt/tensor_reader.h"
#include "tests/harness/sanitizers.h"
#include "tests/tools/keel_program.h"

namespace keel {
namespace {

bool Has(const Ran& ran, const std::string& text) {
  return ran.out.find(text) != std::string::npos;
}

std::string Hex(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[static_cast<size_t>(byte) >> 4];
    text += kDigits[static_cast<size_t>(byte) & 15];
  }
  return text;
}

class KeelExchange : public KeelProgram {
 protected:
  std::string File(const std::string& name) const { return dir_.path() + "/" + name; }

  // One tensor of each dtype that safetensors has, an empty one, a scalar, a large one and names
  // that need care.
  static TestState Everything() {
    Random random(7);
    TestState state;
    for (const Dtype dtype : AllDtypes()) {
      if (dtype == Dtype::kC128) continue;
      state.Add("kind." + std::string(DtypeName(dtype)), dtype, {3, 5}, random);
    }
    state.bytes[0].assign(15, std::byte{1});  // bool
    state.Add("scalar", Dtype::kF64, {}, random);
    state.Add("empty", Dtype::kI32, {0, 7}, random);
    state.Add("large", Dtype::kF32, {1000, 700}, random);
    state.Add("a \"quoted\" \\ name, 'Gödel' 🧮", Dtype::kU8, {4}, random);
    return state;
  }

  // name -> dtype, shape and bytes of all tensors in a checkpoint.
  std::map<std::string, std::string> Content(const std::string& step_dir) {
    std::map<std::string, std::string> content;
    const auto checkpoint = Checkpoint::Open(files_, step_dir);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    if (!checkpoint.ok()) return content;
    TensorReader reader(**checkpoint);
    const auto& tensors = (*checkpoint)->layout().tensors();
    for (size_t i = 0; i < tensors.size(); ++i) {
      std::vector<std::byte> bytes(tensors[i].bytes);
      EXPECT_OK(reader.Read(i, 0, bytes));
      content[tensors[i].spec.name] = TypeText(tensors[i].spec) + " " + Hex(bytes);
    }
    return content;
  }

  // Without those of finished commands: temporary files that were left behind.
  size_t FilesThere() {
    size_t count = 0;
    const auto entries = files_.List(dir_.path());
    for (const DirEntry& entry : *entries) count += entry.kind == FileKind::kFile ? 1 : 0;
    return count;
  }
};

TEST_F(KeelExchange, ExportAndImportGiveBackEveryBitAndAllMetadata) {
  const TestState state = Everything();
  Random random(5);
  SavePlan plan = PlanOf(state, root(), 1200, 3, 4096);
  plan.description.metadata["job"] = std::string("a \"b\" c");
  plan.description.metadata["loss_scale"] = 65536.0;
  plan.description.metadata["is_done"] = false;
  plan.description.user["keel.step"] = "not ours";
  MemorySource source(state.Spans());
  ASSERT_OK(SaveCheckpoint(files_, plan, source, {}, 0));

  const Json exported = KeelJson("export " + root() + " " + File("m.safetensors"));
  EXPECT_EQ(exported["step"], 1200);
  EXPECT_EQ(exported["tensors"], state.specs.size());
  ASSERT_OK_AND_ASSIGN(const FileInfo info, files_.Stat(File("m.safetensors")));
  EXPECT_EQ(exported["file_bytes"], info.bytes);

  const Json imported = KeelJson("import " + File("m.safetensors") + " " + File("again"));
  EXPECT_EQ(imported["step"], 1200);
  EXPECT_EQ(Content(imported["dir"]), Content(root() + "/step-000001200"));
  EXPECT_EQ(RunKeel("verify " + File("again")).exit_code, 0);
  const Ran diff = RunKeel("diff " + root() + " " + File("again"));
  EXPECT_EQ(diff.exit_code, 0) << "metadata and its types included: " << diff.out;
}

TEST_F(KeelExchange, C128IsRefusedByNameAndCanBeLeftOut) {
  Random random(1);
  TestState state;
  state.Add("x", Dtype::kC128, {2}, random);
  state.Add("y", Dtype::kC64, {2}, random);
  SaveStep(state, 1);
  const Ran ran = RunKeel("export " + root() + " " + File("m"));
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_TRUE(Has(ran, "tensor 'x': safetensors has no c128")) << ran.out;
  EXPECT_EQ(FilesThere(), 0u);
  EXPECT_EQ(RunKeel("export " + root() + " " + File("m") + " --only y").exit_code, 0);
}

TEST_F(KeelExchange, OnlyAndRenameChooseAndName) {
  SaveStep(state_, 1);
  const Json some = KeelJson("export " + root() + " " + File("m") +
                             " --only 'model.*' --only step --rename 'model.weight=first' "
                             "--rename 'model.*=m/*.x'");
  EXPECT_EQ(some["tensors"], 5);
  ASSERT_OK_AND_ASSIGN(const auto file, SafetensorsFile::Open(files_, File("m")));
  std::set<std::string> names;
  for (const SafetensorsTensor& tensor : file->header().tensors) names.insert(tensor.spec.name);
  EXPECT_EQ(names, (std::set<std::string>{"first", "m/bias.x", "m/half.x", "m/empty.x", "step"}));
  const Json back = KeelJson("import " + File("m") + " " + File("back") +
                             " --only 'm/*' --rename 'm/*.x=model.*' --step 5 --codec none");
  EXPECT_EQ(back["dir"], File("back") + "/step-000000005");
  EXPECT_EQ(back["tensors"], 3);
  const auto content = Content(back["dir"]);
  EXPECT_EQ(content.at("model.bias"), Content(root() + "/step-000000001").at("model.bias"));
  EXPECT_EQ(KeelJson("inspect " + File("back"))["codec"], "none");
}

TEST_F(KeelExchange, RulesThatMakeNoSenseAreListed) {
  SaveStep(state_, 1);
  const std::string command = "export " + root() + " " + File("m") + " ";
  const std::pair<const char*, const char*> cases[] = {
      {"--only nothing", "pattern 'nothing' matches no tensor"},
      {"--rename model.weigth=w", "rule 'model.weigth=w' renames no tensor"},
      {"--rename model.weight", "is not FROM=TO"},
      {"--rename model.weight=", "a name is empty"},
      {"--rename 'a=b*'", "a '*' in TO, but none in FROM"},
      {"--rename 'a*b*=c'", "more than one '*'"},
      {"--rename 'step=mask'", "'step' and 'mask' would both be called 'mask'"},
      {"--rename 'model.*=x'", "would both be called 'x'"},
      {"--rename 'step=__metadata__'", "safetensors keeps that name for itself"},
  };
  for (const auto& [arguments, says] : cases) {
    const Ran ran = RunKeel(command + arguments);
    EXPECT_EQ(ran.exit_code, 3) << arguments;
    EXPECT_TRUE(Has(ran, says)) << arguments << ": " << ran.out;
  }
  const Ran both = RunKeel(command + "--only nothing --rename x=y");
  EXPECT_TRUE(Has(both, "matches no tensor") && Has(both, "renames no tensor")) << both.out;
  EXPECT_EQ(FilesThere(), 0u);
}

TEST_F(KeelExchange, ExportReplacesNothingUnlessTold) {
  SaveStep(state_, 1);
  ASSERT_OK(WriteDurably(files_, File("m"), "precious"));
  const Ran ran = RunKeel("export " + root() + " " + File("m"));
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_TRUE(Has(ran, "--force replaces it")) << ran.out;
  ASSERT_OK_AND_ASSIGN(const std::string kept, ReadWhole(files_, File("m"), 100));
  EXPECT_EQ(kept, "precious");
  EXPECT_EQ(RunKeel("export " + root() + " " + File("m") + " --force").exit_code, 0);
  EXPECT_OK(SafetensorsFile::Open(files_, File("m")));
  ASSERT_OK(files_.MakeDir(File("dir")));
  EXPECT_EQ(RunKeel("export " + root() + " " + File("dir") + " --force").exit_code, 3);
  EXPECT_EQ(RunKeel("export " + root() + " " + File("none/m")).exit_code, 3);
  EXPECT_EQ(FilesThere(), 1u);
}

TEST_F(KeelExchange, ExportFollowsALinkAndWritesToAPipe) {
  const std::string step = SaveStep(state_, 100);
  ASSERT_EQ(RunKeel("export " + step + " " + File("plain")).exit_code, 0);
  ASSERT_EQ(RunShell("ln -s real " + File("link")).exit_code, 0);
  EXPECT_EQ(RunKeel("export " + step + " " + File("link")).exit_code, 0);
  EXPECT_EQ(RunKeel("export " + step + " " + File("link")).exit_code, 3) << "it is there now";
  EXPECT_EQ(RunKeel("export --force " + step + " " + File("link")).exit_code, 0);
  EXPECT_EQ(RunShell("readlink " + File("link")).out, "real\n");
  EXPECT_EQ(RunShell("cmp " + File("plain") + " " + File("real")).exit_code, 0);
  ASSERT_EQ(RunShell("ln -s /proc/self/fd/1 " + File("stdout")).exit_code, 0);
  const std::string export_to = KEEL_BIN_DIR "/keel export --force " + step + " ";
  EXPECT_EQ(RunShell(export_to + File("stdout") + " | cmp - " + File("plain")).out, "");
  EXPECT_EQ(RunShell(export_to + File("stdout") + " > " + File("redirected") + "; cmp " +
                     File("redirected") + " " + File("plain")).out, "");
  EXPECT_EQ(RunShell("readlink " + File("stdout")).out, "/proc/self/fd/1\n");
}

TEST_F(KeelExchange, ALimitOnTheSizeOfFilesIsAnErrorAndLeavesNothing) {
  const std::string step = SaveStep(state_, 100);  // an export of some 30 KB
  const Ran ran = RunShell("ulimit -f 8; " KEEL_BIN_DIR "/keel export " + step + " " + File("out") +
                           "; echo rc $?");
  EXPECT_TRUE(Has(ran, "File too large")) << ran.out;
  EXPECT_TRUE(Has(ran, "rc 3")) << ran.out;
  EXPECT_EQ(files_.List(dir_.path())->size(), 1u) << "only the run";
}

TEST_F(KeelExchange, ImportRefusesBoolsThatAreNone) {
  const std::string in = File("in");
  ASSERT_EQ(RunShell("printf '\\100\\0\\0\\0\\0\\0\\0\\0%-64s\\0\\1\\0\\377' "
                     "'{\"mask\":{\"dtype\":\"BOOL\",\"shape\":[4],\"data_offsets\":[0,4]}}' > " +
                     in).exit_code, 0);
  const Ran ran = RunKeel("import " + in + " " + File("new/run"));
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_TRUE(Has(ran, "tensor 'mask', element 3: 255 is not a bool")) << ran.out;
  EXPECT_FALSE(*Exists(files_, File("new"))) << "an empty directory was left";
}

TEST_F(KeelExchange, ADamagedCheckpointIsNotExported) {
  const std::string step = SaveStep(state_, 1);
  FlipByte(ShardOf(step), 200);
  const Ran ran = RunKeel("export " + root() + " " + File("m"));
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_TRUE(Has(ran, "frame 0 at byte 64")) << ran.out;
  EXPECT_EQ(FilesThere(), 0u) << "neither the file nor a part of it";
  EXPECT_EQ(RunKeel("export " + root() + " " + File("m") + " --only mask").exit_code, 0)
      << "what is whole can be had";
}

TEST_F(KeelExchange, ImportNeverReplacesACommittedStep) {
  SaveStep(state_, 7);
  EXPECT_EQ(RunKeel("export " + root() + " " + File("m")).exit_code, 0);
  const Ran ran = RunKeel("import " + File("m") + " " + root());
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_TRUE(Has(ran, "never overwritten; --step gives another number")) << ran.out;
  EXPECT_EQ(RunKeel("import " + File("m") + " " + root() + " --step 8").exit_code, 0);
  EXPECT_EQ(KeelJson("ls " + root())["checkpoints"].size(), 2u);
}

TEST_F(KeelExchange, WhatIsNoSafetensorsFileIsRefusedAndLeavesNoStep) {
  ASSERT_OK(WriteDurably(files_, File("short"), "abc"));
  ASSERT_OK(WriteDurably(files_, File("text"), "once upon a time, in a file far away"));
  for (const char* name : {"short", "text", "missing"}) {
    const Ran ran = RunKeel("import " + File(name) + " " + root());
    EXPECT_EQ(ran.exit_code, 3) << name;
    EXPECT_TRUE(Has(ran, File(name))) << ran.out;
  }
  EXPECT_TRUE(Has(RunKeel("import " + dir_.path() + " " + root()), "is a directory"));
  EXPECT_FALSE(*Exists(files_, root()));
}

TEST_F(KeelExchange, ForeignMetadataIsKeptAndNonsenseInOursIsRefused) {
  const auto make = [&](const std::string& name, std::map<std::string, std::string> metadata) {
    const auto header = MakeSafetensorsHeader({{"w", Dtype::kU8, {0}}}, std::move(metadata));
    const auto writer = SafetensorsWriter::Begin(files_, {File(name), "id"}, *header);
    EXPECT_OK((*writer)->Commit());
  };
  make("good", {{"format", "pt"}, {"keel.user.x", "1"}, {"keel.other", "2"}});
  const Json imported = KeelJson("import " + File("good") + " " + root());
  EXPECT_EQ(imported["step"], 0);
  const Json user = KeelJson("inspect " + root())["user"];
  EXPECT_EQ(user, Json({{"format", "pt"}, {"keel.other", "2"}, {"keel.user.x", "1"}}));
  make("bad", {{"keel.metadata.cursor", "[1]"}});
  EXPECT_TRUE(Has(RunKeel("import " + File("bad") + " " + root()), "'keel.metadata.cursor'"));
  make("worse", {{"keel.step", "-1"}});
  EXPECT_TRUE(Has(RunKeel("import " + File("worse") + " " + root()), "-1 is not a step"));
}

// A state far larger than the memory that the program may have. A sanitizer's shadow would count.
TEST_F(KeelExchange, MemoryIsBoundedWhateverTheSize) {
  if (kUnderSanitizer) GTEST_SKIP() << "a sanitizer's shadow memory counts against the limit";
  std::vector<TensorSpec> specs;
  for (int i = 0; i < 5; ++i) {
    specs.push_back({"w" + std::to_string(i), Dtype::kF32, {15, 1024, 1024}});
  }
  ASSERT_OK_AND_ASSIGN(const auto header, MakeSafetensorsHeader(specs, {}));
  ASSERT_OK_AND_ASSIGN(const std::string head, SafetensorsHead(header));
  ASSERT_OK_AND_ASSIGN(const auto file,
                       files_.Open(File("big"), {.write = true, .create = true}));
  ASSERT_OK(file->WriteAt(0, BytesOf(head)));
  ASSERT_OK(file->Truncate(head.size() + header.data_bytes()));  // 300 MiB of nothing
  const auto limited = [](const std::string& arguments) {
    return RunShell("ulimit -d 100000; " KEEL_BIN_DIR "/keel " + arguments);
  };
  const Ran imported = limited("import " + File("big") + " " + root());
  EXPECT_EQ(imported.exit_code, 0) << imported.out;
  const Ran exported = limited("export " + root() + " " + File("again"));
  EXPECT_EQ(exported.exit_code, 0) << exported.out;
  ASSERT_OK_AND_ASSIGN(const auto again, SafetensorsFile::Open(files_, File("again")));
  EXPECT_EQ(again->header().tensors, header.tensors);
}

// Python's safetensors, in the environment that tools/setup.sh --tests makes.
class KeelExchangePython : public KeelExchange {
 protected:
  void SetUp() override {
    if (::access(KEEL_TEST_PYTHON, X_OK) != 0) {
      GTEST_SKIP() << KEEL_TEST_PYTHON << " is not there: tools/setup.sh --tests makes it";
    }
  }

  static Ran Peer(const std::string& mode, const std::string& path) {
    return RunShell(KEEL_TEST_PYTHON " -I -B " KEEL_SOURCE_DIR
                    "/tests/tools/safetensors_peer.py " + mode + " " + path);
  }

  static Json Check(const std::string& path) {
    const Ran ran = Peer("check", path);
    EXPECT_EQ(ran.exit_code, 0) << ran.out;
    const auto json = ParseJson(ran.out);
    EXPECT_TRUE(json.ok()) << ran.out;
    return json.ok() ? *json : Json::object();
  }
};

TEST_F(KeelExchangePython, OpensWhatWeExportAndWouldHaveWrittenTheSameBytes) {
  const TestState state = Everything();
  SaveStep(state, 3);
  ASSERT_EQ(RunKeel("export " + root() + " " + File("m")).exit_code, 0);
  const Json seen = Check(File("m"));
  EXPECT_EQ(seen["same_bytes"], true);
  EXPECT_EQ(seen["metadata"]["note"], "a \"quoted\" line");
  EXPECT_EQ(seen["metadata"]["keel.step"], "3");
  EXPECT_EQ(seen["metadata"]["format"], "pt") << "or Accelerate and Transformers 4 refuse it";
  ASSERT_EQ(seen["tensors"].size(), state.specs.size());
  for (size_t i = 0; i < state.specs.size(); ++i) {
    const Json& tensor = seen["tensors"][state.specs[i].name];
    EXPECT_EQ(tensor["shape"], Json(state.specs[i].shape)) << state.specs[i].name;
    EXPECT_EQ(tensor["hex"], Hex(state.bytes[i])) << state.specs[i].name;
  }
  EXPECT_EQ(seen["tensors"]["kind.bf16"]["dtype"], "BF16");
  EXPECT_EQ(seen["tensors"]["kind.f8_e4m3"]["dtype"], "F8_E4M3");
}

TEST_F(KeelExchangePython, WritesWhatWeImport) {
  const Ran wrote = Peer("write", File("theirs"));
  ASSERT_EQ(wrote.exit_code, 0) << wrote.out;
  const Json imported = KeelJson("import " + File("theirs") + " " + root());
  const auto content = Content(imported["dir"]);
  EXPECT_EQ(content.at("unsigned"), "u64 [1] ffffffffffffffff");
  EXPECT_EQ(content.at("scalar"), "i64 [] 0700000000000000");
  EXPECT_EQ(content.at("Gödel \"\\ 🧮"), "u8 [3] 010203");
  EXPECT_EQ(content.at("empty"), "f32 [0, 4] ");
  EXPECT_EQ(KeelJson("inspect " + root())["user"]["note"], "línea\n2");
  ASSERT_EQ(RunKeel("export " + root() + " " + File("ours")).exit_code, 0);
  EXPECT_EQ(Check(File("ours"))["tensors"], Check(File("theirs"))["tensors"]);
}

}  // namespace
}  // namespace keel
