// Makes report.html, the page that a run leaves behind.
#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/disk.h"
#include "base/error.h"
#include "base/json_fields.h"
#include "base/number_text.h"
#include "base/printable.h"
#include "report/curves.h"
#include "report/lines.h"
#include "report/run_page_style.h"
#include "report/text_format.h"
#include "rundir/rundir.h"
#include "spec/spec.h"

namespace sinew::report {
namespace {

using plot::escaped;

constexpr size_t kMostWarnings = 20, kMostWarningBytes = 2000, kMostClassRows = 256, kMostPageCharts = 40;

// What log.jsonl says about a run.
struct LogFacts {
  std::string start;                 // the sentence about the model, the data and the batch
  std::deque<std::string> warnings;  // the newest warnings and errors
  int64_t all_warnings = 0;
};

LogFacts read_log(const std::string& directory) {
  LogFacts facts;
  try {
    for_each_line(rundir::file_in(directory, rundir::kLogFile), [&](const Line& line) {
      // Only few lines are parsed: a log may be long.
      const bool info = line.text.find("\"level\":\"info\"") != std::string_view::npos;
      const bool begins = line.text.find("\"event\":\"start\"") != std::string_view::npos ||
                          line.text.find("\"event\":\"attempt-begin\"") != std::string_view::npos;
      if (line.too_long || (info && !begins)) return;
      const auto entry = nlohmann::json::parse(line.text, nullptr, false);
      const std::string event = text_or_empty(entry, "event"), level = text_or_empty(entry, "level");
      const std::string text = text_or_empty(entry, "text");
      if (event == "start" || event == "attempt-begin") facts.start = text;
      if (level != "warning" && level != "error") return;
      ++facts.all_warnings;
      facts.warnings.push_back(printable_start(text, kMostWarningBytes));
      if (facts.warnings.size() > kMostWarnings) facts.warnings.pop_front();
    });
  } catch (const Error&) {  // then the page does without
  }
  return facts;
}

std::string option_in(const RunSummary& run, const std::string& key) {
  const auto found = run.options.find(key);
  return found == run.options.end() || found->second == "null" || found->second == "~" ? "" : found->second;
}

std::string row(const std::string& name, const std::string& value) {
  if (value.empty()) return "";
  return "<tr><th>" + escaped(name) + "</th><td>" + escaped(value) + "</td></tr>\n";
}

// A rounded number; the exact one appears when the mouse is on it.
std::string number_cell(double value) {
  return "<td class=\"number\" title=\"" + escaped(number_text(value)) + "\">" + escaped(rounded_text(value, 6)) +
         "</td>";
}

std::string section(const std::string& title, const std::string& body) {
  return body.empty() ? "" : "<section>\n<h2>" + escaped(title) + "</h2>\n" + body + "</section>\n";
}

std::string head_of(const RunSummary& run, const rundir::Outcome& outcome) {
  std::string text = "<h1>" + escaped(run.job) + "</h1>\n<p class=\"grey\">" + escaped(run.id) +
                     "</p>\n<p><span class=\"state " +
                     (outcome.status == "done" || outcome.status == "failed" ? outcome.status : "paused") + "\">" +
                     escaped(outcome.status) + "</span> " + std::to_string(outcome.steps) + " steps";
  if (outcome.samples > 0) text += ", " + std::to_string(outcome.samples) + " samples";
  if (outcome.epochs > 0) text += ", " + escaped(rounded_text(outcome.epochs, 4)) + " epochs";
  if (outcome.seconds > 0) text += " in " + escaped(short_seconds(outcome.seconds));
  text += "</p>\n";
  if (outcome.objective)
    text += "<p>Objective " + escaped(outcome.objective->text) + ": " + (outcome.objective->met ? "met" : "not met") +
            (outcome.objective->value == outcome.objective->value
                 ? ", the last value is " + escaped(rounded_text(outcome.objective->value, 6))
                 : "") +
            "</p>\n";
  if (!outcome.earlier_status.empty())
    text +=
        "<p>The last attempt failed before it trained. The steps and metrics are those of the attempt before it, which "
        "ended as " +
        escaped(outcome.earlier_status) + ".</p>\n";
  if (!outcome.error.empty())
    text += "<div class=\"error\"><p><b>" + escaped(outcome.error) + "</b></p>" +
            (outcome.hint.empty() ? "" : "<p>" + escaped(outcome.hint) + "</p>") + "</div>\n";
  return text;
}

std::string job_section(const RunSummary& run, const LogFacts& log) {
  std::string data = option_in(run, "data.format");
  for (const char* key : {"data.train.path", "data.path", "data.train.images", "data.train"}) {
    if (const std::string path = option_in(run, key); !path.empty()) data += (data.empty() ? "" : ", ") + path;
  }
  std::string optimizer = option_in(run, "optimizer.name");
  if (const std::string rate = option_in(run, "optimizer.lr"); !rate.empty() && !optimizer.empty())
    optimizer += ", learning rate " + rate;
  std::string text = row("job", log.start);
  text += row("model", option_in(run, "model.name")) + row("data", data) + row("optimizer", optimizer);
  text += row("scheduler", option_in(run, "scheduler.name")) + row("batch size", option_in(run, "trainer.batch_size"));
  text += row("duration", option_in(run, "trainer.max_duration")) + row("seed", option_in(run, "trainer.seed"));
  if (run.started_wall_seconds > 0) text += row("started (UTC)", utc_iso(run.started_wall_seconds));
  text += row("digest of the training state", run.digest);
  return section("What was trained", "<div class=\"wide\"><table>\n" + text + "</table></div>\n");
}

// The validation comes first, then the test; metrics of no split come last.
int place_of_split(const std::string& metric) {
  for (const auto& [split, place] : {std::pair{"val/", 0}, std::pair{"test/", 1}, std::pair{"train/", 2}}) {
    if (metric.starts_with(split)) return place;
  }
  return 3;
}

// A learning rate or a throughput has no best value.
bool has_best(const std::string& metric) {
  return place_of_split(metric) < 3 && metric != "train/learning_rate" && metric != "train/grad_norm";
}

// The metrics of a cross-validation, like folds_table().
std::string folds_section(const RunSummary& run) {
  std::string text =
      "<div class=\"wide\"><table>\n<tr><th>metric</th><th class=\"number\">mean</th>"
      "<th class=\"number\">standard deviation</th>";
  for (const rundir::FoldResult& fold : run.folds)
    text += "<th class=\"number\">fold " + std::to_string(fold.fold) +
            (fold.status == "done" ? "" : " (" + escaped(fold.status) + ")") + "</th>";
  text += "</tr>\n";
  const auto cell = [](const Metrics& values, const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? "<td></td>" : number_cell(found->second);
  };
  for (const std::string& name : metrics_of_folds(run.folds)) {
    text += "<tr><td>" + escaped(name) + "</td>" + cell(run.last, name) + cell(run.last, name + "_std");
    for (const rundir::FoldResult& fold : run.folds) text += cell(fold.metrics, name);
    text += "</tr>\n";
  }
  return section("Metrics of the folds", text + "</table></div>\n");
}

std::string metrics_section(const RunSummary& run) {
  if (!run.folds.empty()) return folds_section(run);
  if (run.last.empty()) return "";
  std::string text =
      "<div class=\"wide\"><table>\n<tr><th>metric</th><th class=\"number\">last</th><th class=\"number\">best</th>"
      "<th class=\"number\">at step</th></tr>\n";
  std::vector<std::pair<std::string, double>> all(run.last.begin(), run.last.end());
  std::ranges::stable_sort(all, {}, [](const auto& one) { return place_of_split(one.first); });
  for (const auto& [name, last] : all) {
    const auto best = run.best.find(name);
    const auto step = run.best_step.find(name);
    text += "<tr><td>" + escaped(name) + "</td>" + number_cell(last);
    if (best == run.best.end() || step == run.best_step.end() || !has_best(name)) {
      text += "<td></td><td></td></tr>\n";
    } else {
      text += number_cell(best->second) + "<td class=\"number\">" + std::to_string(step->second) + "</td></tr>\n";
    }
  }
  return section("Metrics", text + "</table></div>\n");
}

// What the run expected to reach while it trained, and what came.
std::string forecasts_section(const std::optional<rundir::MetricForecasts>& forecasts) {
  if (!forecasts || forecasts->made.empty()) return "";
  std::string text = "<div class=\"wide\"><table>\n<tr><th class=\"number\">at step</th><th>best " +
                     escaped(forecasts->metric) + " until then</th><th>at the end</th></tr>\n";
  for (const rundir::MetricForecast& one : forecasts->made)
    text += "<tr><td class=\"number\">" + std::to_string(one.step) + "</td>" + number_cell(one.best) + "<td>" +
            escaped(short_range(one.low, one.high)) + "</td></tr>\n";
  text += "</table></div>\n<p>About nine of ten such ranges hold what comes.";
  if (forecasts->best)
    text += " The best value was " + escaped(short_number(*forecasts->best)) + " at step " +
            std::to_string(forecasts->best_step) + ".";
  return section("Forecasts", text + "</p>\n");
}

std::string figures(const std::vector<NamedChart>& charts) {
  std::string text;
  for (size_t i = 0; i < std::min(charts.size(), kMostPageCharts); ++i)
    text += "<figure>\n" + plot::svg(plot::draw(charts[i].chart, 640, 400)) + "</figure>\n";
  if (text.empty()) return "";
  text = "<div class=\"charts\">\n" + text + "</div>\n";
  if (charts.size() <= kMostPageCharts) return text;
  return text + "<p>" + std::to_string(charts.size() - kMostPageCharts) + " more charts are not shown here.</p>\n";
}

std::string curves_section(const RunSummary& run) {
  auto [charts, trouble] = metric_charts(run, {});
  std::vector<NamedChart> details;
  const auto rest =
      std::stable_partition(charts.begin(), charts.end(), [](const NamedChart& one) { return !one.detail; });
  details.assign(std::make_move_iterator(rest), std::make_move_iterator(charts.end()));
  charts.erase(rest, charts.end());
  std::string text = figures(charts);
  if (!details.empty()) text += "<details>\n<summary>More curves</summary>\n" + figures(details) + "</details>\n";
  if (!trouble.empty()) text += "<p>" + escaped(trouble) + "</p>\n";
  return section("Curves", text);
}

std::string classes_table(const EvaluationRecord& evaluation) {
  std::string text =
      "<div class=\"wide\"><table>\n<tr><th>class</th><th class=\"number\">precision</th><th "
      "class=\"number\">recall</th>"
      "<th class=\"number\">F1</th><th class=\"number\">samples</th></tr>\n";
  const std::vector<ClassQuality> classes = class_qualities(evaluation.confusion, evaluation.classes);
  for (size_t i = 0; i < std::min(classes.size(), kMostClassRows); ++i) {
    text += "<tr><td>" + escaped(name_of_class(evaluation.class_names, i)) + "</td>" +
            number_cell(classes[i].precision) + number_cell(classes[i].recall) + number_cell(classes[i].f1) +
            "<td class=\"number\">" + std::to_string(classes[i].support) + "</td></tr>\n";
  }
  return text + "</table></div>\n";
}

std::string evaluation_section(const RunSummary& run) {
  const std::vector<EvaluationRecord> evaluations = read_evaluations(run.directory);
  std::string text = figures(evaluation_charts(evaluations));
  for (const EvaluationRecord& evaluation : evaluations) {
    if (evaluation.confusion.empty()) continue;
    text += "<h3>Classes (" + escaped(evaluation.part) + " data, " + std::to_string(evaluation.samples) +
            " samples)</h3>\n" + "<p class=\"grey\">" + escaped(evaluation.weights) +
            (evaluation.step ? ", step " + std::to_string(*evaluation.step) : "") + "</p>\n" +
            classes_table(evaluation);
  }
  if (text.empty() && measures_classes(run))
    text =
        "<p>This run recorded no confusion matrix: it did not evaluate its model in the last attempt. "
        "<code>sinew eval</code> measures one.</p>\n";
  return section("Classes", text);
}

// The command line that trains twice as long.
std::string train_longer(const RunSummary& run, const std::string& directory) {
  const auto duration = spec::parse_duration(option_in(run, "trainer.max_duration"));
  if (!duration) return "";
  spec::Duration twice = *duration;
  twice.amount *= 2;
  return "sinew resume " + directory + " trainer.max_duration=" + to_string(twice);
}

std::string commands_section(const RunSummary& run, const rundir::Outcome& outcome) {
  const std::string directory = shell_quoted(run.directory);
  const bool command = run.options.contains("command.run") || run.options.contains("command");
  std::error_code ignored;
  const bool model = std::filesystem::exists(
      rundir::file_in(rundir::file_in(run.directory, rundir::kModel), "model.safetensors"), ignored);
  std::string text;
  const auto add = [&](const std::string& what, const std::string& line) {
    if (!line.empty()) text += "<p>" + escaped(what) + "</p>\n<pre>" + escaped(line) + "</pre>\n";
  };
  if (outcome.status != "done") {
    add("Go on with the training:", "sinew resume " + directory);
  } else if (!command && run.folds.empty()) {
    add("Train longer:", train_longer(run, directory));
  }
  if (model) {
    add("Predict new samples:", "sinew predict " + directory + " DATA");
    add("Measure the model on other data:", "sinew eval " + directory + " test.path=FILE");
    add("Export the model for other programs:", "sinew export " + directory + " --to onnx");
  }
  if (outcome.time) add("See what limited the run, and what would make it faster:", "sinew advise " + directory);
  add("Draw the curves into a picture:", "sinew runs plot " + directory + " --output curves.png");
  return section("Go on", text);
}

// The time of all lanes, by stage, the longest first.
std::string time_section(const std::optional<StageTimes>& time) {
  if (!time || time->lanes <= 0 || !(time->total() > 0)) return "";
  std::string text =
      "<div class=\"wide\"><table>\n<tr><th>stage</th><th class=\"number\">% of the time</th>"
      "<th class=\"number\">seconds</th></tr>\n";
  for (const Stage stage : longest_stages(*time)) {
    const double share = (*time)[stage] / time->total();
    text += "<tr><td>" + escaped(std::string(name_of(stage))) + "</td>" + "<td class=\"number\">" +
            escaped(rounded_text(100 * share, 3)) + "</td>" + number_cell((*time)[stage]) + "</tr>\n";
  }
  return section("Where the time went", text + "</table></div>\n<p>Of " + std::to_string(time->lanes) +
                                            (time->lanes == 1 ? " lane" : " lanes together") +
                                            ", in the last attempt.</p>\n");
}

std::string files_section(const RunSummary& run) {
  struct File {
    const char *name, *what;
  };
  constexpr std::array<File, 12> kFiles = {
      {{rundir::kTrials, "the training of each fold, with its model"},
       {rundir::kModel, "the trained model, for sinew predict and sinew export"},
       {"checkpoints/best", "the best checkpoint"},
       {"checkpoints/last", "the newest checkpoint, from which sinew resume goes on"},
       {rundir::kResolvedFile, "every option with its value"},
       {rundir::kOutcomeFile, "how the run ended, for programs"},
       {rundir::kMetricsFile, "every metric that was measured"},
       {rundir::kLogFile, "every message"},
       {rundir::kTraceFile, "what each lane did in some steps, for Perfetto"},
       {"eval-val.json", "the evaluation on the validation data"},
       {"eval-test.json", "the evaluation on the test data"},
       {"output", "what the command printed"}}};
  std::string text;
  std::error_code ignored;
  for (const File& file : kFiles) {
    const std::string path = rundir::file_in(run.directory, file.name);
    const bool comes = file.name == std::string_view(rundir::kOutcomeFile);  // it is written after this page
    if (comes || std::filesystem::exists(path, ignored))
      text += "<tr><td><code>" + escaped(path) + "</code></td><td>" + escaped(file.what) + "</td></tr>\n";
  }
  return section("Files", "<div class=\"wide\"><table>\n" + text + "</table></div>\n");
}

std::string warnings_section(const LogFacts& log) {
  std::string text;
  for (const std::string& one : log.warnings) text += "<li>" + escaped(one) + "</li>\n";
  if (text.empty()) return "";
  const auto shown = static_cast<int64_t>(log.warnings.size());
  const std::string note = log.all_warnings > shown ? "<p>The last " + std::to_string(shown) + " of " +
                                                          std::to_string(log.all_warnings) + ":</p>\n"
                                                    : "";
  return section("Warnings and errors", note + "<ul>\n" + text + "</ul>\n");
}

}  // namespace

std::string run_page(const std::string& directory, const rundir::Outcome& outcome) {
  const auto run = read_run(directory, &outcome);
  if (!run) return "";
  const LogFacts log = read_log(directory);
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>" +
         escaped(run->job + ": " + outcome.status) + "</title>\n<style>\n" + std::string(kRunPageStyle) +
         "</style>\n</head>\n<body>\n<main>\n" + head_of(*run, outcome) + job_section(*run, log) +
         metrics_section(*run) + forecasts_section(outcome.forecasts) + curves_section(*run) +
         evaluation_section(*run) + time_section(outcome.time) + warnings_section(log) +
         commands_section(*run, outcome) + files_section(*run) + "</main>\n</body>\n</html>\n";
}

std::string keep_run_page(Disk& disk, const std::string& directory, const rundir::Outcome& outcome) noexcept {
  try {
    const std::string page = run_page(directory, outcome);
    if (!page.empty()) write_durably(disk, rundir::file_in(directory, rundir::kRunPageFile), page);
    return "";
  } catch (const std::exception& error) {
    try {
      return error.what();
    } catch (const std::exception&) {
      return "";
    }
  }
}

}  // namespace sinew::report
