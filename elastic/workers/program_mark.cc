// Looks at the names of the file's sections. Offsets in the file are not trusted: a read beyond its
// end fails.
#include "elastic/workers/program_mark.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "base/fd.h"

namespace keel {
namespace {

// The most bytes of names that are read: programs with debug information have a few hundred.
constexpr uint64_t kNameBytesMax = 1 << 16;

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

}  // namespace keel
