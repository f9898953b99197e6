// Reads members of JSON objects as the type asked for, or says what is there instead.
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/json.h"
#include "base/text.h"

namespace keel {
namespace {

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
