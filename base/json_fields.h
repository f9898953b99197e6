// JsonFields: a struct names its members once; its JSON, and reading it back, follow from that.
//
//   template <>
//   struct JsonFields<Point> {
//     static void Visit(auto& field, auto& point) {
//       field("x", point.x);                      // what Field<T>() reads
//       field("y", point.y, Within{0, 100});      // in a form of its own
//       field("marks", point.marks);              // a struct with JsonFields, or a vector of such
//       field.Optional("name", !point.name.empty(), point.name);
//     }
//   };
//
// Promises   members are written in the order of the list and read in the same one; the error is
//            that of the first that is missing or wrong, and names it as Field() does.
//            ReadOnlyFields() also refuses members that are not in the list, here and in structs
//            within, but for those that may be missing.
// Does not   parse or print (base/json.h), or undo what it has read before an error.
// Threads    plain functions. Errors: kInvalid, kNotFound (no such member).
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace keel {

template <class T>
struct JsonFields;

template <class T>
concept HasJsonFields = requires { sizeof(JsonFields<T>); };

template <class T>
inline constexpr bool kIsListOfFields = false;
template <class T>
inline constexpr bool kIsListOfFields<std::vector<T>> = HasJsonFields<T>;

// "'port' is -1, expected 0 to 65535"
Result<int64_t> FieldWithin(const Json& object, std::string_view name, int64_t least, int64_t most);
// Whether it is an object of so many members. Where each member of a list was found, and there are
// as many as in the list, there are no others.
Status CheckMemberCount(const Json& json, size_t count);

// A form: how a member is written, where that is not what its type alone says. Each has
//   Json Write(const T& value) const;
//   Status Read(const Json& object, const char* name, T& into) const;

// A whole number within bounds, which the member's type can hold.
struct Within {
  int64_t least;
  int64_t most;

  static Json Write(const auto& number) { return number; }
  template <class T>
  Status Read(const Json& object, const char* name, T& into) const {
    KEEL_TRY_ASSIGN(const int64_t number, FieldWithin(object, name, least, most));
    into = static_cast<T>(number);
    return Ok();
  }
};

// The three visitors of a list. Each can be asked whether it reads: kReads.
class FieldWriter {
 public:
  static constexpr bool kReads = false;
  explicit FieldWriter(Json& object) : object_(object) {}

  template <class T>
  void operator()(const char* name, const T& value) {
    object_[name] = JsonOf(value);
  }
  template <class T, class Form>
  void operator()(const char* name, const T& value, const Form& form) {
    object_[name] = form.Write(value);
  }
  // A member that may be missing; `is_written`: whether it shall be there.
  template <class T, class... Form>
  void Optional(const char* name, bool is_written, const T& value, const Form&... form) {
    if (is_written) (*this)(name, value, form...);
  }
  template <class T, class... Form>
  void Optional(const char* name, const std::optional<T>& value, const Form&... form) {
    if (value) (*this)(name, *value, form...);
  }
  // The member is written here, although the list names it later, to be read later.
  void Here(const char* name) { object_[name] = nullptr; }
  // What has been read must be so; `why` makes the error's text.
  template <class Why>
  void Expect(bool, const Why&) {}

 private:
  template <class T>
  static Json JsonOf(const T& value) {
    if constexpr (HasJsonFields<T>) {
      Json json = Json::object();
      FieldWriter writer(json);
      JsonFields<T>::Visit(writer, value);
      return json;
    } else if constexpr (kIsListOfFields<T>) {
      Json json = Json::array();
      for (const auto& item : value) json.push_back(JsonOf(item));
      return json;
    } else {
      return Json(value);
    }
  }

  Json& object_;
};

// How many members an object of a type has; of those that may be missing, the ones that are there.
class FieldCounter {
 public:
  static constexpr bool kReads = false;
  explicit FieldCounter(const Json& object) : object_(object) {}

  template <class T, class... Form>
  void operator()(const char*, const T&, const Form&...) {
    ++count_;
  }
  template <class T, class... Form>
  void Optional(const char* name, bool, const T&, const Form&...) {
    if (object_.contains(name)) ++count_;
  }
  size_t count() const { return count_; }

 private:
  const Json& object_;
  size_t count_ = 0;
};

template <class T>
size_t CountFields(const Json& object) {
  static const T value{};
  FieldCounter counter(object);
  JsonFields<T>::Visit(counter, value);
  return counter.count();
}

template <bool kOnly>
class FieldReader {
 public:
  static constexpr bool kReads = true;
  explicit FieldReader(const Json& object) : object_(object) {}

  template <class T>
  void operator()(const char* name, T& value) {
    if (status_.ok()) status_ = Read(name, value);
  }
  template <class T, class Form>
  void operator()(const char* name, T& value, const Form& form) {
    if (status_.ok()) status_ = form.Read(object_, name, value);
  }
  template <class T, class... Form>
  void Optional(const char* name, bool, T& value, const Form&... form) {
    if (status_.ok() && object_.contains(name)) (*this)(name, value, form...);
  }
  template <class T, class... Form>
  void Optional(const char* name, std::optional<T>& value, const Form&... form) {
    if (status_.ok() && object_.contains(name)) (*this)(name, value.emplace(), form...);
  }
  void Here(const char*) {}
  template <class Why>
  void Expect(bool is_so, const Why& why) {
    if (status_.ok() && !is_so) status_ = Error{Code::kInvalid, why()};
  }

  // All of the value's members, from `json`; `besides`: how many others it may have.
  template <class T>
  static Status ReadAll(const Json& json, T& value, size_t besides = 0) {
    if constexpr (kOnly) KEEL_TRY(CheckMemberCount(json, besides + CountFields<T>(json)));
    FieldReader reader(json);
    JsonFields<T>::Visit(reader, value);
    return reader.status_;
  }

 private:
  template <class T>
  Status Read(const char* name, T& value) {
    if constexpr (HasJsonFields<T>) {
      KEEL_TRY_ASSIGN(const Json* const object, ObjectField(object_, name));
      return ReadAll(*object, value);
    } else if constexpr (kIsListOfFields<T>) {
      KEEL_TRY_ASSIGN(const Json* const array, ArrayField(object_, name));
      for (const Json& item : *array) KEEL_TRY(ReadAll(item, value.emplace_back()));
      return Ok();
    } else {
      KEEL_TRY_ASSIGN(value, Field<T>(object_, name));
      return Ok();
    }
  }

  const Json& object_;
  Status status_;
};

// Adds the value's members to `object`.
template <class T>
void WriteFields(Json& object, const T& value) {
  FieldWriter writer(object);
  JsonFields<T>::Visit(writer, value);
}

// Members that are not in the list are ignored.
template <class T>
Status ReadFields(const Json& json, T& into) {
  return FieldReader<false>::ReadAll(json, into);
}

// ... are refused, but for `besides` that the caller has read itself.
template <class T>
Status ReadOnlyFields(const Json& json, T& into, size_t besides = 0) {
  return FieldReader<true>::ReadAll(json, into, besides);
}

}  // namespace keel
