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

// A frame that is ready to write once it has its number: a header, then the payload.
struct Outgoing {
  Header header;
  std::shared_ptr<const Bytes> payload;  // may be null
  size_t bytes() const { return kHeaderBytes + (payload ? payload->size() : 0); }
};

uint32_t payload_checksum(const Frame& frame);
Outgoing seal(Frame frame, uint32_t payload_checksum);
Outgoing seal_pulse();
// Completes a frame just before it is written. `before` is the number of frames and pulses sent before in this
// direction. The header's checksum begins with that number, so the receiver notices a missing, repeated or reordered
// frame.
void number(Outgoing& frame, uint32_t before);

// Decodes the bytes of one connection. The owner reads into room() and passes the number of bytes to took(). Large
// payloads are read directly to their final place. The reader trusts a header only if its checksum fits, and never
// trusts a length: memory grows with the received bytes.
class FrameReader {
 public:
  explicit FrameReader(size_t max_payload_bytes);
  // Returns the place for the next bytes. It is never empty, and valid until took().
  std::span<std::byte> room();
  // Call it when `count` bytes were written to the front of room(). Appends the frames that are now complete. The error
  // is the reason to close the connection; the reader must not be used after it.
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
  // of the payload: its length, and the bytes received; payload_ may be longer than have_
  size_t length_ = 0, have_ = 0;
  uint32_t expected_ = 0, sum_ = 0;  // checksums of the payload: in the header, and of the bytes so far
};

}  // namespace sinew::link
