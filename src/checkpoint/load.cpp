// Loads and verifies a checkpoint (docs/formats/checkpoint.md, "How a reader decides"). The reader reads every file
// once, so the bytes that it checked are the bytes that it returns.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/cost_limit.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/digest_check.h"
#include "checkpoint/manifest.h"
#include "checkpoint/names.h"
#include "checkpoint/safetensors.h"

namespace sinew::checkpoint {
namespace {

// This file throws and catches it. A chain of returned errors would hide the order of the checks.
struct Found {
  Damage damage;
};

class Reader {
 public:
  Reader(Disk& disk, const std::string& directory, bool past_cache)
      : disk_(disk), directory_(directory), past_cache_(past_cache) {}

  const Manifest& manifest() const { return manifest_; }
  uint64_t bytes() const { return bytes_; }

  void read_manifest() {
    guarded(kManifest, [&] {
      const std::string path = path_of(kManifest);
      if (!disk_.exists(directory_)) found(kManifest, "is missing, because its directory does not exist");
      if (!disk_.exists(path)) found(kManifest, "is missing, so the contents of this directory cannot be checked");
      if (past_cache_) disk_.drop_cache(path);
      if (disk_.size(path) > kMaxManifestBytes) found(kManifest, "is larger than 64 MiB");
      const std::string text = read_text(disk_, path);
      bytes_ += text.size();
      auto manifest = parse_manifest(text);
      if (!manifest) found(kManifest, manifest.error());
      manifest_ = std::move(*manifest);
      const auto named = parse_step_name(base_name(directory_));
      if (named && *named != manifest_.step) {
        found(kManifest, "belongs to another checkpoint: it is of step " + std::to_string(manifest_.step.value));
      }
    });
  }

  // Checks that the directory contains exactly the listed files, each with its listed size. Reads none of them.
  void check_listing() {
    guarded("", [&] {
      for (const auto& entry : disk_.list(directory_)) {
        if (entry.name.starts_with('.') || entry.name == kManifest) continue;
        if (!manifest_.files.contains(entry.name)) found(entry.name, "is not listed in the manifest");
      }
    });
    for (const auto& [name, checksums] : manifest_.files) check_size(name, checksums.bytes);
  }

  void read_file(const std::string& name, const TakeChunk& take) {
    guarded(name, [&] {
      if (past_cache_) disk_.drop_cache(path_of(name));
      if (const auto wrong = read_checked(disk_, path_of(name), manifest_.files.at(name), take)) found(name, *wrong);
    });
  }

  std::string read_state() {
    std::string text;
    read_file(std::string(kStateFile), [&](std::span<const std::byte> bytes) {
      text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    });
    return text;
  }

  TensorFile read_part(const std::string& name, bool keep = true, TensorDigests* digests = nullptr) {
    TensorSink sink(manifest_.files.at(name).bytes, keep, digests);
    read_file(name, [&](std::span<const std::byte> bytes) { sink.take(bytes); });
    auto file = sink.finish();
    if (!file) found(name, file.error());
    const auto says = [&](const char* key) {
      const auto at = file->metadata.find(key);
      return at == file->metadata.end() ? std::string() : at->second;
    };
    if (says("sinew_part") != part_of(name))
      found(name, "has the metadata of part \"" + says("sinew_part").substr(0, 80) + "\"");
    if (says("sinew_step") != std::to_string(manifest_.step.value)) {
      found(name, "has the metadata of step \"" + says("sinew_step").substr(0, 80) + "\"");
    }
    return std::move(*file);
  }

  // Reads all files, each once, and checks that the tensors have the digest of the state. If `keep` is false, the
  // result has no parts.
  Loaded read_all(bool keep) {
    check_listing();
    Loaded loaded{manifest_.step, directory_, {}, {}, manifest_.digest};
    std::map<std::string, TensorDigests> digests;
    for (const auto& [name, checksums] : manifest_.files) {
      if (name == kStateFile) {
        loaded.state_json = read_state();
        continue;
      }
      const std::string part(part_of(name));
      TensorFile file = read_part(name, keep, &digests[part]);
      if (keep) loaded.parts.emplace(part, std::move(file));
    }
    if (const auto wrong = wrong_state_digest(loaded.state_json, manifest_.digest, bytes_, digests))
      found(kStateFile, *wrong);
    return loaded;
  }

 private:
  void check_size(const std::string& name, uint64_t expected) {
    guarded(name, [&] {
      if (!disk_.exists(path_of(name))) found(name, "is missing");
      const uint64_t size = disk_.size(path_of(name));
      if (size != expected) {
        found(name, "is " + std::to_string(size) + " bytes long, expected " + std::to_string(expected));
      }
      bytes_ += size;
    });
  }
  std::string path_of(std::string_view name) const { return join(directory_, name); }
  [[noreturn]] void found(std::string_view file, std::string what) const {
    throw Found{{directory_, std::string(file), std::move(what)}};
  }
  // Runs `work` and turns a DiskError into damage of `file`.
  template <typename Work>
  void guarded(std::string_view file, Work work) const {
    try {
      work();
    } catch (const DiskError& error) {
      found(file, std::string("cannot be read: ") + error.what());
    }
  }

  Disk& disk_;
  std::string directory_;
  bool past_cache_;
  Manifest manifest_;
  uint64_t bytes_ = 0;
};

Summary summary_of(const Reader& reader, const std::string& directory) {
  const Manifest& manifest = reader.manifest();
  return {manifest.step, directory, reader.bytes(), manifest.digest, manifest.written_seconds};
}

// Reads the manifest, then calls `read`. Returns its result, or the damage that reading the manifest or `read` found.
template <typename Read>
auto with_manifest(Disk& disk, const std::string& directory, const Read& read, bool past_cache = false)
    -> std::expected<std::invoke_result_t<const Read&, Reader&>, Damage> {
  try {
    Reader reader(disk, directory, past_cache);
    reader.read_manifest();
    if constexpr (std::is_void_v<std::invoke_result_t<const Read&, Reader&>>) {
      read(reader);
      return {};
    } else {
      return read(reader);
    }
  } catch (Found& found) {
    return std::unexpected(std::move(found.damage));
  }
}

void check_listed(const Reader& reader, const std::string& directory, const std::string& name) {
  if (!reader.manifest().files.contains(name)) throw Found{Damage{directory, name, "is not listed in the manifest"}};
}

}  // namespace

Error checkpoint_damaged(const Damage& damage) {
  return {"CHECKPOINT_DAMAGED", damage.directory + " is damaged (" + damage.file + ": " + damage.what + ")",
          "use another checkpoint: sinew checkpoint verify lists the intact ones"};
}

std::expected<Loaded, Damage> load(Disk& disk, const std::string& directory) {
  return with_manifest(disk, directory, [](Reader& reader) { return reader.read_all(true); });
}

std::expected<std::string, Damage> load_state(Disk& disk, const std::string& directory) {
  return with_manifest(disk, directory, [](Reader& reader) { return reader.read_state(); });
}

std::expected<TensorFile, Damage> load_file(Disk& disk, const std::string& directory, const std::string& name) {
  return with_manifest(disk, directory, [&](Reader& reader) {
    check_listed(reader, directory, name);
    return reader.read_part(name);
  });
}

std::expected<void, Damage> check_file(Disk& disk, const std::string& directory, const std::string& name) {
  return with_manifest(disk, directory, [&](Reader& reader) {
    if (name == kManifest) return;
    check_listed(reader, directory, name);
    reader.read_file(name, [](std::span<const std::byte>) { CostLimit::check_current(); });
  });
}

std::expected<Summary, Damage> verify(Disk& disk, const std::string& directory, bool past_cache) {
  const auto read = [&](Reader& reader) {
    reader.read_all(false);
    return summary_of(reader, directory);
  };
  return with_manifest(disk, directory, read, past_cache);
}

std::expected<Summary, Damage> describe(Disk& disk, const std::string& directory) {
  return with_manifest(disk, directory, [&](Reader& reader) {
    reader.check_listing();
    return summary_of(reader, directory);
  });
}

Newest load_newest(Disk& disk, const std::string& root) {
  Newest newest;
  auto directories = list(disk, root);
  std::reverse(directories.begin(), directories.end());
  for (const std::string& directory : directories) {
    auto loaded = load(disk, directory);
    if (loaded) {
      newest.loaded = std::move(*loaded);
      break;
    }
    newest.damaged.push_back(std::move(loaded.error()));
  }
  return newest;
}

}  // namespace sinew::checkpoint
