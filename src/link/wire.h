// Frames as bytes (docs/formats/link.md): sealing them, and reading them out of a stream however it is cut.
//
// Pure: no socket, no time. The TCP links, the tests and the fuzzer read through the same FrameReader.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "link/link.h"

namespace sinew::link {

inline constexpr size_t kHeaderBytes = 48;
using Header = std::array<std::byte, kHeaderBytes>;

// A frame ready to be written once it is numbered: its header, then its payload as it is.
struct Outgoing {
  Header header;
  std::shared_ptr<const Bytes> payload;  // may be null
  size_t bytes() const { return kHeaderBytes + (payload ? payload->size() : 0); }
};

uint32_t payload_checksum(const Frame& frame);
Outgoing seal(Frame frame, uint32_t payload_checksum);
Outgoing seal_pulse();
// The last thing before it is written: `before` frames and pulses went the same way on this connection. The header's
// checksum begins with that count, so one that is missing, comes twice or out of turn is noticed.
void number(Outgoing& frame, uint32_t before);

// Bytes of one connection to frames. The owner reads into room() and says how many bytes came; big payloads are read
// where they stay. Nothing is believed of a header but what its checksum vouches for, and no length is: memory grows
// with the bytes that have come.
class FrameReader {
 public:
  explicit FrameReader(size_t max_payload_bytes);
  // Where the next bytes go; never empty. Valid until took().
  std::span<std::byte> room();
  // `count` bytes were put at the front of room(). Appends the frames that are now whole. The error is the reason to
  // close the connection; nothing may be asked of the reader after it.
  std::expected<void, std::string> took(size_t count, std::vector<Frame>& frames);
  bool between_frames() const { return !payload_ && filled_ == 0; }

 private:
  std::expected<void, std::string> parse(std::vector<Frame>& frames);
  std::expected<void, std::string> begin(std::span<const std::byte> header, std::vector<Frame>& frames);
  std::expected<void, std::string> take_payload(size_t count, std::vector<Frame>& frames);
  size_t wanted() const { return length_ - have_; }
  void grow();

  const size_t max_payload_bytes_;
  uint32_t headers_ = 0;          // read so far
  std::vector<std::byte> stage_;  // bytes not yet understood, [parsed_, filled_)
  size_t parsed_ = 0, filled_ = 0;
  Frame frame_;                      // the one whose payload is being read
  std::shared_ptr<Bytes> payload_;   // null: between frames
  size_t length_ = 0, have_ = 0;     // of the payload; payload_ may be longer than have_
  uint32_t expected_ = 0, sum_ = 0;  // checksums: told, and of what is here
};

}  // namespace sinew::link
