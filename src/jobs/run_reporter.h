// Prints and writes what a run of a command reports: metrics, messages and report.json.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "jobs/attempt_state_machine.h"
#include "jobs/jobs.h"
#include "jobs/metric_line.h"
#include "jobs/metric_watch.h"
#include "report/report.h"

namespace sinew::jobs {

class RunReporter {
 public:
  RunReporter(const CommandRun& run, std::string directory, Clock& clock);

  void set_started(double wall_seconds) { started_ = wall_seconds; }  // when the first attempt began
  double started() const { return started_; }

  void attempt_begins(int64_t attempt, const std::vector<std::string>& command, const std::string& resume_from);
  void attempt_ends(int64_t attempt, const AttemptResult& result, int64_t lost_bytes, bool another_follows);
  // Takes a line of the command's output, or of its metrics file if `file` is set. Sets `taken` if the line contains
  // metrics. If the metrics require the run to end, returns why.
  std::optional<MetricWatch::Verdict> take_line(std::string_view line, bool file, bool& taken);
  void pass_on(std::string_view line, bool errors) { reporter_->pass_on(line, errors); }
  void say(report::Level level, const std::string& event, const std::string& text);
  void log(const std::string& event, const std::string& text) { say(report::Level::info, event, text); }
  void tick();  // writes new metrics to their files, because readers of these files act on them

  // Writes to the run directory what the command logged at the server, where the run is called `server_run_id`.
  void keep_logged_metrics(const std::string& server_run_id);

  struct End {
    std::string status;
    int code = 0;
    std::string why, hint;
  };
  // Writes report.json and prints how the run ended. Called once.
  void finish(const End& end);

 private:
  void open_reporter(std::optional<int64_t> resumed_at);
  void note_broken(const std::string& why);
  void restore_watch();
  std::optional<MetricWatch::Verdict> record(const MetricLine& line);
  void settle(std::optional<int64_t> second);
  void show(const MetricLine& line, int64_t step);

  const CommandRun& run_;
  std::string directory_;
  Clock& clock_;
  std::unique_ptr<report::Reporter> reporter_;
  std::optional<MetricWatch> watch_;
  double started_ = 0, epoch_ = 0;
  int64_t newest_step_ = -1, samples_ = 0;
  bool settled_ = false;          // true: settle() has decided which old records this attempt replaces
  bool fresh_ = false;            // true: there are metrics that tick() has not written
  int64_t newest_before_ = -1;    // the newest step of earlier attempts
  std::vector<MetricLine> held_;  // lines of this attempt's first step, until settle() is called
  int64_t broken_ = 0;
};

}  // namespace sinew::jobs
