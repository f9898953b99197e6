// The header says in which order the bytes lie.
#include "trainer/save/tensor_file.h"

#include <string_view>
#include <utility>
#include <vector>

#include "base/output_file.h"
#include "ckpt/safetensors_file.h"
#include "trainer/state/image.h"

namespace keel {

Result<at::ScalarType> TypeOf(const TensorSpec& spec) {
  for (const at::ScalarType type :
       {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble, at::kLong, at::kInt, at::kShort,
        at::kChar, at::kUInt64, at::kUInt32, at::kUInt16, at::kByte, at::kBool,
        at::kFloat8_e4m3fn, at::kFloat8_e5m2, at::kComplexFloat, at::kComplexDouble}) {
    KEEL_TRY_ASSIGN(const auto specs, SpecsOf({{spec.name, at::empty({0}, type)}}));
    if (specs.front().dtype == spec.dtype) return type;
  }
  return Error{Code::kInvalid, "tensor " + spec.name + " has the type " +
                                   std::string(DtypeName(spec.dtype)) +
                                   ", which PyTorch has not"};
}

Status WriteTensorFile(Files& files, const TensorFile& content, const std::string& path,
                       bool replace) {
  const NamedTensors& tensors = content.tensors;
  KEEL_TRY_ASSIGN(std::vector<TensorSpec> specs, SpecsOf(tensors));
  KEEL_TRY_ASSIGN(const SafetensorsHeader header,
                  MakeSafetensorsHeader(std::move(specs), content.metadata));
  KEEL_TRY_ASSIGN(const CpuBytes bytes,
                  CpuBytes::Of(tensors, [](size_t) { return CpuBytes::Take::kAlias; }));
  std::map<std::string_view, size_t> index_of;
  for (size_t i = 0; i < tensors.size(); ++i) index_of[tensors[i].name] = i;
  RemoveOutputLeftovers(files, path);
  KEEL_TRY_ASSIGN(const auto writer,
                  SafetensorsWriter::Begin(files, {path, NewOutputId(), replace}, header));
  for (const SafetensorsTensor& tensor : header.tensors) {
    KEEL_TRY(writer->Append(bytes.spans()[index_of.at(tensor.spec.name)]));
  }
  return writer->Commit();
}

Result<TensorFile> ReadTensorFile(Files& files, const std::string& path,
                                  const std::function<bool(const std::string& name)>& is_wanted) {
  KEEL_TRY_ASSIGN(const auto file, SafetensorsFile::Open(files, path));
  TensorFile content{.metadata = file->header().metadata};
  const std::vector<SafetensorsTensor>& tensors = file->header().tensors;
  std::vector<size_t> wanted;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorSpec& spec = tensors[i].spec;
    if (is_wanted != nullptr && !is_wanted(spec.name)) continue;
    KEEL_TRY_ASSIGN(const at::ScalarType type, TypeOf(spec));
    content.tensors.push_back({spec.name, at::empty(spec.shape, type)});
    wanted.push_back(i);
  }
  KEEL_TRY_ASSIGN(const HostRoom room, HostRoom::For(content.tensors));
  for (size_t i = 0; i < wanted.size(); ++i) KEEL_TRY(file->Read(wanted[i], 0, room.At(i)));
  KEEL_TRY(room.Finish());
  return content;
}

}  // namespace keel
