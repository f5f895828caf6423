// `sinew init DATA` reads the data, writes a job file for it, and computes the first step of that job.
#include <cstdio>
#include <iostream>
#include <string>

#include "base/disk.h"
#include "base/printable.h"
#include "base/terminal.h"
#include "cli/options.h"
#include "cli/programs.h"
#include "data/data.h"

namespace sinew::cli {
namespace {

// Proposes a job. If it is not clear which column to predict, asks for it, provided that a person sits at a terminal.
data::Proposal propose(const std::string& path, data::Wanted wanted) {
  for (int asked = 0;; ++asked) {
    try {
      return data::propose_job(path, wanted);
    } catch (const Error& error) {
      const bool unclear = error.code == ErrorCode("DATA_TARGET_UNCLEAR") ||
                           (asked > 0 && error.code == ErrorCode("DATA_UNKNOWN_COLUMN"));
      if (!unclear || !a_person_types()) throw;
      std::printf("%s\ncolumn to predict: ", printable(error.what()).c_str());
      std::fflush(stdout);
      if (!std::getline(std::cin, wanted.target) || wanted.target.empty()) throw;
    }
  }
}

}  // namespace

int run_init(const Arguments& arguments) {
  std::string path, output = "job.yaml";
  data::Wanted wanted;
  bool force = false;
  Options options("init", "Looks at a data set and writes a job file that trains on it");
  options.about("Computes the first step of the job, too: exit code 0 means that it can be trained.")
      .argument(
          "DATA", path,
          "a file or folder: IDX (MNIST), CIFAR, images in folders, an image list, csv, tsv, jsonl, npy, npz, text")
      .text("--target", "COLUMN", wanted.target, "of a table: the column to predict")
      .choice("--task", wanted.task, {"auto", "classification", "regression"}, "the kind of target")
      .duration("--time-limit", wanted.time_limit, "of a table: train only as long as a core needs for this time")
      .text("-o, --output", "FILE", output, "where to write")
      .flag("--force", force, "replace the file if it exists")
      .example("sinew init data.csv --target price");
  if (!options.parse(arguments)) return kDone;
  if (output == "-")
    options.refuse("sinew init writes a file, because it computes the first step of the job", "-o FILE");
  if (!force && system_disk().exists(output))
    throw UsageError("FILE_EXISTS", output + " exists already",
                     "write elsewhere with -o FILE, or replace it with --force");
  const data::Proposal proposal = propose(path, wanted);
  write_output(system_disk(), output, data::proposal_yaml(proposal));
  std::fputs(data::proposal_text(proposal).c_str(), stdout);
  std::printf("wrote %s: %s\n", output.c_str(), proposal.job.model.name.c_str());
  std::fflush(stdout);
  if (proposal.trouble) throw *proposal.trouble;
  const auto step = supervise::try_first_step(programs(), output);
  if (!step) {
    std::fprintf(stderr, "the first step of %s fails:\n%s\n", output.c_str(), printable(step.error(), true).c_str());
    return kTrainingError;
  }
  if (!step->empty()) std::printf("its first step works: %s\n", printable(*step).c_str());
  std::printf("next: sinew train %s\n", shell_quoted(output).c_str());
  return kDone;
}

}  // namespace sinew::cli
