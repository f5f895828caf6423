// Reads from the file of a shared object which versions the object was built for. The object is not loaded, so none of
// its code runs.
//
// The format is ELF, 64 bits, little-endian: Tool Interface Standard (TIS) Executable and Linking Format, version 1.2.
#include <algorithm>
#include <sstream>

#include "program/archive.h"
#include "program/program.h"

namespace sinew::program {
namespace {

constexpr uint64_t kMaxSections = 65536, kMaxNameBytes = 16ULL << 20, kMaxInfoBytes = 64ULL << 10;
constexpr char kSection[] = ".sinew_library";

struct Section {
  uint64_t name = 0, offset = 0, size = 0;
};

class Elf {
 public:
  Elf(Disk& disk, const std::string& path) : file_(disk, path) {}

  // Returns the content of the section, or "" if there is no such section.
  std::string info() const {
    if (file_.size() < 64) fail("is not a shared object");
    const std::vector<std::byte> head = bytes(0, 64);
    const ByteReader header(head, file_.path());
    if (header.text(0, 4) !=
        "\x7f"
        "ELF")
      fail("is not a shared object");
    if (header.number(4, 1) != 2 || header.number(5, 1) != 1) fail("is not a shared object for this machine");
    if (header.u16(16) != 3) fail("is not a shared object, but another kind of ELF file");
    const uint64_t table = header.u64(40), width = header.u16(58), count = header.u16(60), names = header.u16(62);
    if (width != 64 || count > kMaxSections || names >= count)
      fail("has no table of sections; it may have been stripped");
    const std::vector<std::byte> rows = bytes(table, width * count);
    const ByteReader record(rows, file_.path());
    const auto section = [&](uint64_t i) {
      return Section{record.u32(i * width), record.u64(i * width + 24), record.u64(i * width + 32)};
    };
    const Section name_section = section(names);
    if (name_section.size > kMaxNameBytes) fail("has a table of section names that is too large");
    const std::vector<std::byte> letters = bytes(name_section.offset, name_section.size);
    for (uint64_t i = 0; i < count; ++i) {
      const Section one = section(i);
      if (name_at(letters, one.name) != kSection) continue;
      if (one.size > kMaxInfoBytes)
        fail(std::string("has a section ") + kSection + " of " + std::to_string(one.size) + " bytes");
      const std::vector<std::byte> content = bytes(one.offset, one.size);
      return {reinterpret_cast<const char*>(content.data()), content.size()};
    }
    return "";
  }

 private:
  std::vector<std::byte> bytes(uint64_t offset, uint64_t size) const {
    std::vector<std::byte> read(size);
    file_.read(offset, read);
    return read;
  }

  static std::string_view name_at(const std::vector<std::byte>& letters, uint64_t at) {
    if (at >= letters.size()) return "";
    const char* begin = reinterpret_cast<const char*>(letters.data()) + at;
    return {begin, static_cast<size_t>(
                       std::find(begin, reinterpret_cast<const char*>(letters.data()) + letters.size(), '\0') - begin)};
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error("LIBRARY_BAD_FILE", file_.path() + " " + what, "build it as examples/cpp-module does");
  }

  FileRange file_;
};

}  // namespace

std::map<std::string, std::string> read_library_info(const std::string& path) {
  std::map<std::string, std::string> versions;
  std::istringstream lines(Elf(system_disk(), path).info());
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    std::string value = line.substr(space + 1);
    std::ranges::replace_if(
        value, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, '?');
    versions[line.substr(0, space)] = value;
  }
  return versions;
}

}  // namespace sinew::program
