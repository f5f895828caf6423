// What a run shows and leaves behind: the live line, plain lines or JSON on stdout; metrics.jsonl, TensorBoard events,
// log.jsonl, ledger.jsonl and report.json in the run directory; and reading them back.
//
// For train/ and jobs/ (write) and cli/ (reads). It computes nothing about training. A Reporter belongs to one thread;
// everything else here is a function of what lies on disk. The files' formats: docs/formats/run-directory.md.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/ids.h"

namespace sinew::report {

// Metric names follow the field's rule: "train/loss", "val/accuracy", "throughput/samples_per_sec", "time/step_ms".
// "step", "samples" and "time" name a record's own fields and can not name a metric.
using Metrics = std::map<std::string, double>;
using Fields = std::map<std::string, std::string>;  // extra facts of a log line

// Is less of it better? True for loss, error, rmse, mae, perplexity, time and their like, by the words in the name.
// What early stopping, checkpoints and `best` mean by mode: auto.
bool lower_is_better(std::string_view metric);
bool lower_is_better(std::string_view metric, std::string_view mode);  // mode: auto | min | max

struct Progress {
  Step step;
  int64_t total_steps = 0;  // 0: unknown (time-bounded)
  double epoch = 0;         // with fraction
  double total_epochs = 0;  // 0: unknown
  int64_t samples = 0;      // committed since step 0
  double samples_per_second = 0;
  double eta_seconds = -1;  // < 0: unknown
  Metrics shown;            // the few numbers of the line, e.g. loss, val/accuracy
};

enum class LogFormat { human, json };
enum class Level { info, warning, error };

struct ReporterOptions {
  std::string directory;  // the run directory; exists
  LogFormat format = LogFormat::human;
  bool terminal = false;  // stdout is a TTY: one live line; else plain lines, never '\r'
  bool color = false;     // off under NO_COLOR; only ever used on a terminal
  bool tensorboard = true;
  bool ledger = false;                // write ledger.jsonl
  int columns = 80;                   // where stdout itself does not tell
  double plain_interval_seconds = 5;  // between progress lines when not a TTY
  std::optional<Step> resumed_at;     // files are cut back to this step first (records after it are dropped)
  bool takes_over = false;  // goes on where another process stopped writing: what stands there is not repeated
  std::function<void(std::string_view)> output, errors;  // empty: stdout and stderr; tests and embedders listen here
  // Is it this process's turn to write? While false no file is touched: records are kept (up to the same bound as on a
  // full disk) and cutting back waits too. Asked before each write, on the caller's thread; must not throw. Empty:
  // always.
  std::function<bool()> may_write = nullptr;
};

// No call throws or waits because of the disk: what can not be written is kept (up to a bound), tried again every
// second, told once as a warning and shown by trouble(). Lines reach the kernel within a second of the next call of any
// kind; call flush() before a checkpoint is saved, so that a resume finds every record up to it.
class Reporter {
 public:
  Reporter(ReporterOptions options, Clock& clock);
  ~Reporter();  // flushes

  void hparams(const std::map<std::string, std::string>& values);   // once, before the first metrics
  void metrics(Step step, int64_t samples, const Metrics& values);  // metrics.jsonl, TensorBoard
  void progress(const Progress& progress);                          // the live line; cheap, rate-limited inside
  void say(Level level, const std::string& event, const std::string& text,
           const Fields& fields = {});  // a line; log.jsonl
  void ledger(Step step, Digest digest);
  // A line that somebody else printed, shown on the stream it came from and written to no file here.
  void pass_on(std::string_view line, bool errors);
  // Shows the last progress, ends the live line and the TensorBoard session, flushes. What is said afterwards, the
  // verdict say, stands below it.
  void finish(bool success);
  void flush();                 // everything written so far reaches the kernel
  bool waits() const;           // something did not: no space, or not this process's turn
  std::string trouble() const;  // why a file could not be written (disk full …); training goes on

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// ---- reading back --------------------------------------------------------------------------------------------------

struct MetricRecord {
  int64_t step = 0, samples = 0;
  double wall_seconds = 0;
  Metrics values;
};
// A torn last line is not an error; any other broken line is reported with its number in `broken` (the first hundred).
// A file that is not there has no records; one that can not be read throws DiskError.
std::vector<MetricRecord> read_metrics(const std::string& path, std::vector<std::string>* broken = nullptr);
// One line of metrics.jsonl. nullopt: it is none; `why` then says what is wrong with it.
std::optional<MetricRecord> parse_metrics_line(std::string_view line, std::string* why = nullptr);

// resolved.yaml as a flat list: dotted keys and the values as written. Throws Error naming the place when the text is
// not a YAML mapping, or too large to be a job.
std::map<std::string, std::string> flat_options(const std::string& yaml);

struct BestMetric {
  std::string metric;
  double value = 0;
  int64_t step = 0;
};
struct ObjectiveResult {
  std::string text;  // "val/accuracy >= 0.92"
  bool met = false;
  double value = 0;  // the metric's value that was judged; NaN: never measured
};

// How a run ended, as stored in report.json. The worker writes report.json last, with write_durably. A resumed run
// first removes the report.json of the earlier attempt.
struct Outcome {
  std::string status = "done";  // done | failed | stopped | budget
  int exit_code = 0;
  std::string job;
  double started_wall_seconds = 0, seconds = 0;
  int64_t steps = 0, samples = 0;
  double epochs = 0;
  std::string digest;  // of the final training state, in hex; empty if there is none
  std::optional<BestMetric> best;
  std::optional<ObjectiveResult> objective;
  Metrics last;
  std::string error, hint;  // set if the run failed
};
std::string outcome_json(const Outcome& outcome);  // ends with a newline
// Returns nullopt if the text is not a valid report.json; `why` then says what is wrong with it.
std::optional<Outcome> parse_outcome(std::string_view json, std::string* why = nullptr);

// Numbers in JSON as these files have them: three of them have no word there and are texts, "NaN", "Infinity" and
// "-Infinity".
nlohmann::ordered_json number_json(double value);
std::optional<double> number_of(const nlohmann::ordered_json& value);  // nullopt: neither a number nor one of the three

// Returns whether a living process owns the run. The kernel releases the lock of a process that dies.
bool lock_is_held(const std::string& directory);

// One run directory as `sinew runs` shows it, read from resolved.yaml, report.json and metrics.jsonl. A run whose lock
// is held is "running"; a run with neither a held lock nor a report is "interrupted". `problems` names the files that
// cannot be read.
struct RunSummary {
  std::string directory, job, id, status;  // status: running | done | failed | stopped | budget | interrupted
  double started_wall_seconds = 0, seconds = 0;
  int64_t steps = 0, samples = 0;
  Metrics last, best;  // each metric's last value and best value; lower_is_better(name) decides which is best
  std::map<std::string, int64_t> best_step;
  std::optional<bool> objective_met;
  std::string objective;
  std::string digest, error;
  std::map<std::string, std::string> options;  // resolved.yaml as dotted keys
  std::vector<std::string> checkpoints;        // names of step directories, oldest first
  std::vector<std::string> problems;
};
// Returns nullopt if the directory is not a run, which means that it has no resolved.yaml.
std::optional<RunSummary> read_run(const std::string& directory);
// Finds every directory below `root` that has a resolved.yaml, newest run first. Skips directories whose names begin
// with a dot.
std::vector<RunSummary> find_runs(const std::string& root);
// Finds one run by its path, by `last`, or by the end of its id. Throws Error if no run or more than one run matches.
RunSummary pick_run(const std::string& root, const std::string& name);

// For people; `columns` > 0: no line is wider, the less important is left out first.
std::string runs_table(const std::vector<RunSummary>& runs, int columns = 0);
std::string run_details(const RunSummary& run);
std::string compare_table(const std::vector<RunSummary>& runs, int columns = 0);
// For programs: an array of runs; one run with its options; differing options and all metrics side by side.
std::string runs_json(const std::vector<RunSummary>& runs);
std::string run_json(const RunSummary& run);
std::string compare_json(const std::vector<RunSummary>& runs);

}  // namespace sinew::report
