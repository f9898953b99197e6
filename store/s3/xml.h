// XML, as much of it as S3 speaks: elements with text, no attributes that matter, no DTDs.
// Promises   reading bounds depth and size, follows no entity but the five of XML and numbers, and
//            says where a text is not well formed. Prefixes of namespaces are cut off names.
// Does not   keep comments, attributes, or blanks between elements.
// Threads    any. Errors: kCorrupt.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace keel {

inline constexpr size_t kXmlDepthMax = 16;
inline constexpr size_t kXmlBytesMax = size_t{16} << 20;

struct XmlElement {
  std::string name;
  std::string text;                      // of its own, without that of its children
  std::vector<XmlElement> children = {};

  // The text of the first child of that name; empty where there is none.
  const std::string& TextOf(std::string_view child) const;
  const XmlElement* Find(std::string_view child) const;
};

Result<XmlElement> ParseXml(std::string_view text);
// For the text of an element. Control characters, which XML cannot hold, become numbers that S3
// takes.
std::string XmlEscaped(std::string_view text);

}  // namespace keel
