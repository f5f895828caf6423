#include "cli/data_pack.h"

#include <unistd.h>

#include <cstdio>

#include "base/printable.h"
#include "base/proc.h"
#include "base/size_text.h"
#include "base/terminal.h"
#include "cli/commands.h"
#include "data/data.h"

namespace sinew::cli {
namespace {

constexpr int64_t kSmallestShard = 1 << 20;

// The lines of a job file that read the packed data: the data options of the job that the tars do not replace.
std::string lines_of_job(const data::PackResult& result, const std::string& folder, spec::Job job) {
  spec::DataOptions& data = job.data;
  data.format = "webdataset";
  data.train = data.val = data.test = {};
  for (const auto& split : result.splits)
    (split.name == "train" ? data.train : split.name == "val" ? data.val : data.test).path = folder;
  data.split_val = data.split_test = 0;
  data.stratify = true;
  data.task = result.info.task == data::Task::regression ? "regression" : data.task;
  const std::string section = "data.";
  std::string text = "data:\n", open;
  for (const auto& [key, value] : spec::changed_options(job)) {
    if (!key.starts_with(section)) continue;
    const std::string name = key.substr(section.size());
    const size_t point = name.find('.');
    const std::string group = name.substr(0, point == std::string::npos ? 0 : point);
    if (!group.empty() && group != open) text += "  " + group + ":\n";
    open = group;
    text += (group.empty() ? "  " : "    ") + name.substr(group.empty() ? 0 : point + 1) + ": " + value + "\n";
  }
  return text;
}

}  // namespace

int pack_data(const std::string& job_file, const std::string& folder, const PackOptions& given) {
  const auto shard = spec::parse_bytes(given.shard_size);
  if (!shard || *shard < kSmallestShard)
    throw UsageError("OPTION_INVALID", "--shard-size " + given.shard_size + " is no size of at least 1MiB",
                     "for example --shard-size 256MB");
  const auto job = load_training(job_file, {}, "sinew data pack");
  if (!job) return kUsage;
  data::PackRequest request{folder, *shard, given.decode, usable_cores(), {}};
  if (terminal_of(STDERR_FILENO).moves_cursor) {
    request.progress = [](int64_t done, int64_t all) {
      if (done % 1000 == 0 || done == all)
        std::fprintf(stderr, "\r%lld of %lld images%s", static_cast<long long>(done), static_cast<long long>(all),
                     done == all ? "\n" : "");
    };
  }
  const data::PackResult result = data::pack_images(job->data, job->trainer.seed, request);
  for (const auto& split : result.splits)
    std::printf("%-6s %lld images in %lld %s, %s\n", split.name.c_str(), static_cast<long long>(split.samples),
                static_cast<long long>(split.shards), split.shards == 1 ? "tar" : "tars",
                size_text(split.bytes).c_str());
  for (const std::string& note : result.info.notes) std::printf("note: %s\n", printable(note).c_str());
  if (result.left_encoded > 0)
    std::printf("note: images that do not decode: %lld; they are packed as they are, and a training skips them\n",
                static_cast<long long>(result.left_encoded));
  if (result.rounded)
    std::printf(
        "note: pixels that were scaled are rounded to 1/255, so a training gives slightly other numbers than "
        "with the images themselves\n");
  std::printf("The job reads it with these lines; data.split is no longer needed:\n%s",
              printable(lines_of_job(result, folder, *job), true).c_str());
  return kDone;
}

}  // namespace sinew::cli
