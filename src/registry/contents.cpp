#include "registry/contents.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/hex.h"
#include "base/process.h"
#include "base/sha256.h"

namespace sinew::registry {
namespace {

using nlohmann::json;

constexpr uint64_t kSmallPiece = 16 << 10;  // sharing a smaller tensor saves less than its own file costs

}  // namespace

std::string to_text(const Recipe& recipe) {
  json parts = json::array();
  for (const Stored& part : recipe.parts) parts.push_back({part.digest, part.bytes});
  return json{{"format", "sinew-recipe"}, {"version", 1}, {"bytes", recipe.bytes}, {"parts", std::move(parts)}}.dump() +
         "\n";
}

std::expected<Recipe, std::string> parse_recipe(std::string_view text) {
  const json document = json::parse(
      text, [](int depth, json::parse_event_t, json&) { return depth < 5; }, false);
  if (!document.is_object()) return std::unexpected("not a JSON object");
  try {
    if (document.at("format") != "sinew-recipe" || document.at("version") != 1)
      return std::unexpected("not a recipe of version 1");
    Recipe recipe;
    recipe.bytes = document.at("bytes").get<int64_t>();
    int64_t sum = 0;
    for (const json& part : document.at("parts")) {
      Stored stored{part.at(0).get<std::string>(), part.at(1).get<int64_t>()};
      if (!is_sha256(stored.digest)) return std::unexpected("a part is named by what is no digest");
      if (stored.bytes < 0 || stored.bytes > recipe.bytes - sum) return std::unexpected("parts larger than the whole");
      sum += stored.bytes;
      recipe.parts.push_back(std::move(stored));
    }
    if (sum != recipe.bytes) return std::unexpected("parts smaller than the whole");
    return recipe;
  } catch (const json::exception&) {
    return std::unexpected("fields missing or not of their kind");
  }
}

std::optional<ContentName> parse_content_name(std::string_view name) {
  ContentName parsed;
  if (name.size() < 64 || !is_sha256(name.substr(0, 64))) return std::nullopt;
  parsed.digest = name.substr(0, 64);
  name.remove_prefix(64);
  if (name.starts_with(kRecipe)) {
    parsed.recipe = true;
    name.remove_prefix(kRecipe.size());
  }
  parsed.leaving = name.starts_with(kLeaving);
  if (!name.empty() && !parsed.leaving) return std::nullopt;
  return parsed;
}

std::optional<Contents::Found> Contents::find_named(const std::string& digest) {
  if (const std::string whole = path(digest); disk.exists(whole)) return Found{whole};
  if (std::string made = path(digest) + std::string(kRecipe); disk.exists(made)) return Found{std::move(made), true};
  return std::nullopt;
}

std::optional<Contents::Found> Contents::find(const std::string& digest) {
  if (!is_sha256(digest)) return std::nullopt;
  if (auto found = find_named(digest)) return found;
  if (!disk.exists(folder(digest))) return std::nullopt;
  for (const Disk::Entry& entry : disk.list(folder(digest))) {
    const auto name = parse_content_name(entry.name);
    if (name && name->leaving && name->digest == digest)
      return Found{folder(digest) + "/" + entry.name, name->recipe, true};
  }
  return find_named(digest);  // a collection or a pin may have renamed it back meanwhile
}

Contents::Found Contents::get(const std::string& digest) {
  if (auto found = find(digest)) return *found;
  throw Error(is_sha256(digest) ? "the artifacts in " + root + " do not hold " + digest
                                : "'" + digest.substr(0, 80) + "' is no digest of a content",
              "name a content by the 64 digits of its SHA-256");
}

Recipe Contents::recipe(const std::string& path) {
  auto recipe = parse_recipe(read_text(disk, path));
  if (!recipe) throw Error(path + " is damaged: " + recipe.error(), "restore the artifacts' folder from a copy");
  return std::move(*recipe);
}

void Contents::make_folder(const std::string& digest) {
  const std::string path = folder(digest);
  {
    const std::lock_guard lock(mutex_);
    if (made_.contains(path)) return;
  }
  make_directories_durably(disk, path);
  const std::lock_guard lock(mutex_);
  made_.insert(path);
}

uint64_t Contents::size(const std::string& digest) {
  return with(digest, [&](const Found& found) {
    return found.recipe ? static_cast<uint64_t>(recipe(found.path).bytes) : disk.size(found.path);
  });
}

std::string Contents::unique_name() {
  // Containers that share a directory may have equal host names and process ids, and start in the same second.
  static const std::string process = host_name() + "-" + random_hex(8);
  static std::atomic<uint64_t> count = 0;  // static, because several objects may use one directory
  return std::to_string(static_cast<int64_t>(clock.wall_seconds())) + "-" + process + "-" + std::to_string(::getpid()) +
         "-" + std::to_string(count++);
}

bool Contents::is_old(std::string_view unique_name) const {
  int64_t seconds = 0;
  const auto [rest, code] = std::from_chars(unique_name.data(), unique_name.data() + unique_name.size(), seconds);
  return code == std::errc() && static_cast<double>(seconds) + kHoldSeconds < clock.wall_seconds();
}

std::vector<Contents::Entry> Contents::list() {
  std::vector<Entry> found;
  if (!disk.exists(root)) return found;
  for (const Disk::Entry& folder : disk.list(root)) {
    if (!folder.directory || folder.name.size() != 2) continue;
    for (const Disk::Entry& entry : disk.list(root + "/" + folder.name)) {
      if (auto name = parse_content_name(entry.name))
        found.push_back({root + "/" + folder.name + "/" + entry.name, std::move(*name)});
    }
  }
  return found;
}

std::set<std::string> Contents::held() {
  std::set<std::string> digests;
  const std::string holds = root + "/holds";
  if (!disk.exists(holds)) return digests;
  for (const Disk::Entry& entry : disk.list(holds)) {
    if (is_old(entry.name)) continue;
    std::string text;
    try {
      text = read_text(disk, holds + "/" + entry.name);
    } catch (const DiskError& error) {
      if (error.system_code == ENOENT) continue;  // unpinned meanwhile, so its blobs are attached in the store
      throw;
    }
    for (size_t at = 0; at + 65 <= text.size(); at += 65) digests.insert(text.substr(at, 64));
  }
  return digests;
}

std::vector<uint64_t> cuts_of(const checkpoint::SafetensorsIndex& index, uint64_t file_bytes) {
  std::vector<uint64_t> cuts = {index.data_offset};  // the header contains the step, so versions do not share it
  uint64_t begin = index.data_offset;
  const auto cut = [&](uint64_t at) {
    if (at > begin) cuts.push_back(at);
    begin = std::max(begin, at);
  };
  for (const checkpoint::TensorEntry& tensor : index.tensors) {
    if (tensor.end - tensor.begin < kSmallPiece) continue;
    cut(index.data_offset + tensor.begin);
    cut(index.data_offset + tensor.end);
  }
  cut(file_bytes);
  return cuts;
}

}  // namespace sinew::registry
