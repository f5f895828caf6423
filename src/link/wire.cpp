#include "link/wire.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include "base/hash.h"

namespace sinew::link {
namespace {

constexpr std::array<char, 4> kMagic = {'S', 'N', 'W', 'F'};
constexpr uint8_t kVersion = 4, kData = 0, kPulse = 1;
constexpr size_t kSummed = 44;  // bytes of the header that its checksum covers
constexpr size_t kStageBytes = size_t{64} << 10;
constexpr size_t kPieceBytes = size_t{512}
                               << 10;  // read at once, so that the bytes are still in the cache for the checksum
constexpr size_t kAheadBytes = size_t{16} << 20;  // most bytes that are allocated before any byte of a payload arrives

template <typename Value>
void put(Header& header, size_t at, Value value) {
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(header.data() + at, &value, sizeof(value));
}

template <typename Value>
Value get(std::span<const std::byte> header, size_t at) {
  Value value;
  std::memcpy(&value, header.data() + at, sizeof(value));
  return value;
}

Header make_header(uint8_t type, const Frame& frame, uint32_t payload_sum) {
  Header header{};
  put(header, 0, kMagic);
  put(header, 4, kVersion);
  put(header, 5, type);
  put(header, 6, frame.kind);
  put(header, 8, static_cast<uint64_t>(frame.payload ? frame.payload->size() : 0));
  put(header, 16, frame.generation.value);
  put(header, 24, frame.collective);
  put(header, 32, frame.part);
  put(header, 40, payload_sum);
  return header;
}

std::unexpected<std::string> wrong(std::string why) {
  return std::unexpected(std::move(why));
}

}  // namespace

uint32_t payload_checksum(const Frame& frame) {
  return frame.payload ? crc32c(*frame.payload) : 0;
}

Outgoing seal(Frame frame, uint32_t payload_sum) {
  return {make_header(kData, frame, payload_sum), std::move(frame.payload)};
}

Outgoing seal_pulse() {
  return {make_header(kPulse, {}, 0), nullptr};
}

void number(Outgoing& frame, uint32_t before) {
  put(frame.header, kSummed, crc32c(std::span(frame.header).first(kSummed), before));
}

FrameReader::FrameReader(size_t max_payload_bytes) : max_payload_bytes_(max_payload_bytes), stage_(kStageBytes) {}

std::span<std::byte> FrameReader::room() {
  if (!payload_) return std::span(stage_).subspan(filled_);
  return std::span(*payload_).subspan(have_, std::min(kPieceBytes, payload_->size() - have_));
}

std::expected<void, std::string> FrameReader::took(size_t count, std::vector<Frame>& frames) {
  if (payload_) {
    if (const auto taken = take_payload(count, frames); !taken) return taken;
    return {};
  }
  filled_ += count;
  const auto parsed = parse(frames);
  // The stage holds less than a header, or nothing if a payload has begun. Move the rest to its front.
  std::memmove(stage_.data(), stage_.data() + parsed_, filled_ - parsed_);
  filled_ -= std::exchange(parsed_, 0);
  return parsed;
}

std::expected<void, std::string> FrameReader::parse(std::vector<Frame>& frames) {
  while (filled_ - parsed_ >= kHeaderBytes) {
    const auto header = std::span<const std::byte>(stage_).subspan(parsed_, kHeaderBytes);
    if (const auto begun = begin(header, frames); !begun) return begun;
    parsed_ += kHeaderBytes;
    if (!payload_) continue;
    const size_t here = std::min(filled_ - parsed_, wanted());
    std::copy_n(stage_.begin() + static_cast<std::ptrdiff_t>(parsed_), here, payload_->begin());
    parsed_ += here;
    if (const auto taken = take_payload(here, frames); !taken) return taken;
  }
  return {};
}

std::expected<void, std::string> FrameReader::begin(std::span<const std::byte> header, std::vector<Frame>& frames) {
  if (get<std::array<char, 4>>(header, 0) != kMagic) return wrong("bytes that are no frame");
  if (get<uint32_t>(header, kSummed) != crc32c(header.first(kSummed), headers_++))
    return wrong("wrong checksum of a frame's header, or a frame out of turn");
  const auto version = get<uint8_t>(header, 4), type = get<uint8_t>(header, 5);
  if (version != kVersion) return wrong("a frame of version " + std::to_string(version));
  if (type != kData && type != kPulse) return wrong("a frame of unknown type " + std::to_string(type));
  const auto length = get<uint64_t>(header, 8);
  if (type == kPulse) return length == 0 ? std::expected<void, std::string>() : wrong("a pulse with a payload");
  if (length > max_payload_bytes_) {
    return wrong("a payload of " + std::to_string(length) + " bytes, more than the " +
                 std::to_string(max_payload_bytes_) + " allowed");
  }
  expected_ = get<uint32_t>(header, 40);
  frame_ = {get<uint16_t>(header, 6), Generation(get<int64_t>(header, 16)), get<int64_t>(header, 24),
            get<int64_t>(header, 32), nullptr};
  if (length == 0) {
    if (expected_ != 0) return wrong("wrong checksum of a payload");
    frames.push_back(std::move(frame_));
    return {};
  }
  length_ = static_cast<size_t>(length);
  have_ = 0;
  sum_ = 0;
  try {
    payload_ = std::make_shared<Bytes>(std::min(length_, kAheadBytes));
  } catch (const std::bad_alloc&) {
    return wrong("no memory for a payload of " + std::to_string(length) + " bytes");
  }
  return {};
}

// Call it when `count` more bytes of the payload are in place. Appends the frame when its payload is complete.
std::expected<void, std::string> FrameReader::take_payload(size_t count, std::vector<Frame>& frames) {
  sum_ = crc32c(std::span<const std::byte>(*payload_).subspan(have_, count), sum_);
  have_ += count;
  if (wanted() == 0) {
    if (sum_ != expected_) return wrong("wrong checksum of a payload");
    frame_.payload = std::exchange(payload_, nullptr);
    frames.push_back(std::move(frame_));
    return {};
  }
  if (have_ < payload_->size()) return {};
  try {
    grow();
  } catch (const std::bad_alloc&) {
    return wrong("no memory for a payload of " + std::to_string(length_) + " bytes");
  }
  return {};
}

// Doubles the payload's buffer, up to the payload's length.
void FrameReader::grow() {
  auto larger = std::make_shared<Bytes>(std::min(length_, 2 * have_));
  std::copy_n(payload_->data(), have_, larger->data());
  payload_ = std::move(larger);
}

}  // namespace sinew::link
