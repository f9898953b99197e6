// JSON in and out: nlohmann's values behind a strict reader that reports instead of throwing.
// Promises   ParseJson() takes the whole text or says line, column (in bytes) and what it found
//            there; refuses repeated keys, integers beyond 64 bits, nesting deeper than
//            kJsonDepthMax and broken UTF-8, in time linear in the text. Field() converts nothing:
//            1.0, -0 and "1" are not whole numbers.
// Does not   shield callers from Json's own members, which throw: read with Field().
// Threads    a plain value: one thread at a time. Errors: kInvalid, kNotFound (no such field).
// Includes all of nlohmann, since Result<Json> needs the whole type; headers that only mention Json
// include base/json_fwd.h.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/json_fwd.h"
#include "base/result.h"

namespace keel {

inline constexpr size_t kJsonDepthMax = 200;

Result<Json> ParseJson(std::string_view text);

// On one line, or indented by so many blanks a level. Broken UTF-8 becomes U+FFFD; NaN and the
// infinities, which JSON lacks, become null.
std::string DumpJson(const Json& json, int indent = -1);

// Adds a member to an object that has none of that name. Assigning to one, or emplacing it, looks
// through all those before it.
inline void AppendMember(Json* object, const std::string& name, Json value) {
  object->get_ref<Json::object_t&>().emplace_back(name, std::move(value));
}

// The member `name` of an object. T: bool, int, int64_t, uint64_t, double, std::string,
// std::vector<std::string>, std::vector<int64_t>.
// "field 'step': expected a whole number, found a string"
template <class T>
Result<T> Field(const Json& object, std::string_view name);

// The same, but `otherwise` when the object lacks it.
template <class T>
Result<T> FieldOr(const Json& object, std::string_view name, T otherwise);

// The member itself, which lives as long as `object`: an array or an object to go through.
Result<const Json*> ArrayField(const Json& object, std::string_view name);
Result<const Json*> ObjectField(const Json& object, std::string_view name);

}  // namespace keel
