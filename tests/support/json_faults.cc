// Changes a text's members one by one, and asks the reader.
#include "tests/support/json_faults.h"

#include <limits>
#include <vector>

#include "base/json.h"

namespace keel {
namespace {

using Pointer = Json::json_pointer;

// Every object in `json`, the outermost first.
void FindObjects(const Json& json, const Pointer& at, std::vector<Pointer>& found) {
  if (json.is_object()) found.push_back(at);
  if (json.is_array() && !json.empty()) FindObjects(json[0], at / 0, found);
  if (!json.is_object()) return;
  for (const auto& [name, value] : json.items()) FindObjects(value, at / name, found);
}

class Faults {
 public:
  Faults(const std::string& text, const JsonReaderUnderTest& read)
      : whole_(*ParseJson(text)), read_(read) {}

  std::string Lines() {
    std::vector<Pointer> objects;
    FindObjects(whole_, Pointer(), objects);
    for (const Pointer& object : objects) {
      for (const auto& [name, value] : whole_[object].items()) OfMember(object, name, value);
    }
    for (const Pointer& object : objects) {
      Json changed = whole_;
      changed[object]["one_more"] = 1;
      lines_ += "one more in '" + object.to_string() + "': " + Said(changed, "one_more") + "\n";
    }
    for (const Pointer& object : objects) OrderIn(object);
    return lines_;
  }

 private:
  void OfMember(const Pointer& object, const std::string& name, const Json& value) {
    const std::string path = (object / name).to_string().substr(1);
    Json without = whole_;
    without[object].erase(name);
    lines_ += path + ": " + Said(without, name) + "; " + With(object, name, nullptr) + "\n";
    if (!value.is_number_integer()) return;
    for (const int64_t end : {std::numeric_limits<int64_t>::min(),
                              std::numeric_limits<int64_t>::max()}) {
      lines_ += "  " + std::to_string(end) + ": " + With(object, name, end) + "\n";
    }
  }

  std::string With(const Pointer& object, const std::string& name, const Json& value) const {
    Json changed = whole_;
    changed[object][name] = value;
    return Said(changed, name);
  }

  std::string Said(const Json& json, const std::string& name) const {
    std::string said = read_(DumpJson(json));
    if (said.empty()) return "taken";
    const std::string field = "field '" + name + "'";
    const size_t at = said.find(field);
    return at == std::string::npos ? said : said.replace(at, field.size(), "@");
  }

  // Where a member and all behind it are null, the reader complains of the one that it reads first.
  void OrderIn(const Pointer& object) {
    lines_ += "order in '" + object.to_string() + "':";
    Json changed = whole_;
    std::vector<std::string> names;
    for (const auto& [name, value] : whole_[object].items()) names.push_back(name);
    std::string order;
    for (size_t i = names.size(); i-- > 0;) {
      changed[object][names[i]] = nullptr;
      const std::string said = read_(DumpJson(changed));
      const size_t start = said.find("field '");
      const size_t end = start == std::string::npos ? start : said.find('\'', start + 7);
      const bool is_named = end != std::string::npos;
      order.insert(0, is_named ? " " + said.substr(start + 7, end - start - 7) : " -");
    }
    lines_ += order + "\n";
  }

  const Json whole_;
  const JsonReaderUnderTest& read_;
  std::string lines_;
};

}  // namespace

std::string JsonFaults(const std::string& text, const JsonReaderUnderTest& read) {
  return Faults(text, read).Lines();
}

}  // namespace keel
