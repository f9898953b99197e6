// What the visitors of a struct's fields share.
#include "base/json_fields.h"

namespace keel {

Result<int64_t> FieldWithin(const Json& object, std::string_view name, int64_t least,
                            int64_t most) {
  KEEL_TRY_ASSIGN(const int64_t number, Field<int64_t>(object, name));
  if (number >= least && number <= most) return number;
  return Error{Code::kInvalid, "'" + std::string(name) + "' is " + std::to_string(number) +
                                   ", expected " + std::to_string(least) + " to " +
                                   std::to_string(most)};
}

Status CheckMemberCount(const Json& json, size_t count) {
  if (!json.is_object()) return Error{Code::kInvalid, "it is no object"};
  if (json.size() == count) return Ok();
  return Error{Code::kInvalid, "it has " + std::to_string(json.size()) +
                                   " members instead of " + std::to_string(count)};
}

}  // namespace keel
