// Puts and pins blobs. The order of the calls makes this safe while a garbage collection runs. A pin first writes the
// digest into its file and then looks for the blob. A collection first renames the blob to a tombstone and then reads
// the pins. So if the pin finds the blob under its own name, the collection will read the pin.
#include "base/sha256.h"
#include "registry/artifacts_state.h"
#include "registry/file_digests.h"

namespace sinew::registry {
namespace {

// A header of more bytes costs more memory than chunks are worth; such a file is stored as one blob.
constexpr uint64_t kMaxChunkedHeader = 8 << 20;

struct Layout {
  BlobInfo whole;
  std::vector<BlobInfo> chunks;  // empty if the blob is stored as one file
};

// Reads the file once. Computes its digest and the digests of its chunks.
Layout read_layout(Disk& disk, const std::string& path) {
  std::vector<uint64_t> cuts;
  if (const auto index = checkpoint::read_safetensors_index(disk, path, kMaxChunkedHeader))
    cuts = cuts_of(*index, disk.size(path));
  if (cuts.size() < 3) cuts.clear();
  Layout layout;
  Sha256 whole, chunk;
  std::vector<std::byte> buffer(kReadBytes);
  uint64_t at = 0, chunk_begin = 0;
  while (true) {
    const uint64_t end = layout.chunks.size() < cuts.size() ? cuts[layout.chunks.size()] : UINT64_MAX;
    const auto want = static_cast<size_t>(std::min<uint64_t>(buffer.size(), end - at));
    const auto got = std::span<const std::byte>(buffer).first(disk.read_at(path, at, std::span(buffer).first(want)));
    if (got.empty()) break;
    whole.update(got);
    if (!cuts.empty()) chunk.update(got);
    at += got.size();
    if (at == end) {
      layout.chunks.push_back({chunk.hex(), static_cast<int64_t>(at - chunk_begin)});
      chunk = Sha256();
      chunk_begin = at;
    }
  }
  layout.whole = {whole.hex(), static_cast<int64_t>(at)};
  return layout;
}

void remove_if_possible(Disk& disk, const std::string& path) {
  try {
    disk.remove_file(path);
  } catch (const Error&) {  // a garbage collection removes the pin after a day
  }
}

[[noreturn]] void fail_changed(const std::string& path) {
  throw Error("ARTIFACT_CHANGED", path + " changed while Sinew read it", "try again once no program writes to it");
}

}  // namespace

struct Artifacts::Pin::State {
  explicit State(std::shared_ptr<Artifacts::State> artifacts) : artifacts(std::move(artifacts)) {}
  ~State() {
    try {
      if (file != nullptr) file->close();
      if (file != nullptr) disk().remove_file(path);
    } catch (...) {  // the pin expires after a day
    }
  }
  BlobStore& blobs() const { return artifacts->blobs; }
  Disk& disk() const { return artifacts->blobs.disk; }

  // Writes the digest into the pin's file. From then on the blob is pinned.
  void add_digest(const std::string& digest) {
    if (file == nullptr) {
      disk().make_directories(blobs().root + "/holds");
      path = blobs().root + "/holds/" + blobs().unique_name();
      file = disk().append(path);
    }
    const std::string line = digest + "\n";
    file->write(std::as_bytes(std::span(line)));
  }

  std::string incoming() {
    disk().make_directories(blobs().root + "/incoming");
    return blobs().root + "/incoming/" + blobs().unique_name();
  }

  // Renames a complete and synced file to its final name, and makes the name durable.
  void publish(const std::string& from, const std::string& to, const std::string& digest) {
    blobs().make_folder(digest);
    disk().rename(from, to);
    disk().sync_directory(blobs().folder(digest));
  }

  // Returns whether the blob exists as one undamaged file. If not, the caller puts the blob, which repairs a damaged
  // file. Makes the name durable, because the process that put the blob may have died before it did so.
  bool is_intact(const BlobInfo& stored) {
    const std::string at = blobs().path(stored.digest);
    try {
      if (disk().size(at) != static_cast<uint64_t>(stored.bytes) || sha256_of(at) != stored.digest) return false;
    } catch (const DiskError& error) {
      if (error.system_code == ENOENT || error.system_code == ENOTDIR || error.system_code == EIO) return false;
      throw;
    }
    make_name_durable(stored.digest);
    return true;
  }
  std::string sha256_of(const std::string& file_path) const {
    Sha256 hash;
    std::vector<std::byte> buffer(kReadBytes);
    uint64_t at = 0;
    while (const size_t got = disk().read_at(file_path, at, buffer)) {
      hash.update(std::span<const std::byte>(buffer).first(got));
      at += got;
    }
    return hash.hex();
  }
  void make_name_durable(const std::string& digest) {
    blobs().make_folder(digest);
    disk().sync_directory(blobs().folder(digest));
  }

  // Returns whether a pinned blob exists under its own name. If it is a tombstone, renames it back first. Finding a
  // tombstone is not enough: if the collection read the pins before this digest was written, it will remove the
  // tombstone.
  bool restore_name(const std::string& digest) {
    for (int attempt = 0; attempt < kMaxLookups; ++attempt) {
      const auto found = blobs().find(digest);
      if (!found) return false;
      if (!found->is_tombstone) return make_name_durable(digest), true;
      try {
        disk().rename(found->path, blobs().path(digest) + std::string(found->is_manifest ? kManifestSuffix : ""));
      } catch (const DiskError& error) {
        if (error.system_code != ENOENT) throw;
      }
    }
    return false;
  }

  std::optional<BlobInfo> keep(const std::string& digest) {
    if (!blobs().find(digest)) return std::nullopt;  // find() also returns nullopt for a text that is not a digest
    add_digest(digest);
    if (!restore_name(digest)) return std::nullopt;
    const auto manifest = blobs().with(digest, [&](const BlobStore::Found& found) {
      return found.is_manifest ? std::optional(blobs().read_chunk_manifest(found.path)) : std::nullopt;
    });
    if (!manifest) return BlobInfo{digest, static_cast<int64_t>(blobs().size(digest))};
    for (const BlobInfo& chunk : manifest->chunks) {
      add_digest(chunk.digest);
      if (!restore_name(chunk.digest)) return std::nullopt;
    }
    return BlobInfo{digest, manifest->bytes};
  }

  // Puts a part of the file, which begins at `begin`, as the blob `stored`.
  void put_range(const std::string& path, uint64_t begin, const BlobInfo& stored, const BeforeCopy& before_copy) {
    if (is_intact(stored)) return;
    if (before_copy) before_copy(stored.bytes);
    const std::string temporary = incoming();
    try {
      const auto out = disk().create_new(temporary);
      Sha256 hash;
      std::vector<std::byte> buffer(kReadBytes);
      for (uint64_t done = 0; done < static_cast<uint64_t>(stored.bytes);) {
        const auto want = std::min<uint64_t>(buffer.size(), static_cast<uint64_t>(stored.bytes) - done);
        const auto got = std::span(buffer).first(disk().read_at(path, begin + done, std::span(buffer).first(want)));
        if (got.empty()) fail_changed(path);
        hash.update(got);
        out->write(got);
        done += got.size();
      }
      if (hash.hex() != stored.digest) fail_changed(path);
      out->sync();
      out->close();
      publish(temporary, blobs().path(stored.digest), stored.digest);
    } catch (const Error&) {
      remove_if_possible(disk(), temporary);
      throw;
    }
  }

  void put_manifest(const Layout& layout) {
    const std::string to = blobs().path(layout.whole.digest) + std::string(kManifestSuffix);
    const std::string temporary = incoming();
    const std::string text = to_text({layout.whole.bytes, layout.chunks});
    try {
      const auto out = disk().create_new(temporary);
      out->write(std::as_bytes(std::span(text)));
      out->sync();
      out->close();
      publish(temporary, to, layout.whole.digest);
    } catch (const Error&) {
      remove_if_possible(disk(), temporary);
      throw;
    }
  }

  BlobInfo put_file(const std::string& path, const BeforeCopy& before_copy) {
    return put_layout(path, read_layout(disk(), path), before_copy);
  }

  BlobInfo put_layout(const std::string& path, const Layout& layout, const BeforeCopy& before_copy) {
    add_digest(layout.whole.digest);
    if (layout.chunks.empty()) {
      put_range(path, 0, layout.whole, before_copy);
      return layout.whole;
    }
    uint64_t begin = 0;
    for (const BlobInfo& chunk : layout.chunks) {  // even if the chunk manifest exists, because a chunk may be lost
      add_digest(chunk.digest);
      put_range(path, begin, chunk, before_copy);
      begin += static_cast<uint64_t>(chunk.bytes);
    }
    put_manifest(layout);
    return layout.whole;
  }

  std::shared_ptr<Artifacts::State> artifacts;
  std::string path;  // the path of the pin's file
  std::unique_ptr<Disk::File> file;
};

struct Artifacts::Pin::Stream::State {
  State(Pin::State& pin, std::string path) : pin(pin), path(std::move(path)), file(pin.disk().create_new(this->path)) {}
  ~State() {
    try {
      remove_if_possible(pin.disk(), path);
    } catch (...) {
    }
  }
  Pin::State& pin;
  const std::string path;
  std::unique_ptr<Disk::File> file;
};

Artifacts::Pin Artifacts::pin() {
  return Pin(std::make_unique<Pin::State>(state_));
}

Artifacts::Pin::Pin(std::unique_ptr<State> state) : state_(std::move(state)) {}
Artifacts::Pin::Pin(Pin&&) noexcept = default;
Artifacts::Pin::~Pin() = default;

BlobInfo Artifacts::Pin::put(std::span<const std::byte> bytes) {
  Stream in = stream();
  in.write(bytes);
  return in.finish();
}

BlobInfo Artifacts::Pin::put(std::string_view text) {
  return put(std::as_bytes(std::span(text.data(), text.size())));
}

BlobInfo Artifacts::Pin::put_file(const std::string& path, const BeforeCopy& before_copy) {
  return state_->put_file(path, before_copy);
}

std::optional<BlobInfo> Artifacts::Pin::keep(const std::string& digest) {
  return state_->keep(digest);
}

Artifacts::Pin::Stream Artifacts::Pin::stream() {
  return Stream(std::make_unique<Stream::State>(*state_, state_->incoming()));
}

Artifacts::Pin::Stream::Stream(std::unique_ptr<State> state) : state_(std::move(state)) {}
Artifacts::Pin::Stream::Stream(Stream&&) noexcept = default;
Artifacts::Pin::Stream::~Stream() = default;

void Artifacts::Pin::Stream::write(std::span<const std::byte> bytes) {
  state_->file->write(bytes);
}

BlobInfo Artifacts::Pin::Stream::finish() {
  Pin::State& pin = state_->pin;
  const Layout layout = read_layout(pin.disk(), state_->path);
  if (!layout.chunks.empty()) return pin.put_layout(state_->path, layout, nullptr);
  pin.add_digest(layout.whole.digest);
  if (pin.is_intact(layout.whole)) return layout.whole;
  state_->file->sync();
  state_->file->close();
  pin.publish(state_->path, pin.blobs().path(layout.whole.digest), layout.whole.digest);
  return layout.whole;
}

}  // namespace sinew::registry
