// Elements are compared as rows of bytes.
#include "trainer/numerics/tensor_difference.h"

#include <array>
#include <charconv>

#include "base/text.h"

namespace keel {
namespace {

at::Tensor Bytes(const at::Tensor& tensor) {
  return at::from_blob(tensor.data_ptr(), {tensor.numel(), tensor.element_size()}, at::kByte);
}

at::Tensor Values(const at::Tensor& tensor) {
  return tensor.to(tensor.is_complex() ? at::kComplexDouble : at::kDouble);
}

// The shortest text that tells it from all others of its type; of a complex one its real part.
std::string ValueText(const at::Tensor& value) {
  const at::Tensor real = value.is_complex() ? at::real(value) : value;
  const double number = real.to(at::kDouble).item<double>();
  if (real.scalar_type() == at::kDouble || !real.is_floating_point()) return NumberText(number);
  std::array<char, 40> text{};
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), static_cast<float>(number));
  return error == std::errc() ? std::string(text.data(), end) : NumberText(number);
}

std::vector<int64_t> IndexOf(int64_t element, at::IntArrayRef shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    index[i] = element % shape[i];
    element /= shape[i];
  }
  return index;
}

}  // namespace

TensorDifference DifferenceOf(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor left = a.contiguous();
  const at::Tensor right = b.contiguous();
  TensorDifference found{.all = left.numel()};
  if (found.all == 0) return found;
  const at::Tensor which = (Bytes(left) != Bytes(right)).any(1).nonzero().flatten();
  found.differ = which.numel();
  if (found.differ == 0) return found;
  const int64_t first = which[0].item<int64_t>();
  found.first = IndexOf(first, left.sizes());
  const at::Tensor ours = left.flatten().index_select(0, which);
  const at::Tensor theirs = right.flatten().index_select(0, which);
  found.a = ValueText(ours[0]);
  found.b = ValueText(theirs[0]);
  found.largest = at::abs(Values(ours) - Values(theirs)).max().item<double>();
  return found;
}

std::string DifferenceText(const TensorDifference& difference) {
  std::vector<std::string> index;
  for (const int64_t one : difference.first) index.push_back(std::to_string(one));
  return std::to_string(difference.differ) + " of " + CountText(difference.all, "element") +
         ", the first at [" + JoinList(index, ", ") + "]: " + difference.a + " and " +
         difference.b + ", at most " + ShortText(difference.largest) + " apart";
}

}  // namespace keel
