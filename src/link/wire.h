// Encodes frames as bytes (docs/formats/link.md), and reads them from a stream that may be cut anywhere.
//
// Pure functions without sockets or time. The TCP links, the tests and the fuzzer use the same FrameReader.
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

// A frame that is ready to be written: a header, then the payload. Only number() is still missing.
struct Outgoing {
  Header header;
  std::shared_ptr<const Bytes> payload;  // may be null
  size_t bytes() const { return kHeaderBytes + (payload ? payload->size() : 0); }
};

uint32_t payload_checksum(const Frame& frame);
Outgoing seal(Frame frame, uint32_t payload_checksum);
Outgoing seal_pulse();
// Completes a frame just before it is written. `before` is the number of frames and pulses that were sent in this
// direction before. The header's checksum includes this number, so the receiver notices a missing, repeated or
// reordered frame.
void number(Outgoing& frame, uint32_t before);

// Decodes the bytes of one connection. The owner reads into room() and passes the number of bytes to took(). Large
// payloads are read directly to their final place. The reader uses a header only if its checksum is right. It never
// allocates memory for a length that a header only announces: memory grows with the bytes that arrive.
class FrameReader {
 public:
  explicit FrameReader(size_t max_payload_bytes);
  // Returns the memory for the next bytes. It is never empty, and valid until took().
  std::span<std::byte> room();
  // Call it when `count` bytes were written to the front of room(). Appends the frames that are now complete to
  // `frames`. An error is the reason to close the connection; do not use the reader after it.
  std::expected<void, std::string> took(size_t count, std::vector<Frame>& frames);
  bool between_frames() const { return !payload_ && filled_ == 0; }

 private:
  std::expected<void, std::string> parse(std::vector<Frame>& frames);
  std::expected<void, std::string> begin(std::span<const std::byte> header, std::vector<Frame>& frames);
  std::expected<void, std::string> take_payload(size_t count, std::vector<Frame>& frames);
  size_t wanted() const { return length_ - have_; }
  void grow();

  const size_t max_payload_bytes_;
  uint32_t headers_ = 0;          // number of headers read so far
  std::vector<std::byte> stage_;  // bytes not decoded yet: [parsed_, filled_)
  size_t parsed_ = 0, filled_ = 0;
  Frame frame_;                     // the frame whose payload is being read
  std::shared_ptr<Bytes> payload_;  // null between frames
  // the payload's length, and how many of its bytes have arrived; payload_ may be larger than have_
  size_t length_ = 0, have_ = 0;
  uint32_t expected_ = 0, sum_ = 0;  // checksums of the payload: from the header, and of the bytes so far
};

}  // namespace sinew::link
