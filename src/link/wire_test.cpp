#include "link/wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "base/random.h"
#include "link/testing.h"

namespace sinew::link {
namespace {

void append(Bytes& bytes, Outgoing sealed, uint32_t before) {
  number(sealed, before);
  bytes.insert(bytes.end(), sealed.header.begin(), sealed.header.end());
  if (sealed.payload) bytes.insert(bytes.end(), sealed.payload->begin(), sealed.payload->end());
}

Bytes bytes_of(const std::vector<Frame>& frames, uint32_t before = 0) {
  Bytes bytes;
  for (const Frame& frame : frames) append(bytes, seal(frame, payload_checksum(frame)), before++);
  return bytes;
}

struct Read {
  std::vector<Frame> frames;
  std::string trouble;
};

// Feeds the stream to a reader in random pieces of at most `piece` bytes.
Read read_all(std::span<const std::byte> stream, size_t piece, RandomStream& random, size_t most = 1 << 24) {
  FrameReader reader(most);
  Read read;
  while (!stream.empty()) {
    const auto room = reader.room();
    const size_t count = std::min({room.size(), stream.size(), 1 + static_cast<size_t>(random.below(piece))});
    std::copy_n(stream.begin(), count, room.begin());
    stream = stream.subspan(count);
    const auto taken = reader.took(count, read.frames);
    if (taken) continue;
    read.trouble = taken.error();
    break;
  }
  return read;
}

std::vector<Frame> some_frames(RandomStream& random) {
  std::vector<Frame> frames;
  for (uint64_t i = 0, count = 1 + random.below(8); i < count; ++i) {
    const uint64_t most = random.below(10) == 0 ? 1 << 20 : random.below(3) == 0 ? 100000 : 100;
    frames.push_back(frame_of(static_cast<int64_t>(random.bits64()), static_cast<int64_t>(random.bits64()),
                              static_cast<size_t>(random.below(most))));
  }
  return frames;
}

TEST(FrameReader, ReadsSealedFramesInAnyPieces) {
  RandomStream random(random_key({1}));
  for (int i = 0; i < 20; ++i) {
    const auto frames = some_frames(random);
    for (const size_t piece : {size_t{100}, size_t{5000}, size_t{1} << 20}) {
      const Read read = read_all(bytes_of(frames), piece, random);
      EXPECT_EQ(read.trouble, "");
      ASSERT_EQ(read.frames.size(), frames.size());
      for (size_t k = 0; k < frames.size(); ++k) EXPECT_TRUE(same(read.frames[k], frames[k]));
    }
  }
}

TEST(FrameReader, DetectsEveryFlippedBit) {
  RandomStream random(random_key({2}));
  const std::vector<Frame> frames = {frame_of(1), frame_of(2, 3, 500), frame_of(3, 4, 70)};
  const Bytes bytes = bytes_of(frames);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    Bytes flipped = bytes;
    flipped[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    const Read read = read_all(flipped, 300, random);
    EXPECT_NE(read.trouble, "") << bit;
    ASSERT_LT(read.frames.size(), 3U) << bit;
    for (size_t k = 0; k < read.frames.size(); ++k) EXPECT_TRUE(same(read.frames[k], frames[k])) << bit;
  }
}

TEST(FrameReader, DamagedStreamsNeverGiveOtherFrames) {
  RandomStream random(random_key({3}));
  for (int i = 0; i < 1000; ++i) {
    std::vector<Frame> frames;
    for (int k = 0; k < 4; ++k) frames.push_back(frame_of(k, i, static_cast<size_t>(random.below(300))));
    Bytes bytes = bytes_of(frames);
    for (uint64_t k = 0, count = 1 + random.below(4); k < count; ++k) {
      const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(random.below(bytes.size()));
      switch (random.below(4)) {
        case 0: *at = static_cast<std::byte>(random.bits32()); break;
        case 1: bytes.erase(at); break;
        case 2: bytes.insert(at, static_cast<std::byte>(random.bits32())); break;
        default: bytes.erase(at, bytes.end()); break;
      }
      if (bytes.empty()) break;
    }
    const Read read = read_all(bytes, 1 + random.below(400), random);
    ASSERT_LE(read.frames.size(), frames.size());
    for (size_t k = 0; k < read.frames.size(); ++k) EXPECT_TRUE(same(read.frames[k], frames[k]));
  }
}

TEST(FrameReader, DetectsMissingRepeatedAndReorderedFrames) {
  RandomStream random(random_key({6}));
  const std::vector<Frame> frames = {frame_of(1, 0, 50), frame_of(2, 0, 50), frame_of(2, 0, 50), frame_of(3)};
  const Bytes bytes = bytes_of(frames);
  constexpr size_t kFrame = 98;
  const auto piece = [&](size_t first, size_t count) {
    return std::span(bytes).subspan(first * kFrame, count * kFrame);
  };
  const auto expect_noticed = [&](std::initializer_list<std::span<const std::byte>> pieces, size_t whole) {
    Bytes stream;
    for (const auto& one : pieces) stream.insert(stream.end(), one.begin(), one.end());
    const Read read = read_all(stream, 200, random);
    EXPECT_NE(read.trouble.find("out of turn"), std::string::npos) << read.trouble;
    EXPECT_EQ(read.frames.size(), whole);
  };
  expect_noticed({piece(1, 2)}, 0);
  expect_noticed({piece(0, 1), piece(2, 1)}, 1);
  expect_noticed({piece(0, 2), piece(1, 2)}, 2);
  expect_noticed({piece(0, 1), piece(2, 1), piece(1, 1)}, 1);
}

// Reads a header with one field replaced and with a valid checksum.
template <typename Value>
Read with_field(size_t at, Value value, size_t most = 1 << 20) {
  Outgoing sealed = seal(frame_of(1), 0);
  std::memcpy(sealed.header.data() + at, &value, sizeof(value));
  const uint32_t sum = crc32c(std::span(sealed.header).first(44));
  std::memcpy(sealed.header.data() + 44, &sum, sizeof(sum));
  RandomStream random(random_key({4}));
  return read_all(sealed.header, 1000, random, most);
}

TEST(FrameReader, RefusesInvalidHeadersWithTheReason) {
  EXPECT_NE(with_field<uint8_t>(0, 'X').trouble.find("no frame"), std::string::npos);
  EXPECT_NE(with_field<uint8_t>(4, 9).trouble.find("version 9"), std::string::npos);
  EXPECT_NE(with_field<uint8_t>(5, 7).trouble.find("type 7"), std::string::npos);
  EXPECT_NE(with_field<uint32_t>(40, 5).trouble.find("checksum"), std::string::npos);
  EXPECT_NE(with_field<uint64_t>(8, (1 << 20) + 1).trouble.find("1048577 bytes, more than"), std::string::npos);
  EXPECT_NE(with_field<uint64_t>(8, ~uint64_t{0}).trouble.find("more than"), std::string::npos);
  EXPECT_EQ(with_field<uint64_t>(8, 1 << 20).trouble, "");  // the payload is still to come
  EXPECT_EQ(with_field<uint16_t>(6, 77).frames.at(0).kind, 77);
}

TEST(FrameReader, AllocatesLittleBeforeThePayloadArrives) {
  FrameReader reader(size_t{1} << 40);
  Outgoing sealed = seal(frame_of(1), 0);
  const uint64_t length = uint64_t{1} << 39;
  std::memcpy(sealed.header.data() + 8, &length, sizeof(length));
  const uint32_t sum = crc32c(std::span(sealed.header).first(44));
  std::memcpy(sealed.header.data() + 44, &sum, sizeof(sum));
  std::copy_n(sealed.header.begin(), kHeaderBytes, reader.room().begin());
  std::vector<Frame> frames;
  ASSERT_TRUE(reader.took(kHeaderBytes, frames));  // if the reader allocated the announced half tebibyte, it would fail
  EXPECT_LE(reader.room().size(), size_t{1} << 20);
  EXPECT_TRUE(frames.empty());
}

TEST(FrameReader, PulsesAreNotDelivered) {
  RandomStream random(random_key({5}));
  Bytes bytes;
  for (uint32_t i = 0; i < 5; ++i) append(bytes, seal_pulse(), i);
  const Bytes frame = bytes_of({frame_of(9, 0, 10)}, 5);
  bytes.insert(bytes.end(), frame.begin(), frame.end());
  const Read read = read_all(bytes, 60, random);
  EXPECT_EQ(read.trouble, "");
  ASSERT_EQ(read.frames.size(), 1U);
  EXPECT_TRUE(same(read.frames[0], frame_of(9, 0, 10)));
}

}  // namespace
}  // namespace sinew::link
