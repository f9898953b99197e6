// The strict JSON reader, built on nlohmann's event parser, and the typed getters.
#include "base/json.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <type_traits>
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
  bool number_integer(number_integer_t value) override { return Put(value); }
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
    problem_ = PlaceText(text_, position == 0 ? 0 : position - 1) +
               std::string(reason.substr(0, kReasonMax));
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

std::string Found(const Json& json) {
  switch (json.type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::boolean: return json.get<bool>() ? "true" : "false";
    case Json::value_t::string: return "a string";
    case Json::value_t::array: return "an array";
    case Json::value_t::object: return "an object";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float: return "the number " + DumpJson(json);
    default: return "something that is not JSON";
  }
}

Error Unexpected(const char* expected, const Json& found) {
  return {Code::kInvalid, std::string("expected ") + expected + ", found " + Found(found)};
}

template <class T>
Result<T> WholeNumber(const Json& json) {
  constexpr const char* kExpected = std::is_unsigned_v<T> ? "a whole number that is not negative"
                                    : sizeof(T) < 8       ? "a whole number of 32 bits"
                                                          : "a whole number";
  if (json.is_number_unsigned()) {
    const auto number = json.get<uint64_t>();
    if (number <= static_cast<uint64_t>(std::numeric_limits<T>::max())) return T(number);
    if (sizeof(T) == 8) {
      return Error{Code::kInvalid, "the number " + std::to_string(number) +
                                       " is larger than " +
                                       std::to_string(std::numeric_limits<T>::max())};
    }
  } else if (json.is_number_integer()) {
    const auto number = json.get<int64_t>();
    if (std::is_unsigned_v<T> ? number >= 0
                              : number >= static_cast<int64_t>(std::numeric_limits<T>::min()) &&
                                    number <= static_cast<int64_t>(std::numeric_limits<T>::max())) {
      return T(number);
    }
  }
  return Unexpected(kExpected, json);
}

template <class T>
Result<std::vector<T>> ListOf(const Json& json);

template <class T>
Result<T> Convert(const Json& json) {
  if constexpr (std::is_same_v<T, bool>) {
    if (!json.is_boolean()) return Unexpected("true or false", json);
    return json.get<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    return WholeNumber<T>(json);
  } else if constexpr (std::is_same_v<T, double>) {
    if (!json.is_number()) return Unexpected("a number", json);
    return json.get<double>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!json.is_string()) return Unexpected("a string", json);
    return json.get_ref<const std::string&>();
  } else {
    return ListOf<typename T::value_type>(json);
  }
}

template <class T>
Result<std::vector<T>> ListOf(const Json& json) {
  if (!json.is_array()) return Unexpected("an array", json);
  std::vector<T> list;
  for (const Json& item : json) {
    Result<T> value = Convert<T>(item);
    if (!value.ok()) return value.error().Doing("item " + std::to_string(list.size()));
    list.push_back(*std::move(value));
  }
  return list;
}

std::string FieldText(std::string_view name) { return "field " + Shown(name); }

// The member, or nothing when the object lacks it.
Result<const Json*> Find(const Json& object, std::string_view name) {
  if (!object.is_object()) return Unexpected("an object", object).Doing(FieldText(name));
  for (const auto& [key, value] : object.get_ref<const Json::object_t&>()) {
    if (key == name) return &value;
  }
  return static_cast<const Json*>(nullptr);
}

Result<const Json*> Member(const Json& object, std::string_view name) {
  KEEL_TRY_ASSIGN(const Json* const found, Find(object, name));
  if (found == nullptr) return Error{Code::kNotFound, FieldText(name) + " is missing"};
  return found;
}

}  // namespace

Result<Json> ParseJson(std::string_view text) {
  try {
    Builder builder(text);
    if (!Json::sax_parse(builder.Begin(), builder.End(), &builder)) {
      return Error{Code::kInvalid, builder.problem()};
    }
    return std::move(builder.root());
  } catch (const std::exception& exception) {
    return Error{Code::kForeign, std::string("reading JSON: ") + exception.what()};
  }
}

std::string DumpJson(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

template <class T>
Result<T> Field(const Json& object, std::string_view name) {
  KEEL_TRY_ASSIGN(const Json* const found, Member(object, name));
  Result<T> value = Convert<T>(*found);
  if (!value.ok()) return value.error().Doing(FieldText(name));
  return value;
}

template <class T>
Result<T> FieldOr(const Json& object, std::string_view name, T otherwise) {
  KEEL_TRY_ASSIGN(const Json* const found, Find(object, name));
  if (found == nullptr) return otherwise;
  return Field<T>(object, name);
}

Result<const Json*> ArrayField(const Json& object, std::string_view name) {
  KEEL_TRY_ASSIGN(const Json* const found, Member(object, name));
  if (!found->is_array()) return Unexpected("an array", *found).Doing(FieldText(name));
  return found;
}

Result<const Json*> ObjectField(const Json& object, std::string_view name) {
  KEEL_TRY_ASSIGN(const Json* const found, Member(object, name));
  if (!found->is_object()) return Unexpected("an object", *found).Doing(FieldText(name));
  return found;
}

#define KEEL_FIELD_OF(T)                                   \
  template Result<T> Field<T>(const Json&, std::string_view); \
  template Result<T> FieldOr<T>(const Json&, std::string_view, T)
KEEL_FIELD_OF(bool);
KEEL_FIELD_OF(int);
KEEL_FIELD_OF(int64_t);
KEEL_FIELD_OF(uint64_t);
KEEL_FIELD_OF(double);
KEEL_FIELD_OF(std::string);
KEEL_FIELD_OF(std::vector<std::string>);
KEEL_FIELD_OF(std::vector<int64_t>);
#undef KEEL_FIELD_OF

}  // namespace keel
