// Makes the output of `sinew runs list`.
#include <filesystem>

#include "base/error.h"
#include "report/report.h"
#include "rundir/rundir.h"

namespace sinew::report {

std::string list_of_runs(const ListRequest& request, int columns) {
  const std::string root = request.deleted ? rundir::deleted_root(request.root) : request.root;
  if (!std::filesystem::is_directory(request.root))
    throw Error("RUN_NOT_FOUND", "no directory " + request.root,
                "say where the runs are with --root, or start one with 'sinew train'");
  const std::vector<RunSummary> all = find_runs(root);
  const std::vector<RunSummary> runs = select_runs(all, request.query);
  if (request.format == "json") return runs_json(runs);
  if (request.format == "csv") return runs_csv(runs, request.columns);
  if (all.empty()) return "no runs under " + root + "\n";
  if (runs.empty())
    return "none of " + std::to_string(all.size()) + " runs under " + root + " fulfils the conditions\n";
  return runs_table_of(runs, request.columns, columns);
}

}  // namespace sinew::report
