// `sinew init DATA`: looks at the data and writes a job file for it.
#include <cstdio>
#include <optional>
#include <span>

#include "base/disk.h"
#include "base/error.h"
#include "cli/commands.h"
#include "data/data.h"

namespace sinew::cli {
namespace {

constexpr const char* kHelp =
    "usage: sinew init DATA [-o job.yaml] [--force]\n"
    "\n"
    "Looks at DATA and writes a job file that trains on it.\n"
    "\n"
    "  DATA             a file or folder: IDX (MNIST), CIFAR, images in folders, an image list,\n"
    "                   csv, tsv, jsonl, npy, npz, text\n"
    "  -o, --output F   where to write (job.yaml)\n"
    "  --force          replace the file if there is one";

struct InitOptions {
  std::string data, output = "job.yaml";
  bool force = false, help = false;
};

// What is wrong with the arguments, or nothing.
std::optional<std::string> parse(const Arguments& arguments, InitOptions& options) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "-h" || word == "--help") {
      options.help = true;
    } else if (word == "--force") {
      options.force = true;
    } else if (word == "-o" || word == "--output") {
      if (++i == arguments.size()) return word + " needs a file name";
      options.output = arguments[i];
    } else if (word.starts_with("--output=")) {
      options.output = word.substr(9);
    } else if (word.starts_with('-') && word.size() > 1) {
      return "unknown option " + word;
    } else if (!options.data.empty()) {
      return "one DATA only, got " + options.data + " and " + word;
    } else {
      options.data = word;
    }
  }
  if (!options.help && (options.data.empty() || options.output.empty())) return "DATA is missing";
  return std::nullopt;
}

}  // namespace

int run_init(const Arguments& arguments) {
  InitOptions options;
  if (const auto problem = parse(arguments, options)) {
    std::fprintf(stderr, "sinew init: %s\n  try: sinew init --help\n", problem->c_str());
    return kUsage;
  }
  if (options.help) {
    std::puts(kHelp);
    return kDone;
  }
  if (!options.force && system_disk().exists(options.output)) {
    throw Error(options.output + " is there already", "write elsewhere with -o FILE, or replace it with --force");
  }
  const data::Proposal proposal = data::propose_job(options.data);
  const std::string yaml = data::proposal_yaml(proposal);
  write_durably(system_disk(), options.output, yaml);
  for (const std::string& remark : proposal.remarks) std::printf("%s\n", remark.c_str());
  std::printf("wrote %s: %s\nnext: sinew train %s\n", options.output.c_str(), proposal.job.model.name.c_str(),
              options.output.c_str());
  return kDone;
}

}  // namespace sinew::cli
