// `sinew init DATA` reads the data and writes a job file for it.
#include <cstdio>
#include <string>

#include "base/disk.h"
#include "cli/options.h"
#include "data/data.h"

namespace sinew::cli {
int run_init(const Arguments& arguments) {
  std::string data, output = "job.yaml";
  sinew::data::Wanted wanted;
  bool force = false;
  Options options("init", "Looks at a data set and writes a job file that trains on it");
  options
      .argument(
          "DATA", data,
          "a file or folder: IDX (MNIST), CIFAR, images in folders, an image list, csv, tsv, jsonl, npy, npz, text")
      .text("--target", "COLUMN", wanted.target, "of a table: the column to predict")
      .choice("--task", wanted.task, {"auto", "classification", "regression"}, "the kind of target")
      .duration("--time-limit", wanted.time_limit, "of a table: train only as long as a core needs for this time")
      .text("-o, --output", "FILE", output, "where to write")
      .flag("--force", force, "replace the file if it exists")
      .example("sinew init data.csv --target price");
  if (!options.parse(arguments)) return kDone;
  if (!force && system_disk().exists(output))
    throw UsageError("FILE_EXISTS", output + " exists already",
                     "write elsewhere with -o FILE, or replace it with --force");
  const sinew::data::Proposal proposal = sinew::data::propose_job(data, wanted);
  write_output(system_disk(), output, sinew::data::proposal_yaml(proposal));
  std::fputs(sinew::data::proposal_text(proposal).c_str(), stdout);
  std::printf("wrote %s: %s\n", output.c_str(), proposal.job.model.name.c_str());
  if (proposal.trouble) throw *proposal.trouble;
  std::printf("next: sinew train %s\n", output.c_str());
  return kDone;
}

}  // namespace sinew::cli
