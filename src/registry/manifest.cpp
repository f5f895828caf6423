// Makes, writes and parses the manifest of the data that a job reads.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file_pattern.h"
#include "base/sha256.h"
#include "registry/file_digests.h"
#include "registry/registry.h"
#include "registry/run_files.h"

namespace sinew::registry {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kMaxListed = 20'000;  // for a split with more files, data.json has only count, size and digest

[[noreturn]] void fail_to_list(const std::string& path, const std::string& why) {
  throw Error("DATA_FILE_UNREADABLE", "cannot list " + path + ": " + why, kPathsHint);
}

// Lists the files below a path with their names in the split. Follows links, except for a link to a folder that
// contains the link: following it would never end, and the files of that folder are listed anyway.
class Listing {
 public:
  std::vector<DataFile> files;

  void take(const std::string& name, const std::string& path) {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) {
      if (errno == ENOENT || errno == ELOOP) return;  // a broken link
      fail_to_list(path, std::strerror(errno));
    }
    if (S_ISREG(facts.st_mode)) files.push_back({name, path, 0, ""});
    if (!S_ISDIR(facts.st_mode)) return;
    const std::pair<dev_t, ino_t> here{facts.st_dev, facts.st_ino};
    if (std::find(way_.begin(), way_.end(), here) != way_.end()) return;
    if (way_.size() == kMaxDepth) fail_to_list(path, "more than " + std::to_string(kMaxDepth) + " nested folders");
    way_.push_back(here);
    std::error_code code;
    fs::directory_iterator it(path, code);
    for (const fs::directory_iterator end; !code && it != end; it.increment(code)) {
      const std::string entry = it->path().filename().string();
      if (!entry.starts_with(".")) take(name + "/" + entry, it->path().string());
    }
    if (code) fail_to_list(path, code.message());
    way_.pop_back();
  }

 private:
  static constexpr size_t kMaxDepth = 64;
  std::vector<std::pair<dev_t, ino_t>> way_;  // the folders from the top down to the current one
};

std::vector<DataFile> files_of(const SplitSource& source) {
  Listing listing;
  for (const auto& [name, path] : source.paths) {
    std::error_code ignored;
    if (is_file_pattern(path)) {
      for (const std::string& file : files_of_pattern(path))
        listing.take(name + "/" + fs::path(file).filename().string(), file);
      continue;
    }
    if (!fs::is_directory(path, ignored)) stamp_of(path);  // throws if a path that the job names does not exist
    listing.take(name, path);
  }
  std::vector<DataFile> files = std::move(listing.files);
  std::sort(files.begin(), files.end(), [](const DataFile& a, const DataFile& b) { return a.name < b.name; });
  return files;
}

// Hashes the length before the text. So different lists never give the same bytes.
void add(Sha256& hash, std::string_view text) {
  hash.update(std::to_string(text.size()) + ":");
  hash.update(text);
}

DataSplit make_split(std::vector<DataFile> files, const std::string& view) {
  DataSplit split;
  split.view = view;
  Sha256 hash;
  for (const DataFile& file : files) {
    add(hash, file.name);
    add(hash, file.digest);
    split.bytes += file.bytes;
  }
  if (!view.empty()) add(hash, "view"), add(hash, view);
  split.count = static_cast<int64_t>(files.size());
  split.digest = hash.hex();
  split.files = std::move(files);
  return split;
}

std::string fraction_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  double back = 0;
  for (int digits = 1; digits < 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (std::sscanf(text, "%lf", &back) == 1 && back == value) break;
  }
  return text;
}

// Describes the options that decide how samples are made from the data (DataSplit::view). Leaves out default values.
// Metrics that were measured with different options cannot be compared.
std::string view_of(const spec::DataOptions& data) {
  const spec::TextOptions usual;
  std::string view;
  const auto say = [&](const std::string& what) { view += (view.empty() ? "" : ", ") + what; };
  if (!data.columns.target.empty()) say("target " + data.columns.target);
  if (data.text.tokens != usual.tokens) say("tokens " + data.text.tokens);
  if (data.text.window != usual.window) say("window " + std::to_string(data.text.window));
  if (data.on_corrupt == "skip") say("corrupt ones left out");
  return view;
}

// How the samples of a split are chosen.
std::string split_text(const spec::DataOptions& data) {
  if (!data.split_group.empty()) return ", by groups of " + data.split_group;
  if (!data.split_by.empty()) return ", by " + data.split_by;
  return data.stratify ? ", stratified" : "";
}

std::string fold_text(const spec::DataOptions& data) {
  return data.fold ? "fold " + std::to_string(*data.fold) + " of " + std::to_string(data.folds)
                   : "each of " + std::to_string(data.folds) + " folds in turn";
}

// Returns the source of a split. `taken` says which part of train it takes, "" for none. `before` is the fraction that
// another split takes first.
SplitSource source_of(const spec::DataSource& source, const std::string& taken, double before, const spec::Job& job) {
  SplitSource split;
  split.view = view_of(job.data);
  const std::pair<const char*, const std::string&> paths[] = {
      {"path", source.path}, {"images", source.images}, {"labels", source.labels}};
  for (const auto& [name, path] : paths) {
    if (!path.empty()) split.paths[name] = path;
  }
  if (split.paths.empty())
    split.from_train = taken.empty()
                           ? "as train has it"
                           : taken + " of train" + (before > 0 ? " after " + fraction_text(before) + " for test" : "") +
                                 ", seed " + std::to_string(job.trainer.seed) + split_text(job.data);
  return split;
}

}  // namespace

DataManifest make_manifest(const std::map<std::string, SplitSource>& splits, const ManifestOptions& options) {
  FileDigests digests(options.cache, *options.clock);
  std::map<std::string, std::vector<DataFile>> files;
  int64_t unread = 0;
  for (const auto& [name, source] : splits) {
    if (source.paths.empty()) continue;
    files[name] = files_of(source);
    for (const DataFile& file : files[name]) {
      const FileStamp facts = stamp_of(file.path);
      if (!digests.knows(file.path, facts)) unread += facts.bytes;
    }
  }
  if (unread > 0 && options.before_reading) options.before_reading(unread);
  DataManifest manifest;
  for (auto& [name, list] : files) {
    for (DataFile& file : list) {
      const FileStamp facts = stamp_of(file.path);
      file.bytes = facts.bytes;
      file.digest = digests.digest(file.path, facts);
    }
    manifest.splits[name] = make_split(std::move(list), splits.at(name).view);
  }
  digests.save();
  for (const auto& [name, source] : splits) {
    if (!source.paths.empty()) continue;
    Sha256 hash;
    for (const std::string& text : {name, source.from_train, manifest.splits["train"].digest}) add(hash, text);
    manifest.splits[name].from_train = source.from_train;
    manifest.splits[name].view = source.view;
    manifest.splits[name].digest = hash.hex();
  }
  Sha256 all;
  for (const auto& [name, split] : manifest.splits) add(all, name), add(all, split.digest);
  manifest.digest = all.hex();
  return manifest;
}

DataManifest manifest_of_job(const spec::Job& job, const ManifestOptions& options) {
  const spec::DataOptions& data = job.data;
  const double before_val = data.test.given() ? 0 : data.split_test;
  const auto share_text = [](double share) { return share > 0 ? fraction_text(share) : ""; };
  const std::string val = data.folds > 0 ? fold_text(data) : share_text(data.split_val);
  return make_manifest({{"train", source_of(data.train, "", 0, job)},
                        {"val", source_of(data.val, val, before_val, job)},
                        {"test", source_of(data.test, share_text(data.split_test), 0, job)}},
                       options);
}

DataManifest manifest_of_path(const std::string& path, const ManifestOptions& options) {
  return make_manifest({{"train", {{{"path", path}}, ""}}}, options);
}

std::string to_json(const DataManifest& manifest) {
  json splits = json::object();
  for (const auto& [name, split] : manifest.splits) {
    json& out = splits[name] = {{"digest", split.digest}};
    if (!split.from_train.empty()) out["cut"] = split.from_train;
    if (!split.view.empty()) out["view"] = split.view;
    if (split.from_train.empty()) out["count"] = split.count, out["bytes"] = split.bytes;
    if (split.from_train.empty() && split.files.size() <= kMaxListed) {
      json& files = out["files"] = json::array();
      for (const DataFile& file : split.files)
        files.push_back({clean_text(file.name, 4000), clean_text(file.path, 4000), file.bytes, file.digest});
    }
  }
  return json{{"format", "sinew-data"}, {"version", 1}, {"digest", manifest.digest}, {"parts", splits}}.dump(1) + "\n";
}

std::expected<DataManifest, std::string> parse_manifest(std::string_view text) {
  const json document = json::parse(
      text, [](int depth, json::parse_event_t, json&) { return depth < 8; }, false);
  if (!document.is_object()) return std::unexpected("not a JSON object");
  try {
    if (document.at("format") != "sinew-data" || document.at("version") != 1)
      return std::unexpected("not a data manifest of version 1");
    DataManifest manifest;
    manifest.digest = document.at("digest").get<std::string>();
    for (const auto& [name, facts] : document.at("parts").items()) {
      DataSplit& split = manifest.splits[name];
      split.digest = facts.at("digest").get<std::string>();
      split.from_train = facts.value("cut", "");
      split.view = facts.value("view", "");
      split.count = facts.value("count", int64_t{0});
      split.bytes = facts.value("bytes", int64_t{0});
      for (const json& file : facts.value("files", json::array())) {
        DataFile& listed = split.files.emplace_back();
        listed.name = file.at(0).get<std::string>();
        listed.path = file.at(1).get<std::string>();
        listed.bytes = file.at(2).get<int64_t>();
        listed.digest = file.at(3).get<std::string>();
      }
    }
    return manifest;
  } catch (const json::exception&) {
    return std::unexpected("a field is missing or has the wrong type");
  }
}

}  // namespace sinew::registry
