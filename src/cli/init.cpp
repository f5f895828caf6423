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
      print_text(stdout, printable(error.what()) + "\ncolumn to predict: ");
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
      .argument("DATA", path,
                "a file or folder: IDX (MNIST), CIFAR, images or texts in folders, an image list, csv, tsv, jsonl, "
                "parquet, npy, npz, text")
      .optional_argument("TEST", wanted.test, "test data of the same form; by default a part of DATA")
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
  print_text(stdout, data::proposal_text(proposal) + "wrote " + output + ": " + proposal.job.model.name + "\n");
  std::fflush(stdout);
  if (proposal.trouble) throw *proposal.trouble;
  const auto step = supervise::try_first_step(programs(), output);
  if (!step) {
    print_text(stderr, "the first step of " + output + " fails:\n" + printable(step.error(), true) + "\n");
    return kTrainingError;
  }
  if (!step->empty()) print_text(stdout, "its first step works: " + printable(*step) + "\n");
  print_text(stdout, "next: sinew train " + shell_quoted(output) + "\n");
  return kDone;
}

}  // namespace sinew::cli
