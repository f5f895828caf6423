// What a run of a command shows and writes: metrics, messages, the report. One reporter an attempt.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "jobs/conduct.h"
#include "jobs/jobs.h"
#include "jobs/metric_line.h"
#include "jobs/metric_watch.h"
#include "report/report.h"

namespace sinew::jobs {

class Narrator {
 public:
  Narrator(const CommandRun& run, std::string directory, Clock& clock);

  void set_started(double wall_seconds) { started_ = wall_seconds; }  // the first attempt's begin
  double started() const { return started_; }

  void attempt_begins(int64_t attempt, const std::vector<std::string>& command, const std::string& resume_from);
  void attempt_ends(int64_t attempt, const Judgement& judged, int64_t lost_bytes, bool another_follows);
  // A line that may hold metrics, of the command's output or of its file; whether it does is told in `taken`. A reason
  // to end the run, where the metrics are one.
  std::optional<MetricWatch::Verdict> take_line(std::string_view line, bool file, bool& taken);
  void pass_on(std::string_view line, bool errors) { reporter_->pass_on(line, errors); }
  void say(report::Level level, const std::string& event, const std::string& text);
  void log(const std::string& event, const std::string& text) { say(report::Level::info, event, text); }
  void tick();  // what was measured since the last one reaches the files: who reads them acts on it

  struct End {
    std::string status;
    int code = 0;
    std::string why, hint;
  };
  // The one end of the run: said, then written as report.json.
  void finish(const End& end);

 private:
  void open_reporter(std::optional<int64_t> resumed_at);
  void note_broken(const std::string& why);
  void recall_metrics();
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
  bool settled_ = false, fresh_ = false;  // settled: it is known from which step on this attempt measures
  int64_t newest_before_ = -1;            // step of the attempts before this one
  std::vector<MetricLine> held_;          // of its first step, until it is
  int64_t broken_ = 0;
};

}  // namespace sinew::jobs
