// Draws a run into picture files.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "base/disk.h"
#include "base/error.h"
#include "base/printable.h"
#include "report/curves.h"

namespace sinew::report {
namespace {

constexpr size_t kMostInOnePicture = 24;

// Returns a name for a file, of letters and digits that every file system has.
std::string file_name(const std::string& text) {
  constexpr size_t kMost = 100;
  std::string name;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    if (name.size() < kMost) name += plain ? c : '_';
  }
  if (name.empty() || name[0] == '.') name.insert(0, "_");
  return name;
}

std::string title_of_run(const RunSummary& run) {
  return run.job + "  " + run.id + ":  " + run.status + ", step " + std::to_string(run.steps);
}

void write_each(const std::string& directory, const std::vector<NamedChart>& charts, Disk& disk, PlotResult& result) {
  disk.make_directories(directory);
  std::set<std::string> used;
  for (const NamedChart& one : charts) {
    const std::string name = file_name(one.name);
    std::string free = name;
    for (int again = 2; !used.insert(free).second; ++again) free = name + "-" + std::to_string(again);
    for (const char* ending : {".png", ".svg"}) {
      const std::string path = (std::filesystem::path(directory) / (free + ending)).string();
      write_output(disk, path, picture_text(plot::draw(one.chart), path.ends_with(".svg")));
      result.files.push_back(path);
    }
  }
}

void write_one(const std::string& path, const std::string& title, std::vector<NamedChart> named, Disk& disk,
               PlotResult& result) {
  if (named.size() > kMostInOnePicture) {
    result.notes.push_back(std::to_string(named.size() - kMostInOnePicture) +
                           " more charts do not fit into one picture: choose with --metric, or name a directory");
    named.resize(kMostInOnePicture);
  }
  std::vector<plot::Chart> charts;
  for (NamedChart& one : named) charts.push_back(std::move(one.chart));
  write_output(disk, path, picture_text(plot::draw_all(title, charts), path.ends_with(".svg")));
  result.files.push_back(path);
}

}  // namespace

std::string picture_text(const plot::Picture& picture, bool vector) {
  return vector ? "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + plot::svg(picture) : plot::png(picture);
}

PlotResult plot_run(const RunSummary& run, const PlotRequest& request, Disk& disk) {
  std::string output = request.output.empty() ? file_name(run.job) + "-" + file_name(run.id) + ".png" : request.output;
  std::error_code ignored;
  const bool each = output.ends_with('/') || std::filesystem::is_directory(output, ignored);
  if (!each && !output.ends_with(".png") && !output.ends_with(".svg"))
    throw UsageError("PLOT_WRONG_ENDING", "'" + output + "' ends neither in .png nor in .svg",
                     "choose one of these endings; or name a directory, with a / at its end if it does not exist");
  PlotResult result;
  auto [charts, trouble] = metric_charts(run, request.metrics);
  if (!trouble.empty()) result.notes.push_back(trouble);
  if (request.metrics.empty()) {
    const std::vector<EvaluationRecord> evaluations = read_evaluations(run.directory);
    // After the losses and the main metrics come the matrices, then the rest.
    std::vector<NamedChart> more = evaluation_charts(evaluations);
    const std::string folds = rundir::file_in(run.directory, rundir::kTrials);
    if (more.empty() && disk.exists(folds)) {
      result.notes.push_back("the confusion matrices of a cross-validation are those of its folds: sinew runs plot " +
                             shell_quoted(folds + "/00000"));
    } else if (more.empty() && measures_classes(run)) {
      result.notes.push_back(
          "no confusion matrix: the run has not recorded one yet; it does so at its end, and sinew eval " +
          shell_quoted(run.directory) + " --split val does so now");
    }
    const auto place = charts.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(charts.size(), 2));
    charts.insert(place, std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  if (each) {
    write_each(output, charts, disk, result);
  } else {
    write_one(output, title_of_run(run), std::move(charts), disk, result);
  }
  return result;
}

}  // namespace sinew::report
