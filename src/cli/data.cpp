// `sinew data`: is the data still what it was, and how do two runs' data differ.
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/size_text.h"
#include "cli/commands.h"
#include "cli/data_manifest.h"
#include "cli/registry_place.h"
#include "report/report.h"

namespace sinew::cli {
namespace {

using nlohmann::json;
using registry::DataManifest;

constexpr const char* kHelp =
    "usage: sinew data status JOB|RUN|DIR [options]\n"
    "       sinew data diff A B [options]\n"
    "       sinew data record DIR FILE\n\n"
    "Data by the SHA-256 of its files. Files that did not change since the last time are not read again.\n\n"
    "  status JOB      what JOB reads now, against what the newest run of that job recorded\n"
    "  status RUN      what the run's job reads now, against what that run recorded\n"
    "  status DIR      what is in a folder or file of data now\n"
    "  diff A B        two of: a run, a job file, a manifest (data.json), a folder of data\n"
    "  record DIR FILE writes DIR's manifest to FILE, for a later diff\n\n"
    "options:\n"
    "  --root DIR      directory of the runs (default: runs)\n"
    "  --format FORMAT table (default) or json\n\n"
    "exit codes: 0 nothing changed; 1 error; 2 usage; 4 something did";

struct Wishes {
  std::string root = "runs", format = "table";
  std::vector<std::string> words;
};

Wishes parse(const Arguments& arguments) {
  Wishes wishes;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--root" || word == "--format") {
      if (i + 1 == arguments.size()) throw UsageError(word + " needs a value", "sinew data --help");
      (word == "--root" ? wishes.root : wishes.format) = arguments[++i];
    } else if (word.starts_with("-")) {
      throw UsageError("no option '" + word + "'", "sinew data --help");
    } else {
      wishes.words.push_back(word);
    }
  }
  if (wishes.format != "table" && wishes.format != "json")
    throw UsageError("--format is table or json, not '" + wishes.format + "'", "sinew data --help");
  return wishes;
}

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
  if (!job) throw UsageError(path + " is no job file that can be used", "sinew validate " + path);
  return *job;
}

DataManifest recorded_by(const std::string& run_directory) {
  const std::string path = run_directory + "/data.json";
  if (!is_file(path))
    throw Error(run_directory + " did not record its data", "runs begun with 'sinew train' do, in data.json");
  auto manifest = registry::parse_manifest(read_text(system_disk(), path));
  if (!manifest) throw Error(path + ": " + manifest.error(), "");
  return std::move(*manifest);
}

// The newest run of that job that recorded its data.
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

int say_changes(const DataManifest& before, const DataManifest& after, const Wishes& wishes,
                const std::string& against) {
  const auto changes = registry::compare(before, after);
  if (wishes.format == "json") {
    json out{{"against", against}, {"before", before.digest}, {"after", after.digest}, {"changes", json::array()}};
    for (const auto& change : changes) out["changes"].push_back(to_string(change));
    std::puts(out.dump(1, ' ', false, json::error_handler_t::replace).c_str());
  } else if (changes.empty()) {
    std::printf("the same as %s: %s\n", printable(against).c_str(), printable(after.digest).c_str());
  } else {
    std::printf("changed since %s:\n", printable(against).c_str());
    for (const auto& change : changes) std::printf("  %s\n", printable(to_string(change)).c_str());
  }
  return changes.empty() ? kDone : kCheckFailed;
}

int say_manifest(const DataManifest& manifest, const Wishes& wishes, const std::string& remark) {
  if (wishes.format == "json") {
    std::fputs(to_json(manifest).c_str(), stdout);
  } else {
    print_parts(manifest);
    if (!remark.empty()) std::printf("(%s)\n", printable(remark).c_str());
  }
  return kDone;
}

report::RunSummary run_meant(const Wishes& wishes, const std::string& name) {
  if (name.ends_with(".yaml") || name.ends_with(".yml"))
    throw UsageError("there is no " + name, "check the path; a job file, a run or a folder of data is wanted");
  return report::pick_run(wishes.root, name);
}

int status(const Wishes& wishes) {
  const std::string& name = wishes.words[1];
  if (is_job(name)) {
    const spec::Job job = job_of(name);
    const DataManifest now = data_manifest_of(job, wishes.root);
    const auto run = newest_run_of(wishes.root, job.name);
    if (!run) return say_manifest(now, wishes, "no run of " + job.name + " recorded its data yet");
    return say_changes(recorded_by(*run), now, wishes, *run);
  }
  if (is_folder_of_data(name)) return say_manifest(data_manifest_of_path(name, wishes.root), wishes, "");
  const report::RunSummary run = run_meant(wishes, name);
  return say_changes(recorded_by(run.directory),
                     data_manifest_of(job_of(run.directory + "/resolved.yaml"), wishes.root), wishes, run.directory);
}

DataManifest manifest_meant(const std::string& name, const Wishes& wishes) {
  if (is_job(name)) return data_manifest_of(job_of(name), wishes.root);
  if (is_file(name) && name.ends_with(".json")) {
    if (auto manifest = registry::parse_manifest(read_text(system_disk(), name))) return std::move(*manifest);
  }
  if (is_folder_of_data(name)) return data_manifest_of_path(name, wishes.root);
  return recorded_by(run_meant(wishes, name).directory);
}

}  // namespace

int run_data(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kHelp)) return kDone;
  const Wishes wishes = parse(arguments);
  const std::string verb = wishes.words.empty() ? "" : wishes.words[0];
  if (verb == "status" && wishes.words.size() == 2) return status(wishes);
  if (verb == "diff" && wishes.words.size() == 3) {
    return say_changes(manifest_meant(wishes.words[1], wishes), manifest_meant(wishes.words[2], wishes), wishes,
                       wishes.words[1]);
  }
  if (verb == "record" && wishes.words.size() == 3) {
    write_durably(system_disk(), wishes.words[2], to_json(data_manifest_of_path(wishes.words[1], wishes.root)));
    return kDone;
  }
  throw UsageError("data takes status JOB, diff A B, or record DIR FILE", "sinew data --help");
}

}  // namespace sinew::cli
