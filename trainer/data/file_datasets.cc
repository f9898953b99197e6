// Makes tensors from the bytes of mapped files.
#include "trainer/file_datasets.h"

#include <ATen/ATen.h>

#include <cstring>
#include <optional>

#include "base/text.h"
#include "store/catch_torch.h"
#include "trainer/record_file.h"
#include "trainer/token_file.h"

namespace keel {
namespace {

class TokenWindowDataset : public Dataset {
 public:
  TokenWindowDataset(std::unique_ptr<TokenFile> file, const TokenWindows& windows, uint64_t size)
      : file_(std::move(file)), windows_(windows), size_(size) {}

  uint64_t size() const override { return size_; }
  Loading loading() const override { return Loading::kAheadInParallel; }
  std::string Identity() const override { return file_->header().content.Hex(); }

  Result<Batch> Load(std::span<const uint64_t> indices) override {
    const auto rows = static_cast<int64_t>(indices.size());
    const auto context = static_cast<int64_t>(windows_.context);
    KEEL_TRY_ASSIGN(Batch batch, CatchTorch("making room for tokens", [&] {
      return Batch(at::empty({rows, context}, at::kLong), at::empty({rows, context}, at::kLong));
    }));
    int64_t* data = batch.data.mutable_data_ptr<int64_t>();
    int64_t* target = batch.target.mutable_data_ptr<int64_t>();
    for (const uint64_t index : indices) {
      const uint64_t begin = index * windows_.stride;
      KEEL_TRY(file_->Read(begin, std::span(data, windows_.context)));
      KEEL_TRY(file_->Read(begin + 1, std::span(target, windows_.context)));
      data += context;
      target += context;
    }
    return batch;
  }

 private:
  const std::unique_ptr<TokenFile> file_;
  const TokenWindows windows_;
  const uint64_t size_;
};

// --- Records ---

// Empty: LibTorch has no such type, or does not compute with it.
std::optional<at::ScalarType> ScalarTypeOf(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBool: return at::kBool;
    case Dtype::kU8: return at::kByte;
    case Dtype::kI8: return at::kChar;
    case Dtype::kI16: return at::kShort;
    case Dtype::kI32: return at::kInt;
    case Dtype::kI64: return at::kLong;
    case Dtype::kF16: return at::kHalf;
    case Dtype::kBf16: return at::kBFloat16;
    case Dtype::kF32: return at::kFloat;
    case Dtype::kF64: return at::kDouble;
    default: return std::nullopt;
  }
}

struct FieldPlan {
  size_t field = 0;
  at::ScalarType type = at::kFloat;
  std::vector<int64_t> shape;
};

Result<FieldPlan> PlanField(const RecordFile& file, const std::string& name) {
  const std::optional<size_t> field = file.header().FieldNamed(name);
  if (!field) {
    std::vector<std::string> names;
    for (const RecordField& one : file.header().fields) names.push_back(one.name);
    return Error{Code::kInvalid, file.path() + " has no field " + Shown(name) + "; it has " +
                                     JoinList(names, ", ")};
  }
  const RecordField& found = file.header().fields[*field];
  const std::optional<at::ScalarType> type = ScalarTypeOf(found.dtype);
  if (!type) {
    return Error{Code::kInvalid, file.path() + ", field " + Shown(name) + ": LibTorch cannot train "
                                     "with " + std::string(DtypeName(found.dtype))};
  }
  return FieldPlan{*field, *type, found.shape};
}

class RecordSampleDataset : public Dataset {
 public:
  RecordSampleDataset(std::unique_ptr<RecordFile> file, FieldPlan data, FieldPlan target,
                      at::Tensor mean, at::Tensor deviation)
      : file_(std::move(file)),
        data_(std::move(data)),
        target_(std::move(target)),
        mean_(std::move(mean)),
        deviation_(std::move(deviation)) {}

  uint64_t size() const override { return file_->size(); }
  Loading loading() const override { return Loading::kAheadInParallel; }
  std::string Identity() const override { return file_->header().content.Hex(); }

  Result<Batch> Load(std::span<const uint64_t> indices) override {
    KEEL_TRY_ASSIGN(const at::Tensor data, Rows(data_, indices));
    KEEL_TRY_ASSIGN(const at::Tensor target, Rows(target_, indices));
    return CatchTorch("converting records", [&] {
      const bool whole = at::isIntegralType(target.scalar_type(), /*includeBool=*/true);
      return Batch(Scaled(data), whole ? target.to(at::kLong) : target);
    });
  }

 private:
  Result<at::Tensor> Rows(const FieldPlan& plan, std::span<const uint64_t> indices) const {
    std::vector<int64_t> shape = plan.shape;
    shape.insert(shape.begin(), static_cast<int64_t>(indices.size()));
    KEEL_TRY_ASSIGN(at::Tensor rows, CatchTorch("making room for records",
                                           [&] { return at::empty(shape, plan.type); }));
    auto* into = static_cast<std::byte*>(rows.mutable_data_ptr());
    for (const uint64_t index : indices) {
      KEEL_TRY_ASSIGN(const std::span<const std::byte> bytes, file_->Field(index, plan.field));
      std::memcpy(into, bytes.data(), bytes.size());
      into += bytes.size();
    }
    return rows;
  }

  at::Tensor Scaled(const at::Tensor& data) const {
    if (data.scalar_type() != at::kByte) return data;
    at::Tensor scaled = data.to(at::kFloat).div_(255);
    if (mean_.defined()) scaled.sub_(mean_).div_(deviation_);
    return scaled;
  }

  const std::unique_ptr<RecordFile> file_;
  const FieldPlan data_;
  const FieldPlan target_;
  const at::Tensor mean_;        // with one dimension for each of a record's; or undefined
  const at::Tensor deviation_;
};

Status CheckScale(const RecordSamples& samples, const FieldPlan& data) {
  if (samples.mean.empty() && samples.deviation.empty()) return Ok();
  if (data.type != at::kByte) {
    return Error{Code::kInvalid, samples.path + ": mean and deviation are for u8 data; field " +
                                     Shown(samples.data) + " is something else"};
  }
  const size_t channels = data.shape.empty() ? 1 : static_cast<size_t>(data.shape.front());
  if (samples.mean.size() != channels || samples.deviation.size() != channels) {
    return Error{Code::kInvalid, samples.path + ": " + std::to_string(samples.mean.size()) +
                                     " means and " + std::to_string(samples.deviation.size()) +
                                     " deviations for " + std::to_string(channels) + " channels"};
  }
  for (const double deviation : samples.deviation) {
    if (!(deviation > 0)) {
      return Error{Code::kInvalid, samples.path + ": a deviation of " + NumberText(deviation) +
                                       "; it must be above 0"};
    }
  }
  return Ok();
}

at::Tensor ByChannel(const std::vector<double>& values, const FieldPlan& data) {
  if (values.empty()) return {};
  std::vector<int64_t> shape(data.shape.size(), 1);
  if (!shape.empty()) shape.front() = static_cast<int64_t>(values.size());
  return at::tensor(values, at::kDouble).to(at::kFloat).view(shape);
}

}  // namespace

Result<std::unique_ptr<Dataset>> TokenDataset(const TokenWindows& asked) {
  TokenWindows windows = asked;
  if (windows.context == 0) {
    return Error{Code::kInvalid, windows.path + ": a context of 0 tokens; a sample needs some"};
  }
  if (windows.stride == 0) windows.stride = windows.context;
  KEEL_TRY_ASSIGN(std::unique_ptr<TokenFile> file, TokenFile::Open(windows.path));
  if (file->size() < windows.context + 1) {
    return Error{Code::kInvalid, windows.path + " has " + std::to_string(file->size()) +
                                     " tokens; a sample takes " +
                                     std::to_string(windows.context + 1)};
  }
  const uint64_t size = (file->size() - windows.context - 1) / windows.stride + 1;
  return std::unique_ptr<Dataset>(
      std::make_unique<TokenWindowDataset>(std::move(file), windows, size));
}

Result<std::unique_ptr<Dataset>> RecordDataset(const RecordSamples& samples) {
  KEEL_TRY_ASSIGN(std::unique_ptr<RecordFile> file, RecordFile::Open(samples.path));
  if (file->size() == 0) return Error{Code::kInvalid, samples.path + " has no records"};
  KEEL_TRY_ASSIGN(FieldPlan data, PlanField(*file, samples.data));
  KEEL_TRY_ASSIGN(FieldPlan target, PlanField(*file, samples.target));
  KEEL_TRY(CheckScale(samples, data));
  return CatchTorch("preparing " + samples.path, [&]() -> std::unique_ptr<Dataset> {
    at::Tensor mean = ByChannel(samples.mean, data);
    at::Tensor deviation = ByChannel(samples.deviation, data);
    return std::make_unique<RecordSampleDataset>(std::move(file), std::move(data),
                                                 std::move(target), std::move(mean),
                                                 std::move(deviation));
  });
}

}  // namespace keel
