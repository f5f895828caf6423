#include "checkpoint/checksums.h"

#include <algorithm>
#include <utility>

namespace sinew::checkpoint {
namespace {

std::string wrong_chunk(size_t index, std::span<const std::byte> bytes, Digest expected, Digest found) {
  const uint64_t begin = index * kChunkBytes;
  std::string text = "chunk " + std::to_string(index) + " (bytes " + std::to_string(begin) + " to " +
                     std::to_string(begin + bytes.size()) + ") has checksum " + to_hex(found) + ", expected " +
                     to_hex(expected);
  if (std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; })) {
    text += "; it contains only zeros, like a block that was never written";
  }
  return text;
}

}  // namespace

void ChunkDigests::update(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min<uint64_t>(kChunkBytes - filled_, bytes.size()));
    chunk_.update(piece);
    filled_ += piece.size();
    if (filled_ == kChunkBytes) end_chunk();
    bytes = bytes.subspan(piece.size());
  }
}

std::vector<Digest> ChunkDigests::finish() {
  if (filled_ > 0) end_chunk();
  return std::exchange(chunks_, {});
}

void ChunkDigests::end_chunk() {
  chunks_.push_back(chunk_.digest());
  chunk_.reset();
  filled_ = 0;
}

void ChecksumStream::update(std::span<const std::byte> bytes) {
  bytes_ += bytes.size();
  whole_.update(bytes);
  chunks_.update(bytes);
}

FileChecksums ChecksumStream::finish() {
  return {bytes_, whole_.digest(), chunks_.finish()};
}

std::optional<std::string> read_checked(Disk& disk, const std::string& path, const FileChecksums& checksums,
                                        const TakeChunk& take) {
  const uint64_t size = disk.size(path);
  if (size != checksums.bytes) {
    return "is " + std::to_string(size) + " bytes long, expected " + std::to_string(checksums.bytes);
  }
  std::vector<std::byte> buffer(std::min(kChunkBytes, size));
  DigestStream whole;
  for (size_t i = 0; i < checksums.chunks.size(); ++i) {
    const uint64_t begin = i * kChunkBytes;
    const auto chunk = std::span(buffer).first(std::min(kChunkBytes, size - begin));
    const size_t got = disk.read_at(path, begin, chunk);
    if (got != chunk.size())
      return "ends at byte " + std::to_string(begin + got) + ", expected " + std::to_string(size);
    const Digest found = digest_of(std::span<const std::byte>(chunk));
    if (found != checksums.chunks[i]) return wrong_chunk(i, chunk, checksums.chunks[i], found);
    whole.update(chunk);
    take(chunk);
  }
  if (whole.digest() != checksums.whole) {
    return "has checksum " + to_hex(whole.digest()) + ", expected " + to_hex(checksums.whole);
  }
  return std::nullopt;
}

}  // namespace sinew::checkpoint
