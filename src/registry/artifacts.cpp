// Reads and lists blobs.
#include <algorithm>
#include <map>

#include "base/cost_limit.h"
#include "base/sha256.h"
#include "registry/artifacts_state.h"
#include "registry/file_digests.h"

namespace sinew::registry {
namespace {

// Returns the blob's chunk manifest, or nullopt if the blob is stored as one file.
std::optional<ChunkManifest> manifest_of(BlobStore& blobs, const std::string& digest) {
  return blobs.with(digest, [&](const BlobStore::Found& found) {
    return found.is_manifest ? std::optional(blobs.read_chunk_manifest(found.path)) : std::nullopt;
  });
}

// Calls `take` with the bytes of the blob, piece by piece and in order. Ends between two pieces if the thread's
// CostLimit says so.
template <typename Take>
void for_each_piece(BlobStore& blobs, const std::string& digest, Take take) {
  std::vector<std::byte> buffer(kReadBytes);
  const auto read_file = [&](const std::string& of, int64_t expected) {
    uint64_t at = 0;
    const auto read = [&](const BlobStore::Found& found) { return blobs.disk.read_at(found.path, at, buffer); };
    while (const size_t got = blobs.with(of, read)) {
      CostLimit::check_current();
      take(std::span<const std::byte>(buffer).first(got));
      at += got;
    }
    if (expected >= 0 && at != static_cast<uint64_t>(expected))
      throw Error("ARTIFACT_DAMAGED",
                  "artifact " + of + " has " + std::to_string(at) + " bytes instead of " + std::to_string(expected),
                  kRestoreHint);
  };
  const auto manifest = manifest_of(blobs, digest);
  if (!manifest) return read_file(digest, -1);
  for (const BlobInfo& chunk : manifest->chunks) read_file(chunk.digest, chunk.bytes);
}

[[noreturn]] void fail_damaged(const std::string& digest, const std::string& is) {
  throw Error("ARTIFACT_DAMAGED", "artifact " + digest + " is damaged: its bytes have the SHA-256 " + is, kRestoreHint);
}

}  // namespace

Artifacts::Artifacts(std::string directory, Disk& disk, Clock& clock)
    : state_(std::make_shared<State>(std::move(directory), disk, clock)) {}
Artifacts::~Artifacts() = default;

bool Artifacts::has(const std::string& digest) {
  return state_->blobs.find(digest).has_value();
}

uint64_t Artifacts::size(const std::string& digest) {
  return state_->blobs.size(digest);
}

std::vector<std::byte> Artifacts::read(const std::string& digest) {
  std::vector<std::byte> bytes;
  for_each_piece(state_->blobs, digest,
                 [&](std::span<const std::byte> piece) { bytes.insert(bytes.end(), piece.begin(), piece.end()); });
  if (const std::string is = sha256_hex(bytes); is != digest) fail_damaged(digest, is);
  return bytes;
}

Artifacts::Blob Artifacts::open(const std::string& digest) {
  Blob blob;
  blob.state_ = state_;
  blob.digest_ = digest;
  const auto manifest = manifest_of(state_->blobs, digest);
  if (!manifest) return blob;
  uint64_t end = 0;
  for (const BlobInfo& chunk : manifest->chunks)
    blob.chunks_.push_back({chunk.digest, end += static_cast<uint64_t>(chunk.bytes)});
  return blob;
}

size_t Artifacts::Blob::read_at(uint64_t offset, std::span<std::byte> out) const {
  BlobStore& blobs = state_->blobs;
  const auto read = [&](const std::string& of, uint64_t from, std::span<std::byte> to) {
    return blobs.with(of, [&](const BlobStore::Found& found) { return blobs.disk.read_at(found.path, from, to); });
  };
  if (chunks_.empty()) return read(digest_, offset, out);
  size_t done = 0;
  auto chunk = std::ranges::upper_bound(chunks_, offset, {}, &Chunk::end);
  for (; chunk != chunks_.end() && done < out.size(); ++chunk) {
    const uint64_t begin = chunk == chunks_.begin() ? 0 : std::prev(chunk)->end, from = offset + done;
    const auto want = static_cast<size_t>(std::min<uint64_t>(chunk->end - from, out.size() - done));
    const size_t got = read(chunk->digest, from - begin, out.subspan(done, want));
    done += got;
    if (got < want)
      throw Error("ARTIFACT_DAMAGED",
                  "artifact " + chunk->digest + " is shorter than " + std::to_string(chunk->end - begin) + " bytes",
                  kRestoreHint);
  }
  return done;
}

void Artifacts::copy_to(const std::string& digest, const std::string& path) {
  write_durably(state_->blobs.disk, path, [&](Disk::File& file) {
    Sha256 hash;
    for_each_piece(state_->blobs, digest, [&](std::span<const std::byte> piece) {
      hash.update(piece);
      file.write(piece);
    });
    if (const std::string is = hash.hex(); is != digest) fail_damaged(digest, is);
  });
}

void Artifacts::check(const std::string& digest) {
  BlobStore& blobs = state_->blobs;
  const RecentChecks::Turn turn(state_->checks, digest);
  const std::string stamp = blobs.with(digest, [&](const BlobStore::Found& found) {
    std::vector<std::string> paths = {found.path};
    if (!found.is_manifest) return stamp_text(paths, blobs.clock);
    for (const BlobInfo& chunk : blobs.read_chunk_manifest(found.path).chunks)
      paths.push_back(blobs.get(chunk.digest).path);
    return stamp_text(paths, blobs.clock);
  });
  if (state_->checks.has(digest, stamp)) return;
  Sha256 hash;
  for_each_piece(blobs, digest, [&](std::span<const std::byte> piece) { hash.update(piece); });
  if (const std::string is = hash.hex(); is != digest) fail_damaged(digest, is);
  state_->checks.add(digest, stamp);
}

std::expected<void, std::string> Artifacts::verify(const std::string& digest) {
  try {
    Sha256 hash;
    for_each_piece(state_->blobs, digest, [&](std::span<const std::byte> piece) { hash.update(piece); });
    const std::string is = hash.hex();
    if (is == digest) return {};
    return std::unexpected("artifact " + digest + " is damaged: its bytes have the SHA-256 " + is);
  } catch (const Error& error) {
    return std::unexpected(error.what());
  }
}

bool Artifacts::empty() {
  return state_->blobs.list().empty();
}

const std::string& Artifacts::directory() const {
  return state_->blobs.root;
}

std::string Artifacts::owner() {
  BlobStore& blobs = state_->blobs;
  const std::string path = blobs.root + std::string(kOwnerFile);
  if (!blobs.disk.exists(path)) return "";
  const std::string text = read_text(blobs.disk, path);
  return text.substr(0, text.find('\n'));
}

void Artifacts::set_owner(const std::string& store_id) {
  BlobStore& blobs = state_->blobs;
  make_directories_durably(blobs.disk, blobs.root);
  write_durably(blobs.disk, blobs.root + std::string(kOwnerFile), store_id + "\n");
}

std::vector<BlobInfo> Artifacts::list() {
  std::map<std::string, int64_t> found;  // a blob may exist both as one file and as a chunk manifest
  for (const BlobStore::Entry& entry : state_->blobs.list())
    found[entry.name.digest] = static_cast<int64_t>(size(entry.name.digest));
  std::vector<BlobInfo> stored;
  for (const auto& [digest, bytes] : found) stored.push_back({digest, bytes});
  return stored;
}

}  // namespace sinew::registry
