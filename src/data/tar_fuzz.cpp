// Fuzzes the reader of tars. It must throw Error, or give members that lie inside of the tar and end.
#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "data/tar.h"
#include "data/webdataset.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sinew;
  using namespace sinew::data;
  TarReader reader("fuzz", size, [&](uint64_t offset, std::span<std::byte> out) {
    SINEW_CHECK(offset <= size && out.size() <= size - offset);
    std::memcpy(out.data(), data + offset, out.size());
  });
  try {
    uint64_t end = 0;
    while (const auto member = reader.next()) {
      SINEW_CHECK(member->offset >= end + kTarBlock && member->size <= size - member->offset);
      end = member->offset + member->size;
      const SampleName name = sample_name(member->name);
      SINEW_CHECK(name.sample.size() + name.ending.size() <= member->name.size());
      if (member->size <= 1024) reader.bytes(member->offset, member->size);
    }
  } catch (const Error&) {
  }
  return 0;
}
