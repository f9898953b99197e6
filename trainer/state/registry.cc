// The ordered list, its checks, its digests, and numbers as JSON.
#include "trainer/state/registry.h"

#include <algorithm>
#include <set>

#include "base/json.h"
#include "base/text.h"
#include "trainer/numerics/tensor_digest.h"

namespace keel {
namespace {

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string ListText(at::IntArrayRef values) {
  std::vector<std::string> parts;
  for (const int64_t value : values) parts.push_back(std::to_string(value));
  return JoinList(parts, "x");
}

// "model.weight Float 3x4 4x1"
std::string LayoutLine(const NamedTensor& named) {
  return named.name + ' ' + c10::toString(named.tensor.scalar_type()) + ' ' +
         ListText(named.tensor.sizes()) + ' ' + ListText(named.tensor.strides()) + '\n';
}

Json JsonOf(const MetadataValue& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

template <class T>
Status WriteAs(const std::string& name, const MetadataValue& value, T* into) {
  if (const T* held = std::get_if<T>(&value)) {
    *into = *held;
    return Ok();
  }
  return Error{Code::kInvalid, name + " is " + MetadataText(value) + ", another kind of value"};
}

// Whole numbers that fit come back as int64_t.
Status WriteWhole(const std::string& name, const MetadataValue& value, uint64_t* into) {
  const int64_t* const small = std::get_if<int64_t>(&value);
  if (small == nullptr) return WriteAs(name, value, into);
  if (*small < 0) return Error{Code::kInvalid, name + " is " + MetadataText(value) + ", below 0"};
  *into = static_cast<uint64_t>(*small);
  return Ok();
}

// A real number that happens to be whole may come back as one.
Status WriteReal(const std::string& name, const MetadataValue& value, double* into) {
  const int64_t* const whole = std::get_if<int64_t>(&value);
  if (whole == nullptr) return WriteAs(name, value, into);
  *into = static_cast<double>(*whole);
  return Ok();
}

Status WriteDigest(const std::string& name, const MetadataValue& value, Digest* into) {
  std::string hex;
  KEEL_TRY(WriteAs(name, value, &hex));
  const Result<Digest> digest = ParseDigest(hex);
  if (!digest.ok()) return digest.error().Doing(name);
  *into = *digest;
  return Ok();
}

}  // namespace

Status StateRegistry::AddTensors(const std::string& prefix, const NamedTensors& tensors) {
  std::set<std::string> names;
  for (const NamedTensor& held : tensors_) names.insert(held.name);
  for (const NamedTensor& tensor : tensors) {
    const std::string name = prefix + tensor.name;
    if (!names.insert(name).second) {
      return Error{Code::kInvalid, "two tensors of the state are named " + name};
    }
    if (!tensor.tensor.defined() || !IsDense(tensor.tensor)) {
      return Error{Code::kInvalid, "tensor " + name + " is not one dense piece of memory; give a "
                                       "copy of it (.clone()) to the model"};
    }
  }
  for (const NamedTensor& tensor : tensors) {
    tensors_.push_back({prefix + tensor.name, tensor.tensor});
  }
  return Ok();
}

Status StateRegistry::AddNumber(NumberEntry entry) {
  for (const NumberEntry& held : numbers_) {
    if (held.name == entry.name) {
      return Error{Code::kInvalid, "two numbers of the state are named " + entry.name};
    }
  }
  numbers_.push_back(std::move(entry));
  return Ok();
}

Status StateRegistry::AddNumber(const std::string& name, uint64_t* number) {
  return AddNumber(
      {name,
       [number]() -> Number {
         if (*number > INT64_MAX) return *number;
         return static_cast<int64_t>(*number);
       },
       [name, number](const Number& value) { return WriteWhole(name, value, number); }});
}

Status StateRegistry::AddNumber(const std::string& name, double* number) {
  return AddNumber(
      {name, [number]() -> Number { return *number; },
       [name, number](const Number& value) { return WriteReal(name, value, number); }});
}

Status StateRegistry::AddNumber(const std::string& name, Digest* digest) {
  return AddNumber(
      {name, [digest]() -> Number { return digest->Hex(); },
       [name, digest](const Number& value) { return WriteDigest(name, value, digest); }});
}

std::vector<at::Tensor> StateRegistry::FlatAliases() const {
  std::vector<at::Tensor> aliases;
  for (const NamedTensor& named : tensors_) aliases.push_back(FlatAlias(named.tensor));
  return aliases;
}

uint64_t StateRegistry::bytes() const {
  uint64_t sum = 0;
  for (const NamedTensor& named : tensors_) sum += named.tensor.nbytes();
  return sum;
}

Metadata StateRegistry::Numbers() const {
  Metadata numbers;
  for (const NumberEntry& entry : numbers_) numbers[entry.name] = entry.read();
  return numbers;
}

Status StateRegistry::SetNumbers(const Metadata& numbers) {
  std::vector<std::string> wrong;
  for (const NumberEntry& entry : numbers_) {
    if (numbers.count(entry.name) == 0) wrong.push_back(entry.name + " is missing");
  }
  for (const auto& [name, value] : numbers) {
    const auto knows = [&name = name](const NumberEntry& entry) { return entry.name == name; };
    if (std::none_of(numbers_.begin(), numbers_.end(), knows)) {
      wrong.push_back(name + " is unknown here");
    }
  }
  if (!wrong.empty()) {
    return Error{Code::kInvalid, "the numbers of the state: " + JoinList(wrong, "; ")};
  }
  for (const NumberEntry& entry : numbers_) KEEL_TRY(entry.write(numbers.at(entry.name)));
  return Ok();
}

std::string StateRegistry::NumbersText() const {
  Json json = Json::object();
  for (const auto& [name, value] : Numbers()) json[name] = JsonOf(value);
  return json.dump();
}

Status StateRegistry::SetNumbersText(const std::string& text) {
  KEEL_TRY_ASSIGN(const Json json, ParseJson(text));
  if (!json.is_object()) {
    return Error{Code::kInvalid, "the numbers of the state are no JSON object: " + Shown(text)};
  }
  Metadata numbers;
  for (const auto& [name, value] : json.items()) {
    KEEL_TRY_ASSIGN(numbers[name], MetadataFromJson(name, value));
  }
  return SetNumbers(numbers);
}

Digest StateRegistry::LayoutDigest() const {
  std::string layout;
  for (const NamedTensor& named : tensors_) layout += LayoutLine(named);
  for (const NumberEntry& entry : numbers_) layout += entry.name + '\n';
  return DigestOf(BytesOf(layout));
}

Digest StateRegistry::StateDigest() const {
  Digester digester;
  digester.Update(LayoutDigest().bytes);
  digester.Update(DigestOfTensors(JustTensors(tensors_)).bytes);
  digester.Update(BytesOf(NumbersText()));
  return digester.Current();
}

}  // namespace keel
