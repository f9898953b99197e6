// Writes and reads name=value name=value, and compares two of them.
#include "trainer/numerics/fingerprint.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace keel {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

const std::string* ValueOf(const Fields& fields, std::string_view name) {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const auto& field) { return field.first == name; });
  return found == fields.end() ? nullptr : &found->second;
}

bool IsName(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), fits);
}

std::string OneWord(std::string_view value) {
  std::string word(value);
  std::replace_if(word.begin(), word.end(), [](unsigned char c) { return c <= ' '; }, '_');
  return word;
}

std::string Side(const std::string* value, const std::string& where) {
  return (value != nullptr ? *value : "not said") + " in " + where;
}

}  // namespace

void Fingerprint::Add(std::string_view name, std::string_view value) {
  KEEL_CHECK(IsName(name), "name " << name);
  KEEL_CHECK(ValueOf(fields_, name) == nullptr, name << " is there already");
  fields_.emplace_back(name, OneWord(value));
}

bool Fingerprint::Has(std::string_view name) const { return ValueOf(fields_, name) != nullptr; }

std::string Fingerprint::Text() const {
  std::string text;
  for (const auto& [name, value] : fields_) {
    if (!text.empty()) text += ' ';
    text += name + '=' + value;
  }
  return text;
}

Result<Fingerprint> Fingerprint::Parse(std::string_view text) {
  Fingerprint fingerprint;
  for (const std::string& part : SplitList(text, ' ')) {
    const size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    if (equals == std::string::npos || !IsName(name)) {
      return Error{Code::kInvalid, "fingerprint " + Shown(text) + ": " + Shown(part) +
                                       " is not of the form name=value"};
    }
    if (ValueOf(fingerprint.fields_, name) != nullptr) {
      return Error{Code::kInvalid, "fingerprint " + Shown(text) + " gives " + name + " twice"};
    }
    fingerprint.Add(name, part.substr(equals + 1));
  }
  return fingerprint;
}

std::string Differences(const Fingerprint& ours, const Fingerprint& theirs,
                        const FingerprintSides& sides) {
  std::vector<std::string> names;
  for (const auto* fields : {&ours.fields(), &theirs.fields()}) {
    for (const auto& [name, value] : *fields) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::string text;
  for (const std::string& name : names) {
    const std::string* our = ValueOf(ours.fields(), name);
    const std::string* their = ValueOf(theirs.fields(), name);
    if (our != nullptr && their != nullptr && *our == *their) continue;
    if (!text.empty()) text += "; ";
    text += name + " is " + Side(our, sides.ours) + " and " + Side(their, sides.theirs);
  }
  return text;
}

}  // namespace keel
