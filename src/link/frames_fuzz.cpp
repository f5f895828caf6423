// Gives a FrameReader any bytes, cut in any way, as the stream of a connection. The reader must return whole frames and
// then perhaps a reason to close. A returned frame that is encoded again must give the bytes that were read. The first
// byte of the input chooses how the stream is cut. The second byte chooses whether the checksums of the first header
// are corrected, so that the fuzzer reaches the code behind the check.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"
#include "link/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sinew;
  using namespace sinew::link;
  if (size < 2) return 0;
  const size_t cut = data[0] + size_t{1};
  Bytes stream(reinterpret_cast<const std::byte*>(data) + 2, reinterpret_cast<const std::byte*>(data) + size);
  if (data[1] % 2 == 1 && stream.size() >= kHeaderBytes) {
    const uint32_t sum = crc32c(std::span(stream).first(44));
    std::memcpy(stream.data() + 44, &sum, sizeof(sum));
  }
  constexpr size_t kMost = 1 << 20;
  FrameReader reader(kMost);
  std::vector<Frame> frames;
  std::span<const std::byte> rest(stream);
  while (!rest.empty()) {
    const auto room = reader.room();
    SINEW_CHECK(!room.empty());
    const size_t count = std::min({room.size(), rest.size(), cut});
    std::copy_n(rest.begin(), count, room.begin());
    rest = rest.subspan(count);
    if (!reader.took(count, frames)) break;
  }
  for (const Frame& frame : frames) {
    SINEW_CHECK(!frame.payload || (!frame.payload->empty() && frame.payload->size() <= kMost));
    const Outgoing again =
        seal(frame, payload_checksum(frame));  // compares all but the header's checksum, which depends on the number
    SINEW_CHECK(std::search(stream.begin(), stream.end(), again.header.begin(), again.header.end() - 4) !=
                stream.end());
  }
  return 0;
}
