// `keel records OUT FILE...`: a record file of images and labels.
#include <algorithm>

#include "base/file_helpers.h"
#include "base/output_file.h"
#include "base/text.h"
#include "tools/keel/commands.h"
#include "tools/keel/pnm.h"
#include "tools/keel/wording.h"
#include "trainer/record_file.h"

namespace keel {
namespace {

constexpr uint64_t kInputMax = uint64_t{1} << 30;   // of one file of images
constexpr size_t kCifarImage = 3 * 32 * 32;
constexpr size_t kLabelBytes = 4;

struct Made {
  RecordHeader header;
  std::vector<std::string> classes;   // where the inputs name them
};

std::vector<RecordField> FieldsOf(int64_t channels, int64_t height, int64_t width) {
  return {{"image", Dtype::kU8, {channels, height, width}}, {"label", Dtype::kI32, {}}};
}

// An image, then its label as four bytes.
std::string RecordOf(std::string_view pixels, uint32_t label) {
  std::string record(pixels);
  record.append(reinterpret_cast<const char*>(&label), kLabelBytes);
  return record;
}

// --- CIFAR-10: records of a label's byte and 3072 bytes, all reds first ---

Status AppendCifar(const std::string& content, RecordFileWriter& writer) {
  if (content.empty() || content.size() % (1 + kCifarImage) != 0) {
    return Error{Code::kInvalid, std::to_string(content.size()) + " bytes are no whole number of "
                                 "CIFAR-10 images of 3073"};
  }
  for (size_t at = 0; at < content.size(); at += 1 + kCifarImage) {
    const uint32_t label = static_cast<uint8_t>(content[at]);
    if (label > 9) {
      return Error{Code::kInvalid, "image " + std::to_string(at / (1 + kCifarImage)) +
                                       " has the label " + std::to_string(label) +
                                       "; CIFAR-10 has 0 to 9 (is this CIFAR-100?)"};
    }
    const std::string_view pixels = std::string_view(content).substr(at + 1, kCifarImage);
    KEEL_TRY(writer.Append(BytesOf(RecordOf(pixels, label))));
  }
  return Ok();
}

Result<Made> MakeFromCifar(Files& files, const std::string& out,
                           std::span<const std::string> inputs) {
  KEEL_TRY_ASSIGN(const auto writer, RecordFileWriter::Open(files, out, FieldsOf(3, 32, 32)));
  for (const std::string& path : inputs) {
    KEEL_TRY_ASSIGN(const std::string content, ReadWhole(files, path, kInputMax));
    const Status appended = AppendCifar(content, *writer);
    if (!appended.ok()) return appended.error().Doing(path);
  }
  Made made;
  KEEL_TRY_ASSIGN(made.header, writer->Finish());
  return made;
}

// --- Pictures: a file each, in a folder that is named after their class ---

std::string ClassOf(const std::string& path) {
  const std::string folder = ParentDir(path);
  return folder.substr(folder.rfind('/') + 1);
}

std::vector<std::string> ClassesOf(std::span<const std::string> inputs) {
  std::vector<std::string> classes;
  for (const std::string& path : inputs) classes.push_back(ClassOf(path));
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  return classes;
}

std::string SizeText(const std::vector<int64_t>& shape) {
  return std::to_string(shape[2]) + "x" + std::to_string(shape[1]) + " with " +
         CountText(static_cast<uint64_t>(shape[0]), "channel");
}

Result<Picture> ReadPicture(Files& files, const std::string& path) {
  KEEL_TRY_ASSIGN(const std::string content, ReadWhole(files, path, kInputMax));
  Result<Picture> picture = ParsePnm(content);
  if (!picture.ok()) return picture.error().Doing(path);
  return picture;
}

Result<Made> MakeFromPictures(Files& files, const std::string& out,
                              std::span<const std::string> inputs) {
  KEEL_TRY_ASSIGN(const Picture first, ReadPicture(files, inputs.front()));
  const auto fields = FieldsOf(first.channels, first.height, first.width);
  KEEL_TRY_ASSIGN(const auto writer, RecordFileWriter::Open(files, out, fields));
  Made made;
  made.classes = ClassesOf(inputs);
  for (const std::string& path : inputs) {
    KEEL_TRY_ASSIGN(const Picture picture, ReadPicture(files, path));
    const std::vector<int64_t> shape = {picture.channels, picture.height, picture.width};
    if (shape != fields[0].shape) {
      return Error{Code::kInvalid, path + " is " + SizeText(shape) + ", but " + inputs.front() +
                                       " is " + SizeText(fields[0].shape) +
                                       "; scale them to one size first"};
    }
    const auto at = std::lower_bound(made.classes.begin(), made.classes.end(), ClassOf(path));
    const auto label = static_cast<uint32_t>(at - made.classes.begin());
    KEEL_TRY(writer->Append(BytesOf(RecordOf(picture.pixels, label))));
  }
  KEEL_TRY_ASSIGN(made.header, writer->Finish());
  return made;
}

}  // namespace

OptionTable RecordsTable() {
  OptionTable table = CommandTable(
      "records",
      "Makes a record file for training from images: each record has `image`, bytes in the order "
      "channel, row, column, and `label`, a whole number. Trainers map it into memory "
      "(RecordDataset). Records stand in the order of the inputs; trainers shuffle.",
      "OUT FILE...", "");
  table.Add(Option::Choice("from", {"cifar10", "pnm"}, "pnm",
                           "What the files are. cifar10: CIFAR-10's binary version "
                           "(data_batch_1.bin). pnm: binary PPM and PGM pictures of one size, a "
                           "file each; the folder that holds one is its class, and classes are "
                           "numbered by name"));
  table.AddExample("keel records train.records data_batch_*.bin --from cifar10",
                   "CIFAR-10's training images");
  table.AddExample("keel records pets.records cats/*.ppm dogs/*.ppm", "Two classes: cats, dogs");
  return table;
}

Result<Outcome> RunRecords(const World& world, const Options& options) {
  const std::string& out = options.positionals()[0];
  const std::span<const std::string> inputs = std::span(options.positionals()).subspan(1);
  const bool cifar = options.Text("from") == "cifar10";
  RemoveOutputLeftovers(world.files, out);
  KEEL_TRY_ASSIGN(const Made made, cifar ? MakeFromCifar(world.files, out, inputs)
                                         : MakeFromPictures(world.files, out, inputs));
  const uint64_t bytes = made.header.count * made.header.record_bytes();
  std::string text = "made " + out + ": " + CountText(made.header.count, "record") + " of " +
                     SizeText(made.header.fields[0].shape) + ", " + BytesText(bytes) + "\n";
  Json classes = Json::array();
  for (size_t label = 0; label < made.classes.size(); ++label) {
    text += "  label " + std::to_string(label) + " is " + made.classes[label] + "\n";
    classes.push_back(made.classes[label]);
  }
  return Outcome{{{"file", out},
                  {"records", made.header.count},
                  {"shape", made.header.fields[0].shape},
                  {"classes", std::move(classes)},
                  {"bytes", bytes},
                  {"digest", made.header.content.Hex()}},
                 text};
}

}  // namespace keel
