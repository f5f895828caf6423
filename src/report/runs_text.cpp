// Makes the text and the JSON that `sinew runs` prints.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "report/curves.h"
#include "report/report.h"
#include "report/table.h"
#include "report/text_format.h"

namespace sinew::report {
namespace {

constexpr size_t kMetricColumns = 3;

std::string when(double wall_seconds) {  // for example "2026-11-21 03:15"
  if (wall_seconds <= 0) return "";
  std::string text = utc_iso(wall_seconds).substr(0, 16);
  text[10] = ' ';
  return text;
}

std::string how_long(double seconds) {
  return seconds > 0 ? short_seconds(seconds) : "";
}

std::string goal_word(const RunSummary& run) {
  if (!run.objective_met) return "";
  return *run.objective_met ? "met" : "missed";
}

template <typename Map>
std::string value_in(const Map& values, const std::string& name) {
  const auto it = values.find(name);
  return it == values.end() ? "" : short_number(it->second);
}

// Chooses the metrics that get a column: validation metrics first, then those that most runs have.
std::vector<std::string> common_metrics(const std::vector<RunSummary>& runs) {
  std::map<std::string, size_t> counts;
  for (const RunSummary& run : runs) {
    for (const auto& [name, value] : run.best) {
      if (name.starts_with("val/") || name.starts_with("test/") || name == "train/loss") ++counts[name];
    }
  }
  std::vector<std::string> names;
  for (const auto& [name, count] : counts) names.push_back(name);
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    const bool a_val = a.starts_with("val/"), b_val = b.starts_with("val/");
    if (is_detail(a) != is_detail(b)) return is_detail(b);
    return a_val != b_val ? a_val : counts[a] > counts[b];
  });
  if (names.size() > kMetricColumns) names.resize(kMetricColumns);
  return names;
}

std::set<std::string> metric_names(const std::vector<RunSummary>& runs) {
  std::set<std::string> names;
  for (const RunSummary& run : runs) {
    for (const auto& [name, value] : run.last) names.insert(name);
  }
  return names;
}

std::string option_of(const RunSummary& run, const std::string& key) {
  const auto it = run.options.find(key);
  return it == run.options.end() ? "-" : it->second;
}

nlohmann::ordered_json metrics_json(const Metrics& metrics) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, value] : metrics) json[name] = json_number(value);
  return json;
}

nlohmann::ordered_json summary_json(const RunSummary& run) {
  nlohmann::ordered_json json = {{"id", run.id},
                                 {"job", run.job},
                                 {"directory", run.directory},
                                 {"status", run.status},
                                 {"started", json_number(run.started_wall_seconds)},
                                 {"seconds", json_number(run.seconds)},
                                 {"steps", run.steps},
                                 {"samples", run.samples},
                                 {"last", metrics_json(run.last)},
                                 {"best", metrics_json(run.best)}};
  if (!run.objective.empty()) json["objective"] = run.objective;
  if (run.objective_met) json["objective_met"] = *run.objective_met;
  if (!run.digest.empty()) json["digest"] = run.digest;
  if (!run.error.empty()) json["error"] = run.error;
  if (!run.problems.empty()) json["problems"] = run.problems;
  return json;
}

// The further lines of a value stand below its first line.
void append_fact(std::string& out, const std::string& name, const std::string& value) {
  constexpr size_t kColumn = 13;
  std::istringstream lines(value);
  std::string before = name + std::string(name.size() < kColumn ? kColumn - name.size() : 1, ' ');
  for (std::string line; std::getline(lines, line); before.assign(kColumn, ' '))
    out += before + printable(line.substr(std::min(line.find_first_not_of(' '), line.size()))) + "\n";
}

}  // namespace

std::string runs_table(const std::vector<RunSummary>& runs, int columns) {
  if (runs.empty()) return "";
  Column id{"RUN", {}, false, 0, 12}, job{"JOB", {}, false, 0, 6}, status{"STATUS", {}, false, 0, 11};
  Column started{"STARTED (UTC)", {}, false, 60, 8}, took{"TOOK", {}, true, 50, 4}, steps{"STEPS", {}, true, 30, 4};
  Column goal{"OBJECTIVE", {}, false, 20, 6};
  std::vector<Column> table;
  for (const RunSummary& run : runs) {
    id.cells.push_back(run.id);
    job.cells.push_back(run.job);
    status.cells.push_back(run.problems.empty() ? run.status : run.status + " (!)");
    started.cells.push_back(when(run.started_wall_seconds));
    took.cells.push_back(how_long(run.seconds));
    steps.cells.push_back(std::to_string(run.steps));
    goal.cells.push_back(goal_word(run));
  }
  table = {id, job, status, started, took, steps};
  int rank = 5;
  for (const std::string& name : common_metrics(runs)) {
    Column metric{"BEST " + name, {}, true, rank++, 8};
    for (const RunSummary& run : runs) metric.cells.push_back(value_in(run.best, name));
    table.push_back(metric);
  }
  const bool has_goal =
      std::any_of(goal.cells.begin(), goal.cells.end(), [](const std::string& cell) { return !cell.empty(); });
  if (has_goal) table.push_back(goal);
  return table_text(std::move(table), columns);
}

std::string run_details(const RunSummary& run) {
  std::string out;
  append_fact(out, "run", run.id);
  append_fact(out, "job", run.job);
  append_fact(out, "directory", run.directory);
  append_fact(out, "status", run.status);
  append_fact(out, "error", run.error);
  append_fact(out, "started", when(run.started_wall_seconds).empty() ? "" : when(run.started_wall_seconds) + " UTC");
  append_fact(out, "took", how_long(run.seconds));
  append_fact(out, "steps", std::to_string(run.steps) + " (" + std::to_string(run.samples) + " samples)");
  append_fact(out, "objective",
              run.objective.empty() ? "" : run.objective + (run.objective_met ? ": " + goal_word(run) : ""));
  append_fact(out, "digest", run.digest);
  if (!run.checkpoints.empty()) {
    std::string all = run.checkpoints.back();
    if (run.checkpoints.size() > 1) all += " and " + std::to_string(run.checkpoints.size() - 1) + " older";
    append_fact(out, "checkpoints", all);
  }
  if (!run.folds.empty()) {
    out += "\n" + folds_table(run.folds, run.last);
  } else if (!run.last.empty()) {
    Column name{"METRIC", {}, false, 0, 8}, last{"LAST", {}, true, 0, 8}, best{"BEST", {}, true, 0, 8},
        step{"AT STEP", {}, true, 0, 4};
    for (const auto& [metric, value] : run.last) {
      name.cells.push_back(metric);
      last.cells.push_back(short_number(value));
      best.cells.push_back(value_in(run.best, metric));
      const auto at = run.best_step.find(metric);
      step.cells.push_back(at == run.best_step.end() ? "" : std::to_string(at->second));
    }
    out += "\n" + table_text({name, last, best, step}, 0);
  }
  if (!run.problems.empty()) out += "\nproblems:\n";
  for (const std::string& problem : run.problems) out += "  " + printable(problem) + "\n";
  return out;
}

std::string folds_table(const std::vector<rundir::FoldResult>& folds, const Metrics& means) {
  const std::vector<std::string> rows = metrics_of_folds(folds);
  const auto column = [&](const std::string& title, const Metrics& values, const std::string& ending) {
    Column made{title, {}, true, 0, 6};
    for (const std::string& name : rows) made.cells.push_back(value_in(values, name + ending));
    return made;
  };
  std::vector<Column> table = {{"METRIC", rows, false, 0, 8}, column("MEAN", means, ""), column("STD", means, "_std")};
  for (const rundir::FoldResult& fold : folds) {
    table.push_back(column("FOLD " + std::to_string(fold.fold), fold.metrics, ""));
    if (fold.status != "done") table.back().title += " (" + fold.status + ")";
  }
  return table_text(std::move(table), 0);
}

std::string compare_table(const std::vector<RunSummary>& runs, int columns) {
  if (runs.empty()) return "";
  std::vector<Column> table(runs.size() + 1);
  table[0] = {"", {"status", "took", "steps"}, false, 0, 10};
  for (size_t i = 0; i < runs.size(); ++i) {
    table[i + 1] = {
        runs[i].id, {runs[i].status, how_long(runs[i].seconds), std::to_string(runs[i].steps)}, false, 0, 10};
  }
  const auto add_row = [&](const std::string& title, auto cell_of) {
    table[0].cells.push_back(title);
    for (size_t i = 0; i < runs.size(); ++i) table[i + 1].cells.push_back(cell_of(runs[i]));
  };
  const auto none = [](const RunSummary&) { return std::string(); };
  const std::vector<std::string> keys = differing_options(runs);
  add_row("", none);
  add_row(keys.empty() ? "options: all the same" : "options that differ", none);
  for (const std::string& key : keys) add_row("  " + key, [&](const RunSummary& run) { return option_of(run, key); });
  add_row("", none);
  add_row("metrics, last (best)", none);
  for (const std::string& name : metric_names(runs)) {
    add_row("  " + name, [&](const RunSummary& run) {
      const std::string last = value_in(run.last, name), best = value_in(run.best, name);
      return last.empty() ? "-" : best.empty() || best == last ? last : last + " (" + best + ")";
    });
  }
  // Two rows whose titles are cut may read the same, so the values are narrowed first.
  const int room = columns - static_cast<int>(runs.size()) * (table[1].min_width + 2);
  int longest = 0;
  for (const std::string& title : table[0].cells) longest = std::max(longest, display_width(title));
  table[0].min_width = std::max(table[0].min_width, std::min(longest, std::max(room, columns / 2)));
  return table_text(std::move(table), columns);
}

std::string runs_json(const std::vector<RunSummary>& runs) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const RunSummary& run : runs) json.push_back(summary_json(run));
  return dump_json(json, 2) + "\n";
}

std::string run_json(const RunSummary& run) {
  nlohmann::ordered_json json = summary_json(run);
  json["best_step"] = run.best_step;
  json["checkpoints"] = run.checkpoints;
  for (const rundir::FoldResult& fold : run.folds)
    json["folds"].push_back(
        {{"fold", fold.fold}, {"run", fold.run}, {"status", fold.status}, {"metrics", metrics_json(fold.metrics)}});
  json["options"] = run.options;
  return dump_json(json, 2) + "\n";
}

std::string compare_json(const std::vector<RunSummary>& runs) {
  nlohmann::ordered_json json = {{"runs", nlohmann::ordered_json::array()},
                                 {"options", nlohmann::ordered_json::object()},
                                 {"metrics", nlohmann::ordered_json::object()}};
  for (const RunSummary& run : runs)
    json["runs"].push_back({{"id", run.id}, {"directory", run.directory}, {"status", run.status}});
  for (const std::string& key : differing_options(runs)) {
    nlohmann::ordered_json& row = json["options"][key] = nlohmann::ordered_json::array();
    for (const RunSummary& run : runs)
      row.push_back(run.options.contains(key) ? nlohmann::ordered_json(option_of(run, key)) : nlohmann::ordered_json());
  }
  for (const std::string& name : metric_names(runs)) {
    nlohmann::ordered_json& row = json["metrics"][name] = nlohmann::ordered_json::array();
    for (const RunSummary& run : runs) {
      nlohmann::ordered_json cell;
      if (const auto it = run.last.find(name); it != run.last.end()) cell["last"] = json_number(it->second);
      if (const auto it = run.best.find(name); it != run.best.end()) cell["best"] = json_number(it->second);
      row.push_back(cell);
    }
  }
  return dump_json(json, 2) + "\n";
}

}  // namespace sinew::report
