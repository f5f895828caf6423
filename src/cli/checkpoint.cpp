// `sinew checkpoint list|verify|show DIR` shows which checkpoints exist, whether they are intact, and what one
// contains.
#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/joined.h"
#include "base/printable.h"
#include "base/size_text.h"
#include "cli/options.h"

namespace sinew::cli {
namespace {

using checkpoint::Damage;
using checkpoint::Summary;

bool has(const std::string& directory, const char* name) {
  return system_disk().exists(directory + "/" + name);
}

// Returns the step directories that `given` names, oldest first.
std::vector<std::string> directories_of(const std::string& given) {
  std::string path = given;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (!system_disk().exists(path)) throw Error("FILE_NOT_FOUND", "there is no " + path, "check the path");
  const std::string name = path.substr(path.rfind('/') + 1);
  if (has(path, "manifest.json") || name.starts_with("step-")) return {path};
  auto found = checkpoint::list(system_disk(), has(path, "checkpoints") ? path + "/checkpoints" : path);
  if (found.empty()) {
    throw Error("CHECKPOINT_NOT_FOUND", "no checkpoints in " + path,
                "DIR is a run directory, its checkpoints/ folder, or one step's directory");
  }
  return found;
}

void print_damage(const Damage& damage) {
  std::printf("%s: DAMAGED: %s %s\n", damage.directory.c_str(), damage.file.c_str(), damage.what.c_str());
}

void print_summary(const Summary& summary, const char* verdict) {
  std::printf("%s: %sstep %lld, %s, written %s, digest %s\n", summary.directory.c_str(), verdict,
              static_cast<long long>(summary.step.value), size_text(static_cast<int64_t>(summary.bytes)).c_str(),
              utc_iso(summary.wall_seconds).c_str(), to_hex(summary.digest).c_str());
}

int list_or_verify(const std::string& given, bool read_all) {
  const auto directories = directories_of(given);
  size_t damaged = 0;
  for (const std::string& directory : directories) {
    const auto summary =
        read_all ? checkpoint::verify(system_disk(), directory, true) : checkpoint::describe(system_disk(), directory);
    if (summary) {
      print_summary(*summary, read_all ? "intact, " : "");
    } else {
      ++damaged;
      print_damage(summary.error());
    }
  }
  if (read_all) std::printf("%zu of %zu intact\n", directories.size() - damaged, directories.size());
  return damaged == 0 ? kDone : kCheckFailed;
}

void print_part(const std::string& part, const checkpoint::TensorFile& file) {
  uint64_t bytes = 0;
  for (const auto& [name, array] : file.tensors) bytes += array.bytes.size();
  std::printf("\n%s: %zu tensors, %s\n", part.c_str(), file.tensors.size(), size_text(bytes).c_str());
  for (const auto& [name, array] : file.tensors) {
    std::printf("  %-48s %-5s [%s]\n", printable(name).c_str(), std::string(name_of(array.dtype)).c_str(),
                joined_numbers(array.shape, ", ").c_str());
  }
}

int show(const std::string& given) {
  auto directories = directories_of(given);
  std::reverse(directories.begin(), directories.end());
  for (const std::string& directory : directories) {
    const auto loaded = checkpoint::load(system_disk(), directory);
    if (!loaded) {
      print_damage(loaded.error());
      continue;
    }
    std::printf("%s: step %lld, intact, digest %s\n", directory.c_str(), static_cast<long long>(loaded->step.value),
                to_hex(loaded->digest).c_str());
    for (const auto& [part, file] : loaded->parts) print_part(part, file);
    std::printf("\nstate.json: %s\n", size_text(loaded->state_json.size()).c_str());
    return directory == directories.front() ? kDone : kCheckFailed;
  }
  return kCheckFailed;
}

}  // namespace

int run_checkpoint(const Arguments& arguments) {
  Options options("checkpoint", "Lists, verifies or shows checkpoints");
  options.about("DIR is a run directory, its checkpoints/ folder, or the directory of one step.")
      .verb("list", "DIR", "steps, sizes and digests, by the manifests; reads no data",
            [](const auto& words) { return list_or_verify(words[0], false); })
      .verb("verify", "DIR", "reads every byte from the device, checks it and the state's digest; names the damage",
            [](const auto& words) { return list_or_verify(words[0], true); })
      .verb("show", "DIR", "the contents of one checkpoint, checked; of several, the newest intact one",
            [](const auto& words) { return show(words[0]); })
      .notes("Exit codes: 0 all intact; 1 there are none, or DIR cannot be read; 2 usage; 4 at least one is damaged.")
      .example("sinew checkpoint verify runs/cifar/20251121T040000Z-ab12");
  return options.parse(arguments) ? options.run_verb() : kDone;
}

}  // namespace sinew::cli
