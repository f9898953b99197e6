// The strict JSON reader, built on nlohmann's event parser.
#include "base/json.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <vector>

#include "base/text.h"

namespace keel {
namespace {

constexpr size_t kReasonMax = 200;

// "line 3, column 7: ", where `offset` counts bytes from the text's start.
std::string PlaceText(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t last_break = before.rfind('\n');
  const size_t line_start = last_break == std::string_view::npos ? 0 : last_break + 1;
  return "line " + std::to_string(line) + ", column " +
         std::to_string(before.size() - line_start + 1) + ": ";
}

// Walks over the text and notes how far the parser has read, which its events do not tell.
class TrackedChar {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  TrackedChar(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
  reference operator*() const { return *at_; }
  TrackedChar& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  TrackedChar operator++(int) {
    const TrackedChar before = *this;
    ++*this;
    return before;
  }
  bool operator==(const TrackedChar& other) const { return at_ == other.at_; }
  bool operator!=(const TrackedChar& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** furthest_;
};

// Builds a Json from events and keeps the first problem. An event that returns false ends parsing.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(std::string_view text) : text_(text), read_to_(text.data()) {}

  TrackedChar Begin() { return {text_.data(), &read_to_}; }
  TrackedChar End() { return {text_.data() + text_.size(), &read_to_}; }
  Json& root() { return root_; }
  const std::string& problem() const { return problem_; }

  bool null() override { return Put(nullptr); }
  bool boolean(bool value) override { return Put(value); }
  // Only "-0" comes here as a zero; a whole number has no sign without a value.
  bool number_integer(number_integer_t value) override {
    return value == 0 ? Put(-0.0) : Put(value);
  }
  bool number_unsigned(number_unsigned_t value) override { return Put(value); }
  bool number_float(number_float_t value, const string_t& written) override {
    // The parser turns integers that do not fit into doubles, which would lose digits unseen.
    if (written.find_first_of(".eE") == std::string::npos) {
      return Refuse("the whole number " + Shown(written) + " does not fit 64 bits");
    }
    return Put(value);
  }
  bool string(string_t& value) override { return Put(std::move(value)); }
  bool binary(binary_t&) override { return Refuse("found binary data"); }

  bool start_object(std::size_t) override { return Open(Json::object()); }
  bool start_array(std::size_t) override { return Open(Json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override {
    if (!open_.back().keys.insert(name).second) {
      return Refuse("found the key " + Shown(name) + " a second time in one object");
    }
    open_.back().key = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& exception) override {
    // "[json...] parse error at line 1, column 5: syntax error while parsing value - unexpected
    // '}'; expected ...": only what follows the dash is news.
    std::string_view reason = exception.what();
    const size_t dash = reason.find(" - ");
    if (dash != std::string_view::npos) reason.remove_prefix(dash + 3);
    // It repeats what it read last, whatever bytes those are.
    problem_ = PlaceText(text_, position == 0 ? 0 : position - 1) +
               Printable(Beginning(reason, kReasonMax));
    if (reason.size() > kReasonMax) problem_ += "...";
    return false;
  }

 private:
  // An array or object whose end has not come yet. The pointer stays good: until then nothing is
  // added to what holds it.
  struct Frame {
    Json* value;
    std::string key;
    std::unordered_set<std::string> keys;
  };

  Json* Place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Frame& frame = open_.back();
    if (frame.value->is_array()) {
      auto& items = frame.value->get_ref<Json::array_t&>();
      items.push_back(std::move(value));
      return &items.back();
    }
    // Not operator[], which looks through all members: keys are known to differ.
    auto& members = frame.value->get_ref<Json::object_t&>();
    members.emplace_back(std::move(frame.key), std::move(value));
    return &members.back().second;
  }
  bool Put(Json value) {
    Place(std::move(value));
    return true;
  }
  bool Open(Json value) {
    if (open_.size() == kJsonDepthMax) {
      return Refuse("nested deeper than " + std::to_string(kJsonDepthMax) + " levels");
    }
    Json* const placed = Place(std::move(value));
    open_.push_back({placed, {}, {}});
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }
  bool Refuse(const std::string& reason) {
    const size_t read = read_to_ - text_.data();
    problem_ = PlaceText(text_, read == 0 ? 0 : read - 1) + reason;
    return false;
  }

  std::string_view text_;
  const char* read_to_;
  Json root_;
  std::vector<Frame> open_;
  std::string problem_;
};

}  // namespace

Result<Json> ParseJson(std::string_view text) {
  try {
    Builder builder(text);
    if (!Json::sax_parse(builder.Begin(), builder.End(), &builder)) {
      return Error{Code::kInvalid, builder.problem()};
    }
    // The parser takes a zero byte for the end of the text, whatever comes behind it.
    const size_t zero = text.find('\0');
    if (zero != std::string_view::npos) {
      return Error{Code::kInvalid, PlaceText(text, zero) + "found a zero byte"};
    }
    return std::move(builder.root());
  } catch (const std::exception& exception) {
    return Error{Code::kForeign, std::string("reading JSON: ") + exception.what()};
  }
}

std::string DumpJson(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace keel
