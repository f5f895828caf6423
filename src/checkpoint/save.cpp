#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "base/check.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "checkpoint/names.h"
#include "checkpoint/publish.h"
#include "checkpoint/safetensors.h"

namespace sinew::checkpoint {
namespace {

constexpr size_t kPiece = size_t{1} << 20;  // stays in the processor's cache from its copy to its way out

// A file being written whose facts are taken from the very bytes that go out. They go in pieces that begin at a block
// of memory and of the file, wherever the tensors lie: those the system's disk takes past the page cache.
class NotedFile {
 public:
  NotedFile(Disk& disk, const std::string& path) : file_(disk.create(path)) {}
  void put(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const size_t size = std::min(bytes.size(), kPiece - filled_);
      std::memcpy(piece_.get() + filled_, bytes.data(), size);
      filled_ += size;
      bytes = bytes.subspan(size);
      if (filled_ == kPiece) flush();
    }
  }
  FileFacts finish() {
    flush();
    file_->sync();
    file_->close();
    return facts_.finish();
  }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { ::operator delete[](bytes, std::align_val_t{4096}); }
  };
  void flush() {
    if (filled_ == 0) return;
    const std::span<const std::byte> piece(piece_.get(), filled_);
    facts_.update(piece);
    file_->write(piece);
    filled_ = 0;
  }

  std::unique_ptr<Disk::File> file_;
  FactsStream facts_;
  std::unique_ptr<std::byte[], Free> piece_{new (std::align_val_t{4096}) std::byte[kPiece]};
  size_t filled_ = 0;
};

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

void write_all(Disk& disk, const std::string& directory, const Snapshot& snapshot, double wall_seconds) {
  Manifest manifest{snapshot.step, snapshot.digest, wall_seconds, {}};
  for (const auto& [part, tensors] : snapshot.parts) {
    const Metadata metadata{
        {"format", "pt"}, {"sinew_part", part}, {"sinew_step", std::to_string(snapshot.step.value)}};
    const std::string name = part + std::string(kTensorSuffix);
    NotedFile file(disk, join(directory, name));
    put_safetensors(tensors, metadata, [&](std::span<const std::byte> bytes) { file.put(bytes); });
    manifest.files.emplace(name, file.finish());
  }
  NotedFile state(disk, join(directory, kStateFile));
  state.put(bytes_of(snapshot.state_json));
  manifest.files.emplace(kStateFile, state.finish());
  NotedFile last(disk, join(directory, kManifest));
  last.put(bytes_of(manifest_text(manifest)));
  last.finish();
}

}  // namespace

std::string save(Disk& disk, const std::string& root, const Snapshot& snapshot, double wall_seconds) {
  for (const auto& [part, tensors] : snapshot.parts) SINEW_CHECK(part_name_ok(part), part);
  return publish(disk, root, snapshot.step, snapshot.digest,
                 [&](const std::string& directory) { write_all(disk, directory, snapshot, wall_seconds); });
}

}  // namespace sinew::checkpoint
