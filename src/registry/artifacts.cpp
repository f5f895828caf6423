// Reading and listing blobs.
#include <algorithm>
#include <map>

#include "base/sha256.h"
#include "registry/artifacts_state.h"

namespace sinew::registry {
namespace {

constexpr size_t kPiece = 1 << 20;

// Returns the chunk manifest of the blob, or nullopt if the blob is stored as one file.
std::optional<Recipe> recipe_of(Contents& contents, const std::string& digest) {
  return contents.with(digest, [&](const Contents::Found& found) {
    return found.recipe ? std::optional(contents.recipe(found.path)) : std::nullopt;
  });
}

// Calls `take` with the bytes of the blob, piece by piece in order.
template <typename Take>
void for_each_piece(Contents& contents, const std::string& digest, Take take) {
  std::vector<std::byte> buffer(kPiece);
  const auto read_file = [&](const std::string& of, int64_t expected) {
    uint64_t at = 0;
    const auto read = [&](const Contents::Found& found) { return contents.disk.read_at(found.path, at, buffer); };
    while (const size_t got = contents.with(of, read)) {
      take(std::span<const std::byte>(buffer).first(got));
      at += got;
    }
    if (expected >= 0 && at != static_cast<uint64_t>(expected))
      throw Error("content " + of + " has " + std::to_string(at) + " bytes, not " + std::to_string(expected),
                  "restore the artifacts' folder from a copy");
  };
  const auto recipe = recipe_of(contents, digest);
  if (!recipe) return read_file(digest, -1);
  for (const Stored& part : recipe->parts) read_file(part.digest, part.bytes);
}

[[noreturn]] void fail_damaged(const std::string& digest, const std::string& is) {
  throw Error("content " + digest + " is damaged: its bytes have the SHA-256 " + is,
              "restore the artifacts' folder from a copy");
}

}  // namespace

Artifacts::Artifacts(std::string directory, Disk& disk, Clock& clock)
    : state_(std::make_shared<State>(std::move(directory), disk, clock)) {}
Artifacts::~Artifacts() = default;

bool Artifacts::has(const std::string& digest) {
  return state_->contents.find(digest).has_value();
}

uint64_t Artifacts::size(const std::string& digest) {
  return state_->contents.size(digest);
}

std::vector<std::byte> Artifacts::read(const std::string& digest) {
  std::vector<std::byte> bytes;
  for_each_piece(state_->contents, digest,
                 [&](std::span<const std::byte> piece) { bytes.insert(bytes.end(), piece.begin(), piece.end()); });
  if (const std::string is = sha256_hex(bytes); is != digest) fail_damaged(digest, is);
  return bytes;
}

size_t Artifacts::read_at(const std::string& digest, uint64_t offset, std::span<std::byte> out) {
  Contents& contents = state_->contents;
  const auto read = [&](const std::string& of, uint64_t from, std::span<std::byte> to) {
    return contents.with(of, [&](const Contents::Found& found) { return contents.disk.read_at(found.path, from, to); });
  };
  const auto recipe = recipe_of(contents, digest);
  if (!recipe) return read(digest, offset, out);
  size_t done = 0;
  uint64_t begin = 0;  // offset of the chunk in the blob
  for (const Stored& part : recipe->parts) {
    const uint64_t end = begin + static_cast<uint64_t>(part.bytes);
    const uint64_t from = offset + done;
    if (done < out.size() && from < end) {
      const auto want = static_cast<size_t>(std::min<uint64_t>(end - from, out.size() - done));
      const size_t got = read(part.digest, from - begin, out.subspan(done, want));
      done += got;
      if (got < want)
        throw Error("content " + part.digest + " is shorter than " + std::to_string(part.bytes) + " bytes",
                    "restore the artifacts' folder from a copy");
    }
    begin = end;
  }
  return done;
}

void Artifacts::copy_to(const std::string& digest, const std::string& path) {
  write_durably(state_->contents.disk, path, [&](Disk::File& file) {
    Sha256 hash;
    for_each_piece(state_->contents, digest, [&](std::span<const std::byte> piece) {
      hash.update(piece);
      file.write(piece);
    });
    if (const std::string is = hash.hex(); is != digest) fail_damaged(digest, is);
  });
}

std::expected<void, std::string> Artifacts::verify(const std::string& digest) {
  try {
    Sha256 hash;
    for_each_piece(state_->contents, digest, [&](std::span<const std::byte> piece) { hash.update(piece); });
    const std::string is = hash.hex();
    if (is == digest) return {};
    return std::unexpected("content " + digest + " is damaged: its bytes have the SHA-256 " + is);
  } catch (const Error& error) {
    return std::unexpected(error.what());
  }
}

bool Artifacts::empty() {
  return state_->contents.list().empty();
}

const std::string& Artifacts::directory() const {
  return state_->contents.root;
}

std::string Artifacts::owner() {
  Contents& contents = state_->contents;
  const std::string path = contents.root + std::string(kOwner);
  if (!contents.disk.exists(path)) return "";
  const std::string text = read_text(contents.disk, path);
  return text.substr(0, text.find('\n'));
}

void Artifacts::set_owner(const std::string& store_id) {
  Contents& contents = state_->contents;
  make_directories_durably(contents.disk, contents.root);
  write_durably(contents.disk, contents.root + std::string(kOwner), store_id + "\n");
}

std::vector<Stored> Artifacts::list() {
  std::map<std::string, int64_t> found;  // a blob may exist both as one file and as a chunk manifest
  for (const Contents::Entry& entry : state_->contents.list())
    found[entry.name.digest] = static_cast<int64_t>(size(entry.name.digest));
  std::vector<Stored> stored;
  for (const auto& [digest, bytes] : found) stored.push_back({digest, bytes});
  return stored;
}

}  // namespace sinew::registry
