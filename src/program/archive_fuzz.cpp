// Any bytes as a .pt2: no crash, no hang, no memory beyond proportion. Members that are accepted lie in the file and
// apart, and a program that is accepted is written back byte for byte.
#include <cstdint>

#include "base/check.h"
#include "program/sample.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sinew;
  using namespace sinew::program;
  MemoryDisk disk;
  disk.put("f.pt2", std::string(reinterpret_cast<const char*>(data), size));
  try {
    const Archive archive(disk, "f.pt2");
    uint64_t end = 0;
    for (const Member& member : archive.members()) {
      SINEW_CHECK(member.header >= end && member.begin > member.header && member.end <= size);
      SINEW_CHECK(member.begin + member.size <= member.end);
      SINEW_CHECK(archive.find(member.name) == &member);
      for (const uint64_t place : member.crc_places) SINEW_CHECK(place + 4 <= size);
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
