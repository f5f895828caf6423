// Putting and pinning blobs. The order makes it safe beside a garbage collection. We write the digest into the pin and
// then look for the blob. A collection renames the blob to a tombstone and then reads the pins. So if we found the blob
// under its own name, the collection reads our pin.
#include "base/sha256.h"
#include "registry/artifacts_state.h"

namespace sinew::registry {
namespace {

constexpr size_t kPiece = 1 << 20;

struct Layout {
  Stored whole;
  std::vector<Stored> parts;  // the chunks; empty if the blob is stored as one file
};

// Reads the file once, and computes its digest and the digests of its chunks.
Layout read_layout(Disk& disk, const std::string& path) {
  std::vector<uint64_t> cuts;
  if (const auto index = checkpoint::read_safetensors_index(disk, path)) cuts = cuts_of(*index, disk.size(path));
  if (cuts.size() < 3) cuts.clear();
  Layout layout;
  Sha256 whole, part;
  std::vector<std::byte> buffer(kPiece);
  uint64_t at = 0, part_begin = 0;
  while (true) {
    const uint64_t end = layout.parts.size() < cuts.size() ? cuts[layout.parts.size()] : UINT64_MAX;
    const auto want = static_cast<size_t>(std::min<uint64_t>(buffer.size(), end - at));
    const auto got = std::span<const std::byte>(buffer).first(disk.read_at(path, at, std::span(buffer).first(want)));
    if (got.empty()) break;
    whole.update(got);
    if (!cuts.empty()) part.update(got);
    at += got.size();
    if (at == end) {
      layout.parts.push_back({part.hex(), static_cast<int64_t>(at - part_begin)});
      part = Sha256();
      part_begin = at;
    }
  }
  layout.whole = {whole.hex(), static_cast<int64_t>(at)};
  return layout;
}

void remove_if_possible(Disk& disk, const std::string& path) {
  try {
    disk.remove_file(path);
  } catch (const Error&) {  // a collection removes it after a day
  }
}

[[noreturn]] void fail_changed(const std::string& path) {
  throw Error(path + " changed while it was read", "put it again when nobody writes to it");
}

}  // namespace

struct Artifacts::Hold::State {
  explicit State(std::shared_ptr<Artifacts::State> artifacts) : artifacts(std::move(artifacts)) {}
  ~State() {
    try {
      if (file != nullptr) file->close();
      if (file != nullptr) disk().remove_file(path);
    } catch (...) {  // the pin expires after a day
    }
  }
  Contents& contents() const { return artifacts->contents; }
  Disk& disk() const { return artifacts->contents.disk; }

  // Writes the digest into the pin. From then on the blob is pinned.
  void name(const std::string& digest) {
    if (file == nullptr) {
      disk().make_directories(contents().root + "/holds");
      path = contents().root + "/holds/" + contents().unique_name();
      file = disk().append(path);
    }
    const std::string line = digest + "\n";
    file->write(std::as_bytes(std::span(line)));
  }

  std::string incoming() {
    disk().make_directories(contents().root + "/incoming");
    return contents().root + "/incoming/" + contents().unique_name();
  }

  // Renames a complete and synced file to its final name, durably.
  void move_in(const std::string& from, const std::string& to, const std::string& digest) {
    contents().make_folder(digest);
    disk().rename(from, to);
    disk().sync_directory(contents().folder(digest));
  }

  // Returns whether the blob exists as one undamaged file. Returns false for a damaged file, so that the caller puts
  // the blob again. Makes the name durable, because the process that put the blob may have died before doing so.
  bool there(const Stored& stored) {
    const std::string at = contents().path(stored.digest);
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
    std::vector<std::byte> buffer(kPiece);
    uint64_t at = 0;
    while (const size_t got = disk().read_at(file_path, at, buffer)) {
      hash.update(std::span<const std::byte>(buffer).first(got));
      at += got;
    }
    return hash.hex();
  }
  void make_name_durable(const std::string& digest) {
    contents().make_folder(digest);
    disk().sync_directory(contents().folder(digest));
  }

  // Returns whether a pinned blob exists under its own name. If it is a tombstone, renames it back first. Finding a
  // tombstone is not enough: the collection may have read the pins before ours was written, and then removes the blob.
  bool bring_back(const std::string& digest) {
    for (int attempt = 0; attempt < kMostLooks; ++attempt) {
      const auto found = contents().find(digest);
      if (!found) return false;
      if (!found->leaving) return make_name_durable(digest), true;
      try {
        disk().rename(found->path, contents().path(digest) + std::string(found->recipe ? kRecipe : ""));
      } catch (const DiskError& error) {
        if (error.system_code != ENOENT) throw;
      }
    }
    return false;
  }

  std::optional<Stored> keep(const std::string& digest) {
    if (!contents().find(digest)) return std::nullopt;  // also returns for text that is not a digest
    name(digest);
    if (!bring_back(digest)) return std::nullopt;
    const auto recipe = contents().with(digest, [&](const Contents::Found& found) {
      return found.recipe ? std::optional(contents().recipe(found.path)) : std::nullopt;
    });
    if (!recipe) return Stored{digest, static_cast<int64_t>(contents().size(digest))};
    for (const Stored& part : recipe->parts) {
      name(part.digest);
      if (!bring_back(part.digest)) return std::nullopt;
    }
    return Stored{digest, recipe->bytes};
  }

  // Puts the bytes of the file from `begin` on as the blob `stored`.
  void put_range(const std::string& path, uint64_t begin, const Stored& stored) {
    if (there(stored)) return;
    const std::string temporary = incoming();
    try {
      const auto out = disk().create(temporary);
      Sha256 hash;
      std::vector<std::byte> buffer(kPiece);
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
      move_in(temporary, contents().path(stored.digest), stored.digest);
    } catch (const Error&) {
      remove_if_possible(disk(), temporary);
      throw;
    }
  }

  void put_recipe(const Layout& layout) {
    const std::string to = contents().path(layout.whole.digest) + std::string(kRecipe);
    const std::string temporary = incoming();
    const std::string text = to_text({layout.whole.bytes, layout.parts});
    try {
      const auto out = disk().create(temporary);
      out->write(std::as_bytes(std::span(text)));
      out->sync();
      out->close();
      move_in(temporary, to, layout.whole.digest);
    } catch (const Error&) {
      remove_if_possible(disk(), temporary);
      throw;
    }
  }

  Stored put_file(const std::string& path) { return put_layout(path, read_layout(disk(), path)); }

  Stored put_layout(const std::string& path, const Layout& layout) {
    name(layout.whole.digest);
    if (layout.parts.empty()) {
      put_range(path, 0, layout.whole);
      return layout.whole;
    }
    uint64_t begin = 0;
    for (const Stored& part : layout.parts) {  // even if the chunk manifest exists, because a chunk may be lost
      name(part.digest);
      put_range(path, begin, part);
      begin += static_cast<uint64_t>(part.bytes);
    }
    put_recipe(layout);
    return layout.whole;
  }

  std::shared_ptr<Artifacts::State> artifacts;
  std::string path;  // of the pin's file
  std::unique_ptr<Disk::File> file;
};

struct Artifacts::Hold::Stream::State {
  State(Hold::State& hold, std::string path)
      : hold(hold), path(std::move(path)), file(hold.disk().create(this->path)) {}
  ~State() {
    try {
      remove_if_possible(hold.disk(), path);
    } catch (...) {
    }
  }
  Hold::State& hold;
  const std::string path;
  std::unique_ptr<Disk::File> file;
};

Artifacts::Hold Artifacts::hold() {
  return Hold(std::make_unique<Hold::State>(state_));
}

Artifacts::Hold::Hold(std::unique_ptr<State> state) : state_(std::move(state)) {}
Artifacts::Hold::Hold(Hold&&) noexcept = default;
Artifacts::Hold::~Hold() = default;

Stored Artifacts::Hold::put(std::span<const std::byte> bytes) {
  Stream in = stream();
  in.write(bytes);
  return in.finish();
}

Stored Artifacts::Hold::put(std::string_view text) {
  return put(std::as_bytes(std::span(text.data(), text.size())));
}

Stored Artifacts::Hold::put_file(const std::string& path) {
  return state_->put_file(path);
}

std::optional<Stored> Artifacts::Hold::keep(const std::string& digest) {
  return state_->keep(digest);
}

Artifacts::Hold::Stream Artifacts::Hold::stream() {
  return Stream(std::make_unique<Stream::State>(*state_, state_->incoming()));
}

Artifacts::Hold::Stream::Stream(std::unique_ptr<State> state) : state_(std::move(state)) {}
Artifacts::Hold::Stream::Stream(Stream&&) noexcept = default;
Artifacts::Hold::Stream::~Stream() = default;

void Artifacts::Hold::Stream::write(std::span<const std::byte> bytes) {
  state_->file->write(bytes);
}

Stored Artifacts::Hold::Stream::finish() {
  Hold::State& hold = state_->hold;
  const Layout layout = read_layout(hold.disk(), state_->path);
  if (!layout.parts.empty()) return hold.put_layout(state_->path, layout);
  hold.name(layout.whole.digest);
  if (hold.there(layout.whole)) return layout.whole;
  state_->file->sync();
  state_->file->close();
  hold.move_in(state_->path, hold.contents().path(layout.whole.digest), layout.whole.digest);
  return layout.whole;
}

}  // namespace sinew::registry
