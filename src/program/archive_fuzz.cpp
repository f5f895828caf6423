// Fuzzes .pt2 files. There must be no crash and no hang, and memory must stay in proportion to the input. Accepted
// members lie inside the file and do not overlap, and an accepted program is written back byte for byte. If the first
// byte of the input is odd, the rest is a list of changes (offset, byte) to a good file. So even an empty corpus
// reaches the code behind the first checks.
#include <cstdint>

#include "base/check.h"
#include "program/sample_model.h"

namespace {

std::string file_of(const uint8_t* data, size_t size) {
  static const std::string good = sinew::program::Sample().bytes();
  if (size == 0 || data[0] % 2 == 0) return {reinterpret_cast<const char*>(data), size};
  std::string bytes = good;
  for (size_t at = 1; at + 3 <= size; at += 3)
    bytes[(data[at] | data[at + 1] << 8) % bytes.size()] = static_cast<char>(data[at + 2]);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sinew;
  using namespace sinew::program;
  MemoryDisk disk;
  const std::string file = file_of(data, size);
  size = file.size();
  disk.put("f.pt2", file);
  try {
    const Archive archive(disk, "f.pt2");
    uint64_t end = 0;
    for (const Member& member : archive.members()) {
      SINEW_CHECK(member.header >= end && member.begin > member.header && member.end <= size);
      SINEW_CHECK(member.begin + member.size <= member.end);
      SINEW_CHECK(archive.find(member.name) == &member);
      for (const uint64_t offset : member.crc_offsets) SINEW_CHECK(offset + 4 <= size);
      end = member.end;
      try {
        SINEW_CHECK(archive.text(member, size).size() == member.size);
      } catch (const Error&) {
      }
    }
    const Program program = read_program(disk, "f.pt2");
    for (const auto& [name, stored] : program.weights) {
      try {
        const Array array = read_tensor(disk, program, stored);
        write_program(disk, program, {{name, &array}}, "copy.pt2");
        SINEW_CHECK(disk.get("copy.pt2") == disk.get("f.pt2"));
      } catch (const Error&) {
      }
    }
  } catch (const Error& error) {
    SINEW_CHECK(*error.what() != '\0' && !error.hint.empty());
  }
  return 0;
}
