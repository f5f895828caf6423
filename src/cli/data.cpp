// `sinew data` shows whether data has changed since a run read it, and how the data of two runs differs. It packs data.
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/printable.h"
#include "base/size_text.h"
#include "cli/data_manifest.h"
#include "cli/data_pack.h"
#include "cli/options.h"
#include "cli/registry_place.h"
#include "report/report.h"

namespace sinew::cli {
namespace {

using nlohmann::json;
using registry::DataManifest;

struct Given {
  std::string root = "runs", format = "table";
  PackOptions pack;
};

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

bool is_job(const std::string& name) {
  return is_file(name) && (name.ends_with(".yaml") || name.ends_with(".yml"));
}

bool is_folder_of_data(const std::string& name) {
  std::error_code ignored;
  return std::filesystem::exists(name, ignored) && !is_file(name + "/resolved.yaml");
}

spec::Job job_of(const std::string& path) {
  const auto job = load_job(path, {});
  if (!job) throw UsageError("JOB_UNREADABLE", path + " is not a usable job file", "sinew validate " + path);
  return *job;
}

DataManifest recorded_by(const std::string& run_directory) {
  const std::string path = run_directory + "/data.json";
  if (!is_file(path))
    throw Error("DATA_NOT_RECORDED", run_directory + " has no record of its data",
                "runs that 'sinew train' starts have one: data.json");
  auto manifest = registry::parse_manifest(read_text(system_disk(), path));
  if (!manifest)
    throw Error("DATA_MANIFEST_INVALID", path + ": " + manifest.error(), "restore the file from a copy of the run");
  return std::move(*manifest);
}

// Returns the newest run of that job that has a data.json.
std::optional<std::string> newest_run_of(const std::string& root, const std::string& job) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(root, ignored)) return std::nullopt;
  for (const report::RunSummary& run : report::find_runs(root)) {
    if (run.job == job && is_file(run.directory + "/data.json")) return run.directory;
  }
  return std::nullopt;
}

void print_parts(const DataManifest& manifest) {
  for (const auto& [name, split] : manifest.splits) {
    const std::string what =
        split.from_train.empty() ? std::to_string(split.count) + " files, " + size_text(split.bytes) : split.from_train;
    std::printf("%-6s %s  %s\n", printable(name).c_str(), printable(split.digest).c_str(), printable(what).c_str());
  }
}

int say_changes(const DataManifest& before, const DataManifest& after, const Given& given, const std::string& against) {
  const auto changes = registry::compare(before, after);
  if (given.format == "json") {
    json out{{"against", against}, {"before", before.digest}, {"after", after.digest}, {"changes", json::array()}};
    for (const auto& change : changes) out["changes"].push_back(to_string(change));
    std::puts(dump_json(out, 1).c_str());
  } else if (changes.empty()) {
    std::printf("the same as %s: %s\n", printable(against).c_str(), printable(after.digest).c_str());
  } else {
    std::printf("changed since %s:\n", printable(against).c_str());
    for (const auto& change : changes) std::printf("  %s\n", printable(to_string(change)).c_str());
  }
  return changes.empty() ? kDone : kCheckFailed;
}

int say_manifest(const DataManifest& manifest, const Given& given, const std::string& remark) {
  if (given.format == "json") {
    std::fputs(to_json(manifest).c_str(), stdout);
  } else {
    print_parts(manifest);
    if (!remark.empty()) std::printf("(%s)\n", printable(remark).c_str());
  }
  return kDone;
}

report::RunSummary run_named(const Given& given, const std::string& name) {
  if (name.ends_with(".yaml") || name.ends_with(".yml"))
    throw UsageError("FILE_NOT_FOUND", "there is no " + name, "give a job file, a run or a folder of data");
  return report::pick_run(given.root, name);
}

int status(const Given& given, const std::string& name) {
  if (is_job(name)) {
    const spec::Job job = job_of(name);
    const DataManifest now = data_manifest_of(job, given.root);
    const auto run = newest_run_of(given.root, job.name);
    if (!run) return say_manifest(now, given, "no run of " + job.name + " has recorded its data yet");
    return say_changes(recorded_by(*run), now, given, *run);
  }
  if (is_folder_of_data(name)) return say_manifest(data_manifest_of_path(name, given.root), given, "");
  const report::RunSummary run = run_named(given, name);
  return say_changes(recorded_by(run.directory), data_manifest_of(job_of(run.directory + "/resolved.yaml"), given.root),
                     given, run.directory);
}

DataManifest manifest_of(const std::string& name, const Given& given) {
  if (is_job(name)) return data_manifest_of(job_of(name), given.root);
  if (is_file(name) && name.ends_with(".json")) {
    if (auto manifest = registry::parse_manifest(read_text(system_disk(), name))) return std::move(*manifest);
  }
  if (is_folder_of_data(name)) return data_manifest_of_path(name, given.root);
  return recorded_by(run_named(given, name).directory);
}

}  // namespace

int run_data(const Arguments& arguments) {
  Given given;
  Options options("data", "Whether data is still what it was, by the SHA-256 of its files; and packed data");
  options.about("Files that did not change since the last time are not read again.")
      .verb("status", "WHAT",
            "what a job reads now, compared with the record of its newest run; what a run's job reads now, compared "
            "with the record of that run; what a folder or file of data holds now",
            [&](const auto& words) { return status(given, words[0]); })
      .verb("diff", "A B", "two of: a run, a job file, a manifest (data.json), a folder of data",
            [&](const auto& words) {
              return say_changes(manifest_of(words[0], given), manifest_of(words[1], given), given, words[0]);
            })
      .verb("record", "DIR FILE", "writes the manifest of DIR to FILE, for a later diff",
            [&](const auto& words) {
              write_output(system_disk(), words[1], to_json(data_manifest_of_path(words[0], given.root)));
              return kDone;
            })
      .verb("pack", "JOB DIR",
            "copies the images of a job into tars in DIR, which data.format: webdataset reads, and other programs too",
            [&](const auto& words) { return pack_data(words[0], words[1], given.pack); })
      .text("--shard-size", "SIZE", given.pack.shard_size, "pack: the most bytes of a tar")
      .flag("--decode", given.pack.decode, "pack: store pixels of data.image.size, which need no decoding")
      .text("--root", "DIR", given.root, "directory of the runs")
      .choice("--format", given.format, {"table", "json"}, "of the output")
      .notes("Exit codes: 0 nothing changed; 1 error; 2 usage; 4 something changed.")
      .example("sinew data status job.yaml")
      .example("sinew data pack job.yaml packed");
  return options.parse(arguments) ? options.run_verb() : kDone;
}

}  // namespace sinew::cli
