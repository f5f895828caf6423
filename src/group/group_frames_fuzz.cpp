// Fuzzes the decoder of frames with any bytes from a peer: it must not crash, hang or read past the end.
#include "group/group_frames_judge.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  sinew::group::judge({begin + 2, begin + size}, 1 + data[0] % 5, 1 + data[1] % 4);
  return 0;
}
