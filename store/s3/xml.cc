// A reader that goes forward only, with a stack of the elements that are open.
#include "store/s3/xml.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/text.h"

namespace keel {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsNameByte(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == ':' || static_cast<unsigned char>(c) >= 0x80;
}

std::string Utf8(uint32_t code) {
  std::string text;
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr unsigned kFirst[] = {0, 0xc0, 0xe0, 0xf0};
  text += static_cast<char>(kFirst[more] | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | (code >> (6 * i) & 0x3f));
  return text;
}

std::optional<std::string> EntityText(std::string_view name) {
  if (name == "amp") return "&";
  if (name == "lt") return "<";
  if (name == "gt") return ">";
  if (name == "quot") return "\"";
  if (name == "apos") return "'";
  if (!name.starts_with("#")) return std::nullopt;
  const bool is_hex = name.starts_with("#x");
  name.remove_prefix(is_hex ? 2 : 1);
  uint32_t code = 0;
  const auto [end, failure] =
      std::from_chars(name.data(), name.data() + name.size(), code, is_hex ? 16 : 10);
  const bool is_whole = failure == std::errc() && end == name.data() + name.size();
  const bool is_character = code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  if (!is_whole || !is_character) return std::nullopt;
  return Utf8(code);
}

class XmlReader {
 public:
  explicit XmlReader(std::string_view text) : text_(text) {}

  Result<XmlElement> Read() {
    if (text_.size() > kXmlBytesMax) return Wrong("it is longer than " + BytesText(kXmlBytesMax));
    std::optional<XmlElement> root;
    std::vector<XmlElement> open;
    while (at_ < text_.size()) {
      if (text_[at_] != '<') {
        KEEL_TRY(TakeText(open.empty() ? nullptr : &open.back()));
        continue;
      }
      KEEL_TRY_ASSIGN(const bool is_aside, SkipAside(open.empty() ? nullptr : &open.back()));
      if (is_aside) continue;
      if (root) return Wrong("something follows its end");
      KEEL_TRY_ASSIGN(const bool is_closed, TakeTag(open));
      if (!is_closed) continue;
      XmlElement done = std::move(open.back());
      open.pop_back();
      if (open.empty()) {
        root = std::move(done);
      } else {
        open.back().children.push_back(std::move(done));
      }
    }
    if (!root) return Wrong(open.empty() ? "it has no element" : "<" + open.back().name +
                                                                     "> is not closed");
    return std::move(*root);
  }

 private:
  Error Wrong(const std::string& what) const {
    return {Code::kCorrupt, "this is no XML of S3: " + what + " (byte " + std::to_string(at_) +
                                " of " + std::to_string(text_.size()) + ")"};
  }

  Status TakeText(XmlElement* into) {
    const size_t end = std::min(text_.find('<', at_), text_.size());
    std::string_view piece = text_.substr(at_, end - at_);
    const bool is_blank = std::all_of(piece.begin(), piece.end(), IsBlank);
    if (into == nullptr && !is_blank && piece != "\xef\xbb\xbf") {
      return Wrong("text stands outside of its elements");
    }
    while (into != nullptr && !piece.empty()) {
      const size_t mark = std::min(piece.find('&'), piece.size());
      into->text += piece.substr(0, mark);
      piece.remove_prefix(mark);
      if (piece.empty()) break;
      const size_t stop = piece.find(';');
      const auto meaning =
          stop == piece.npos ? std::nullopt : EntityText(piece.substr(1, stop - 1));
      if (!meaning) return Wrong("an entity in <" + into->name + "> is unknown");
      into->text += *meaning;
      piece.remove_prefix(stop + 1);
    }
    at_ = end;
    return Ok();
  }

  // Declarations and comments say nothing; CDATA is text.
  Result<bool> SkipAside(XmlElement* into) {
    constexpr std::pair<std::string_view, std::string_view> kAsides[] = {
        {"<?", "?>"}, {"<!--", "-->"}, {"<![CDATA[", "]]>"}};
    for (const auto& [begin, end] : kAsides) {
      if (!text_.substr(at_).starts_with(begin)) continue;
      const size_t first = at_ + begin.size();
      const size_t stop = text_.find(end, first);
      if (stop == text_.npos) return Wrong("a part that begins with " + std::string(begin) +
                                           " has no end");
      if (begin == "<![CDATA[") {
        if (into == nullptr) return Wrong("text stands outside of its elements");
        into->text += text_.substr(first, stop - first);
      }
      at_ = stop + end.size();
      return true;
    }
    if (text_.substr(at_).starts_with("<!")) return Wrong("it has a DTD, which none of S3 has");
    return false;
  }

  std::string TakeName() {
    const size_t first = at_;
    while (at_ < text_.size() && IsNameByte(text_[at_])) ++at_;
    const std::string_view name = text_.substr(first, at_ - first);
    const size_t colon = name.rfind(':');
    return std::string(colon == name.npos ? name : name.substr(colon + 1));
  }

  // True: the last element of `open` is whole.
  Result<bool> TakeTag(std::vector<XmlElement>& open) {
    ++at_;
    const bool is_end = at_ < text_.size() && text_[at_] == '/';
    if (is_end) ++at_;
    std::string name = TakeName();
    if (name.empty()) return Wrong("a tag has no name");
    KEEL_TRY_ASSIGN(const bool is_empty, SkipToTagEnd());
    if (!is_end) {
      if (open.size() == kXmlDepthMax) return Wrong("its elements are nested too deeply");
      open.push_back({std::move(name), "", {}});
      return is_empty;
    }
    if (open.empty() || open.back().name != name || is_empty) {
      return Wrong("</" + name + "> closes nothing");
    }
    if (!open.back().children.empty()) {
      std::string& text = open.back().text;
      if (std::all_of(text.begin(), text.end(), IsBlank)) text.clear();
    }
    return true;
  }

  // Past the attributes and the ">". True: "/>" stood there.
  Result<bool> SkipToTagEnd() {
    bool is_empty = false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '>') {
        ++at_;
        return is_empty;
      }
      if (c == '<') break;
      is_empty = c == '/';
      if (c != '"' && c != '\'') continue;
      const size_t end = text_.find(c, at_ + 1);
      if (end == text_.npos) break;
      at_ = end;
    }
    return Wrong("a tag has no end");
  }

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

const XmlElement* XmlElement::Find(std::string_view child) const {
  for (const XmlElement& one : children) {
    if (one.name == child) return &one;
  }
  return nullptr;
}

const std::string& XmlElement::TextOf(std::string_view child) const {
  static const std::string kNone;
  const XmlElement* const found = Find(child);
  return found == nullptr ? kNone : found->text;
}

Result<XmlElement> ParseXml(std::string_view text) { return XmlReader(text).Read(); }

std::string XmlEscaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      case '\'': escaped += "&apos;"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          escaped += "&#" + std::to_string(static_cast<int>(c)) + ";";
        } else {
          escaped += c;
        }
    }
  }
  return escaped;
}

}  // namespace keel
