#include "base/check.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "checkpoint/names.h"
#include "checkpoint/publish.h"
#include "checkpoint/safetensors.h"

namespace sinew::checkpoint {
namespace {

// A file that is being written. It computes its checksums from the bytes that it is given.
class ChecksummedFile {
 public:
  ChecksummedFile(Disk& disk, const std::string& path) : file_(disk.create(path)) {}
  void put(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    file_->write(bytes);
    checksums_.update(bytes);
  }
  FileChecksums finish() {
    file_->sync();
    file_->close();
    return checksums_.finish();
  }

 private:
  std::unique_ptr<Disk::File> file_;
  ChecksumStream checksums_;
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
    ChecksummedFile file(disk, join(directory, name));
    put_safetensors(tensors, metadata, [&](std::span<const std::byte> bytes) { file.put(bytes); });
    manifest.files.emplace(name, file.finish());
  }
  ChecksummedFile state(disk, join(directory, kStateFile));
  state.put(bytes_of(snapshot.state_json));
  manifest.files.emplace(kStateFile, state.finish());
  ChecksummedFile last(disk, join(directory, kManifest));
  last.put(bytes_of(manifest_text(manifest)));
  last.finish();
}

}  // namespace

std::string save(Disk& disk, const std::string& root, const Snapshot& snapshot, double wall_seconds) {
  for (const auto& [part, tensors] : snapshot.parts) SINEW_CHECK(is_part_name(part), part);
  return publish(disk, root, snapshot.step, snapshot.digest,
                 [&](const std::string& directory) { write_all(disk, directory, snapshot, wall_seconds); });
}

}  // namespace sinew::checkpoint
