// What a run shows and leaves behind: the live line, plain lines or JSON on stdout; metrics.jsonl, TensorBoard events,
// log.jsonl, ledger.jsonl and report.json in the run directory; and reading them back.
//
// For train/ (writes) and cli/ (reads). It computes nothing about training. A Reporter belongs to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/ids.h"

namespace sinew::report {

// Metric names follow the field's rule: "train/loss", "val/accuracy", "throughput/samples_per_sec", "time/step_ms".
using Metrics = std::map<std::string, double>;
using Fields = std::map<std::string, std::string>;  // extra facts of a log line

struct Progress {
  Step step;
  int64_t total_steps = 0;   // 0: unknown (time-bounded)
  double epoch = 0;          // with fraction
  double total_epochs = 0;   // 0: unknown
  int64_t samples = 0;       // committed since step 0
  double samples_per_second = 0;
  double eta_seconds = -1;   // < 0: unknown
  Metrics shown;             // the few numbers of the line, e.g. loss, val/accuracy
};

enum class LogFormat { human, json };
enum class Level { info, warning, error };

struct ReporterOptions {
  std::string directory;       // the run directory; exists
  LogFormat format = LogFormat::human;
  bool terminal = false;       // stdout is a TTY: one live line; else plain lines, never '\r'
  bool color = false;          // off under NO_COLOR
  bool tensorboard = true;
  bool ledger = false;         // write ledger.jsonl
  int columns = 80;
  double plain_interval_seconds = 5;  // between progress lines when not a TTY
  std::optional<Step> resumed_at;     // files are cut back to this step first (records after it are dropped)
};

class Reporter {
 public:
  Reporter(ReporterOptions options, Clock& clock);
  ~Reporter();  // flushes

  void hparams(const std::map<std::string, std::string>& values);  // once, before the first metrics
  void metrics(Step step, int64_t samples, const Metrics& values);  // metrics.jsonl, TensorBoard
  void progress(const Progress& progress);                          // the live line; cheap, rate-limited inside
  void say(Level level, const std::string& event, const std::string& text, const Fields& fields = {});  // a line; log.jsonl
  void ledger(Step step, Digest digest);
  void finish(bool success);        // ends the live line and the TensorBoard session, flushes
  void flush();                     // everything written so far reaches the kernel
  std::string trouble() const;      // why a file could not be written (disk full …); training goes on

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
// A torn last line is not an error; any other broken line is reported with its number in `broken`.
std::vector<MetricRecord> read_metrics(const std::string& path, std::vector<std::string>* broken = nullptr);

// One run directory as `sinew runs` shows it. Reads job, report.json and metrics.jsonl; a run without a report is
// "running" (its lock is held) or "interrupted".
struct RunSummary {
  std::string directory, job, id, status;  // status: running | done | failed | stopped | interrupted
  double started_wall_seconds = 0, seconds = 0;
  int64_t steps = 0, samples = 0;
  Metrics last, best;                       // last value of each metric; best by its direction (loss-like: min)
  std::optional<bool> objective_met;
  std::string objective;
};
std::vector<RunSummary> find_runs(const std::string& root);  // newest first; every directory with resolved.yaml
std::string runs_table(const std::vector<RunSummary>& runs);
std::string run_details(const RunSummary& run);
std::string compare_table(const std::vector<RunSummary>& runs);

}  // namespace sinew::report
