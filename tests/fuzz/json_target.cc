// base/json.h: what is read can be written, and reads back as the same.
#include "base/json.h"
#include "tests/fuzz/fuzz_targets.h"

namespace keel {
namespace {

void Run(std::span<const std::byte> input) {
  const auto json = ParseJson(TextOf(input));
  if (!json.ok()) {
    KEEL_CHECK(!json.error().message.empty(), "an error without words");
    return;
  }
  for (const char* name : {"a", "step", ""}) {
    (void)Field<int64_t>(*json, name);
    (void)Field<uint64_t>(*json, name);
    (void)Field<int>(*json, name);
    (void)Field<double>(*json, name);
    (void)Field<std::string>(*json, name);
    (void)Field<std::vector<int64_t>>(*json, name);
  }
  const std::string text = DumpJson(*json);
  const auto again = ParseJson(text);
  KEEL_CHECK(again.ok(), text << ": " << again.error().message);
  KEEL_CHECK(*again == *json, text);
  const std::string indented = DumpJson(*json, 2);
  const auto from_indented = ParseJson(indented);
  KEEL_CHECK(from_indented.ok() && *from_indented == *json, indented);
}

std::vector<std::string> Seeds() {
  return {
      R"({"a":[1,-2,3.5,1e-300,true,false,null,"x\u00e9\n"],"step":18446744073709551615})",
      R"([[[[{}]]],[],"",0,-0,-0.0,9223372036854775808,-9223372036854775808])",
      std::string(300, '[') + std::string(300, ']'),
      "{\"a\":" + std::string(199, '[') + std::string(199, ']') + "}",
      R"({"a":1,"a":2})",
      "18446744073709551616",
      "1e999",
      "1" + std::string(400, '0') + "e-400",
      "\"\xC3\x28 \xED\xA0\x80 \xF4\x90\x80\x80\"",
      R"("\ud800 \udc00\ud800")",
      R"(["\u0000", "\u001f", "\/"])",
      "\xEF\xBB\xBF{}",
      "{} {}",
      "nul",
      std::string("[1,\0]", 5),
      "",
  };
}

}  // namespace

const FuzzTarget kJsonTarget = {"json", Run, Seeds};

}  // namespace keel
