// Writes and reads model.digests.json, the list of a trained model's files. Reads weights and checks them against it.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/cost_limit.h"
#include "base/sha256.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checksums.h"
#include "checkpoint/manifest.h"
#include "checkpoint/names.h"
#include "checkpoint/safetensors.h"

namespace sinew::checkpoint {
namespace {

using Document = nlohmann::json;

constexpr uint64_t kMaxInfoBytes = 64 << 20;
constexpr std::string_view kDigestsFormat = "sinew-model-digests";
// The files of a model that Sinew itself opens. model.digests.json must list each of them that the directory has. A
// user may put other files beside them, which are not listed.
constexpr std::string_view kUsedFiles[] = {"model.safetensors", kModelInfoFile, "model.pt2", "model.pt", "model.so"};

struct NotAllowed {};  // thrown and caught inside this file only

bool is_used(std::string_view name) {
  return std::ranges::find(kUsedFiles, name) != std::end(kUsedFiles);
}

// Calls `take` with the bytes of a file of `size` bytes, piece by piece. Returns the digest of the whole file.
template <typename Take>
FileDigest digest_pieces(Disk& disk, const std::string& path, uint64_t size, Take take) {
  FileDigest found;
  Sha256 hash;
  std::vector<std::byte> buffer(std::min(kChunkBytes, size));
  while (found.bytes < size) {
    const size_t want = std::min<uint64_t>(kChunkBytes, size - found.bytes);
    const size_t got = disk.read_at(path, found.bytes, std::span(buffer).first(want));
    if (got == 0) break;
    hash.update(std::span<const std::byte>(buffer).first(got));
    take(std::span<const std::byte>(buffer).first(got));
    found.bytes += got;
  }
  found.sha256 = hash.hex();
  return found;
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}

ModelDigests digests_in(const Document& root) {
  ModelDigests digests;
  for (const auto& [name, listed] : root.at("files").items()) {
    if (!is_used(name) || listed.size() != 2 || !listed.at("bytes").is_number_unsigned()) throw NotAllowed();
    FileDigest& digest = digests[name] = {listed.at("bytes").get<uint64_t>(), listed.at("sha256").get<std::string>()};
    if (!is_sha256(digest.sha256)) throw NotAllowed();
  }
  return digests;
}

std::optional<std::string> compare_with_list(const ModelDigests& listed, const std::string& name,
                                             const FileDigest& found) {
  const auto at = listed.find(name);
  if (at == listed.end()) return name + " is not listed in " + kModelDigestsFile;
  if (at->second.bytes != found.bytes)
    return name + " has " + std::to_string(found.bytes) + " bytes instead of " + std::to_string(at->second.bytes);
  if (at->second.sha256 != found.sha256)
    return name + " has the SHA-256 " + found.sha256 + " instead of " + at->second.sha256;
  return std::nullopt;
}

}  // namespace

FileDigest digest_file(Disk& disk, const std::string& path) {
  return digest_pieces(disk, path, disk.size(path), [](std::span<const std::byte>) {});
}

std::string model_digests_text(const ModelDigests& digests) {
  std::string text = "{\n \"format\": \"" + std::string(kDigestsFormat) + "\",\n \"version\": 1,\n \"files\": {\n";
  bool first = true;
  for (const auto& [name, digest] : digests) {
    SINEW_CHECK(is_used(name), name);
    if (!std::exchange(first, false)) text += ",\n";
    text +=
        "  \"" + name + "\": {\"bytes\": " + std::to_string(digest.bytes) + ", \"sha256\": \"" + digest.sha256 + "\"}";
  }
  return with_checksum(text.append("\n },\n").append(kChecksumKey));
}

std::expected<ModelDigests, std::string> parse_model_digests(std::string_view text) {
  if (text.size() > kMaxDigestsBytes) return std::unexpected("is larger than 1 MiB");
  if (auto wrong = wrong_checksum(text)) return std::unexpected(std::move(*wrong));
  const Document root = Document::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object() || root.value("format", Document()) != kDigestsFormat)
    return std::unexpected("is no list of a model's files");
  if (root.value("version", Document()) != 1)
    return std::unexpected("has a version other than 1: another version of Sinew wrote it");
  try {
    if (root.size() == 4) return digests_in(root);
  } catch (const Document::exception&) {  // a field is missing or has the wrong type
  } catch (const NotAllowed&) {
  }
  return std::unexpected("has a field that version 1 does not allow");
}

bool names_model_digests(std::string_view model_json) {
  // Keeps only the outermost brackets, because the file may hold millions of values.
  bool named = false;
  const auto wanted = [&](int depth, Document::parse_event_t event, const Document& part) {
    named |= depth == 1 && event == Document::parse_event_t::key && part == "digests";
    return depth == 0;
  };
  const Document document = Document::parse(model_json, wanted, /*allow_exceptions=*/false);
  return document.is_object() && named;
}

std::optional<std::string> wrong_model_file(const ModelDigests& listed, const ModelDigests& found) {
  for (const auto& [name, digest] : listed) {
    if (!found.contains(name)) return name + " is missing";
  }
  for (const auto& [name, digest] : found) {
    if (!is_used(name)) continue;
    if (auto wrong = compare_with_list(listed, name, digest)) return wrong;
  }
  return std::nullopt;
}

Error model_damaged(const std::string& directory, const std::string& wrong) {
  return {"WEIGHTS_DAMAGED", "the model " + directory + " is damaged: " + wrong,
          "copy the whole directory again from where it is intact, or use a checkpoint of its run"};
}

std::string unchecked_model(const std::string& directory) {
  return directory + " has no " + kModelDigestsFile + ", so its files were not checked for damage";
}

std::optional<ModelDigests> read_model_digests(Disk& disk, const std::string& directory) {
  const std::string path = join(directory, kModelDigestsFile), info = join(directory, kModelInfoFile);
  if (!disk.exists(path)) {
    if (disk.exists(info) && disk.size(info) <= kMaxInfoBytes && names_model_digests(read_text(disk, info)))
      throw model_damaged(directory, std::string(kModelDigestsFile) + " is missing");
    return std::nullopt;
  }
  if (disk.size(path) > kMaxDigestsBytes)
    throw model_damaged(directory, std::string(kModelDigestsFile) + " is larger than 1 MiB");
  auto digests = parse_model_digests(read_text(disk, path));
  if (!digests) throw model_damaged(directory, std::string(kModelDigestsFile) + " " + digests.error());
  return std::move(*digests);
}

void write_model_digests(Disk& disk, const std::string& directory, const ModelDigests& digests) {
  write_durably(disk, join(directory, kModelDigestsFile), model_digests_text(digests));
}

void check_model_file(Disk& disk, const std::string& directory, const std::string& name, const ModelDigests& listed) {
  const std::string path = join(directory, name);
  if (!disk.exists(path)) throw model_damaged(directory, name + " is missing");
  const auto may_go_on = [](std::span<const std::byte>) { CostLimit::check_current(); };
  if (const auto wrong = compare_with_list(listed, name, digest_pieces(disk, path, disk.size(path), may_go_on)))
    throw model_damaged(directory, *wrong);
}

std::expected<Weights, std::string> read_weights(Disk& disk, const std::string& path) {
  const std::string directory = directory_of(path), name = base_name(path);
  if (disk.exists(join(directory, kStateFile))) {  // a checkpoint, with or without its manifest
    auto part = load_file(disk, directory, name);
    if (!part) throw checkpoint_damaged(part.error());
    return Weights{std::move(*part), ""};
  }
  try {
    const auto listed = is_used(name) ? read_model_digests(disk, directory) : std::nullopt;
    if (!listed) {
      auto file = read_safetensors(disk, path);
      if (!file) return std::unexpected(file.error());
      const bool of_model = is_used(name) && disk.exists(join(directory, kModelInfoFile));
      return Weights{std::move(*file), of_model ? unchecked_model(directory) : ""};
    }
    const uint64_t size = disk.size(path);
    TensorSink sink(size, true);
    const FileDigest found =
        digest_pieces(disk, path, size, [&](std::span<const std::byte> piece) { sink.take(piece); });
    if (const auto wrong = compare_with_list(*listed, name, found)) throw model_damaged(directory, *wrong);
    auto file = sink.finish();
    if (!file) return std::unexpected(path + ": " + file.error());
    return Weights{std::move(*file), ""};
  } catch (const DiskError& error) {
    return std::unexpected(error.what());
  }
}

bool check_listed_file(Disk& disk, const std::string& path) {
  const std::string directory = directory_of(path), name = base_name(path);
  if (disk.exists(join(directory, kStateFile))) {
    if (const auto checked = check_file(disk, directory, name); !checked) throw checkpoint_damaged(checked.error());
    return true;
  }
  if (!is_used(name) && name != kModelDigestsFile) return false;
  const auto listed = read_model_digests(disk, directory);
  if (listed && is_used(name)) check_model_file(disk, directory, name, *listed);
  return listed.has_value();
}

}  // namespace sinew::checkpoint
