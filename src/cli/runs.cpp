// Implements `sinew runs`: shows run directories, and deletes and restores them. It never disturbs a run that trains.
#include <unistd.h>

#include <cstdio>

#include "base/disk.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/terminal.h"
#include "cli/options.h"
#include "report/report.h"
#include "rundir/rundir.h"

namespace sinew::cli {
namespace {

struct Given {
  report::ListRequest list;
  report::PlotRequest plot;
  std::string& root = list.root;
  bool json() const { return list.format == "json"; }
};

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

int list(const Given& given) {
  print(report::list_of_runs(given.list, terminal_of(STDOUT_FILENO).columns));
  return kDone;
}

int show(const Given& given, const std::string& name) {
  const report::RunSummary run = report::pick_run(given.root, name);
  given.json() ? print(report::run_json(run)) : print_text(stdout, report::run_details(run));
  return kDone;
}

int compare(const Given& given, const std::vector<std::string>& names) {
  std::vector<report::RunSummary> runs;
  for (const std::string& name : names) runs.push_back(report::pick_run(given.root, name));
  print(given.json() ? report::compare_json(runs) : report::compare_table(runs, terminal_of(STDOUT_FILENO).columns));
  return kDone;
}

int plot(const Given& given, const std::string& name) {
  const auto drawn = report::plot_run(report::pick_run(given.root, name), given.plot, system_disk());
  for (const std::string& file : drawn.files) print(printable(file) + "\n");
  for (const std::string& note : drawn.notes) std::fprintf(stderr, "note: %s\n", printable(note).c_str());
  return kDone;
}

int remove(const Given& given, const std::string& name) {
  const std::string directory = rundir::find_run(given.root, name);
  const std::string there = rundir::delete_run(given.root, directory);
  const std::string where = given.root == "runs" ? "" : " --root " + shell_quoted(given.root);
  print(printable(directory + " is deleted; to get it back: sinew runs restore " + shell_quoted(there) + where) + "\n");
  return kDone;
}

int restore(const Given& given, const std::string& name) {
  print(printable(rundir::restore_run(given.root, name)) + " is back\n");
  return kDone;
}

int collect_garbage(const Given& given, const std::vector<std::string>& names) {
  const auto all = names.empty() ? rundir::run_directories(rundir::deleted_root(given.root)) : names;
  for (const std::string& name : all) rundir::remove_deleted_run(given.root, name);
  print(std::to_string(all.size()) + (all.size() == 1 ? " run" : " runs") + " removed for good\n");
  return kDone;
}

}  // namespace

int run_runs(const Arguments& arguments) {
  Given given;
  Options options("runs", "Runs and how they went");
  options
      .about(
          "RUN is a run directory, the end of a run's id, or last.\n\n"
          "A KEY of --where, --sort and --columns is a metric (val/loss: its best value; last:val/loss: its last), an "
          "option of the job (optimizer.lr), run, job, status, started, took, steps, samples, objective_met, digest or "
          "directory.")
      .verb("list", "", "all runs, newest first", [&](const auto&) { return list(given); })
      .verb("show", "RUN", "one run", [&](const auto& names) { return show(given, names[0]); })
      .verb("compare", "RUN RUN ...", "options that differ, and metrics side by side",
            [&](const auto& names) { return compare(given, names); })
      .verb("plot", "RUN", "curves and confusion matrix as a picture",
            [&](const auto& names) { return plot(given, names[0]); })
      .verb("delete", "RUN", "move a run to the deleted ones",
            [&](const auto& names) { return remove(given, names[0]); })
      .verb("restore", "RUN", "move a deleted run back", [&](const auto& names) { return restore(given, names[0]); })
      .verb("gc", "[RUN]", "remove deleted runs for good, all or one",
            [&](const auto& names) { return collect_garbage(given, names); })
      .default_verb("list")
      .text("--root", "DIR", given.root, "directory of the runs")
      .choice("--format", given.list.format, {"table", "json", "csv"}, "of the output; csv: of list")
      .list("--where", "KEY<VALUE", given.list.query.where,
            "list: runs for which this holds, with = != < <= > or >=; several times")
      .text("--sort", "KEY", given.list.query.sort, "list: the best value of a metric first, other keys ascending")
      .flag("--reverse", given.list.query.reverse, "list: the other way round")
      .text("--columns", "KEY,KEY", given.list.columns, "list: these columns")
      .integer("--limit", "N", given.list.query.limit, 0, 1'000'000'000, "list: at most so many runs; 0: all")
      .flag("--deleted", given.list.deleted, "list: the deleted runs")
      .text("-o, --output", "FILE", given.plot.output,
            "plot: a file that ends in .png or .svg, or a directory for one picture of each chart; default JOB-ID.png")
      .list("--metric", "NAME", given.plot.metrics,
            "plot: only this metric: val/loss, or loss for all splits; several times")
      .example("sinew runs plot last --output curves.svg")
      .example("sinew runs --where 'val/loss<0.3' --sort val/loss --columns run,optimizer.lr,val/loss");
  return options.parse(arguments) ? options.run_verb() : kDone;
}

}  // namespace sinew::cli
