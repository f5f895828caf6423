// Implements `sinew find-lr`, which suggests a learning rate for a job.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/disk.h"
#include "base/exit_code.h"
#include "base/json_text.h"
#include "base/number_text.h"
#include "base/printable.h"
#include "base/terminal_text.h"
#include "train/train.h"
#include "worker/tasks.h"

namespace sinew::worker {
namespace {

constexpr double kFar = 10;  // optimizer.lr differs from the suggestion by more than this factor: a warning

void draw(const task::FindRate& task, const std::string& job, const train::RateFinding& finding,
          sandbox::OutsideFile* outside) {
  std::vector<report::RateLoss> losses;
  for (size_t i = 0; i < finding.points.size(); ++i)
    losses.push_back({finding.points[i].lr, finding.points[i].loss, finding.smoothed[i]});
  const std::string picture = report::rate_picture(job, losses, finding.suggestion, task.plot.ends_with(".svg"));
  if (outside == nullptr) return write_output(system_disk(), task.plot, picture);
  outside->write(picture);
  outside->commit();
}

std::string json_of(const task::FindRate& task, const train::RateFinding& finding) {
  nlohmann::ordered_json json = {{"suggestion", json_number(finding.suggestion)},
                                 {"job_lr", json_number(finding.job_lr)},
                                 {"min_lr", json_number(task.lowest)},
                                 {"max_lr", json_number(task.highest)},
                                 {"diverged", finding.diverged}};
  auto& steps = json["steps"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < finding.points.size(); ++i) {
    steps.push_back({{"lr", json_number(finding.points[i].lr)},
                     {"loss", json_number(finding.points[i].loss)},
                     {"smoothed", json_number(finding.smoothed[i])}});
  }
  return dump_json(json) + "\n";
}

// Some rows of the test: enough to see where the loss falls and where it grows.
std::string table_of(const train::RateFinding& finding) {
  constexpr size_t kRows = 12;
  std::string text = "learning rate         loss  smoothed\n";
  const size_t count = finding.points.size(), rows = std::min(kRows, count);
  for (size_t row = 0; row < rows; ++row) {
    const size_t i = rows == 1 ? 0 : row * (count - 1) / (rows - 1);
    char line[80];
    std::snprintf(line, sizeof line, "%13s %12s %9s\n", rounded_text(finding.points[i].lr, 2).c_str(),
                  rounded_text(finding.points[i].loss, 4).c_str(), rounded_text(finding.smoothed[i], 4).c_str());
    text += line;
  }
  return text;
}

std::string text_of(const task::FindRate& task, const train::RateFinding& finding) {
  const std::string rate = rounded_text(finding.suggestion, 2);
  std::string text = table_of(finding) + "\n";
  if (finding.diverged) text += "the loss grew too much, so the test ended early\n";
  text += "suggestion: " + rate + ", where the smoothed loss falls fastest\n";
  text += "  try: sinew train " + shell_quoted(task.job);
  for (const std::string& one : task.overrides) text += " " + shell_quoted(one);
  text += " optimizer.lr=" + rate + "\n";
  const double factor = finding.job_lr / finding.suggestion;
  if (factor > kFar || factor < 1 / kFar) {
    text += "warning: optimizer.lr of the job is " + rounded_text(finding.job_lr, 2) + ", " +
            rounded_text(std::max(factor, 1 / factor), 2) + " times as " + (factor > 1 ? "large" : "small") + "\n";
  }
  return text;
}

}  // namespace

int run_find_rate(const task::FindRate& task) {
  const auto outside = confine(task.sandbox, task.plot, sandbox::OutsideFile::Kind::output);
  const spec::Job job = read_job_file(task.job, task.overrides);
  const train::RateFinding finding = train::find_rate(job, {task.lowest, task.highest, task.steps});
  if (!task.plot.empty()) draw(task, job.name, finding, outside.get());
  if (task.json) {
    std::fputs(json_of(task, finding).c_str(), stdout);
  } else {
    print_text(stdout, printable(text_of(task, finding), true));
  }
  flush_stdout();
  return kDone;
}

}  // namespace sinew::worker
