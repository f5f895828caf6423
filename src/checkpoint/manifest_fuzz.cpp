// Parses any bytes as a manifest, both unchanged and with a right checksum appended. The parser must not crash or hang.
// An accepted manifest must survive being written and parsed again.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "checkpoint/manifest.h"

namespace {

void judge(std::string_view text) {
  using namespace sinew::checkpoint;
  const auto manifest = parse_manifest(text);
  if (!manifest) {
    SINEW_CHECK(!manifest.error().empty() && manifest.error().size() < 1000);
    return;
  }
  SINEW_CHECK(manifest->step.value >= 0);
  const auto again = parse_manifest(manifest_text(*manifest));
  SINEW_CHECK(again && *again == *manifest);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  judge(text);
  judge(sinew::checkpoint::with_checksum(std::string(text)));
  judge(sinew::checkpoint::with_checksum(std::string(text) + " \"checksum\": \""));
  return 0;
}
