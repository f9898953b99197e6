// Looks at the names of the file's sections. Offsets in the file are not trusted: a read beyond its
// end fails. Of a script, at its words.
#include "elastic/workers/program_mark.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cctype>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "base/fd.h"

namespace keel {
namespace {

// The most bytes of names that are read: programs with debug information have a few hundred.
constexpr uint64_t kNameBytesMax = 1 << 16;

// The most of a script that is read.
constexpr size_t kScriptBytesMax = 1 << 18;

constexpr const char* kPackage = "evenkeel";

// Names and keywords of a line of Python, without its comment: "ek.Job(3)" has two.
std::vector<std::string> WordsOf(const std::string& line) {
  std::vector<std::string> words(1);
  for (const char c : line) {
    if (c == '#') break;
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

template <class T>
bool ReadAt(const Fd& file, uint64_t offset, T* into, size_t count) {
  const auto bytes = static_cast<ssize_t>(count * sizeof(T));
  return pread(file.number(), into, count * sizeof(T), static_cast<off_t>(offset)) == bytes;
}

}  // namespace

bool HasProgramMark(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  Elf64_Ehdr head{};
  if (!file.valid() || !ReadAt(file, 0, &head, 1)) return false;
  const bool is_known = std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
                        head.e_ident[EI_CLASS] == ELFCLASS64 &&
                        head.e_shentsize == sizeof(Elf64_Shdr) && head.e_shstrndx < head.e_shnum;
  if (!is_known) return false;
  std::vector<Elf64_Shdr> sections(head.e_shnum);
  if (!ReadAt(file, head.e_shoff, sections.data(), sections.size())) return false;
  const Elf64_Shdr& table = sections[head.e_shstrndx];
  if (table.sh_size > kNameBytesMax) return false;
  std::string names(table.sh_size, '\0');
  if (!ReadAt(file, table.sh_offset, names.data(), names.size())) return false;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_name >= names.size()) continue;
    if (std::strcmp(names.c_str() + section.sh_name, kProgramMark) == 0) return true;
  }
  return false;
}

bool IsScriptOfPackage(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return false;
  std::string text(kScriptBytesMax, '\0');
  const ssize_t bytes = pread(file.number(), text.data(), text.size(), 0);
  if (bytes <= 0 || std::memcmp(text.data(), ELFMAG, SELFMAG) == 0) return false;
  text.resize(static_cast<size_t>(bytes));
  bool is_imported = false, is_used = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = WordsOf(line);
    if (words.size() < 2) continue;
    const bool imports = words[0] == "import" || words[0] == "from";
    is_imported |= imports && words[1] == kPackage;
    for (size_t i = 1; i < words.size(); ++i) {
      is_used |= words[i] == "Job" || words[i] == "rerun";
      is_used |= words[i - 1] == kPackage && (words[i] == "hf" || words[i] == "lightning");
    }
  }
  return is_imported && is_used;
}

}  // namespace keel
