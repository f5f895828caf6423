// The output of a run. It shows progress on stdout (a live line, plain lines or JSON). In the run directory it writes
// metrics.jsonl, TensorBoard events, log.jsonl, ledger.jsonl and report.json. This room also reads these files back.
//
// train/ and jobs/ write with it; cli/ reads with it. It computes nothing about training. A Reporter belongs to one
// thread. The results of the other functions depend only on the files on disk. Formats: docs/formats/run-directory.md.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/disk.h"
#include "base/hash.h"
#include "base/ids.h"
#include "base/json_text.h"
#include "base/stage_timer.h"
#include "base/terminal.h"
#include "rundir/rundir.h"
#include "spec/spec.h"

namespace sinew::forecast {
struct Evaluation;
struct Monitored;
}  // namespace sinew::forecast

namespace sinew::report {

// Names of metrics follow the usual convention: "train/loss", "val/accuracy", "throughput/samples_per_sec",
// "time/step_ms". No metric may be named "step", "samples" or "time", because a record has other fields with these
// names.
using Metrics = std::map<std::string, double>;

// Returns whether a lower value of the metric is better, judging by the words in its name: true for loss, error, rmse,
// mae, perplexity, time and the like. Early stopping, checkpoints and the choice of the best run use it for `mode:
// auto`.
bool lower_is_better(std::string_view metric);
bool lower_is_better(std::string_view metric, std::string_view mode);  // `mode` is auto, min or max
// Returns whether a metric is left out where only some fit: a line of the screen, the columns of a list. These metrics
// say again, in another way, what others of the same evaluation say: val/mcc, val/ece, val/precision ...
bool is_detail(std::string_view metric);

// ---- what a value of a metric decides ------------------------------------------------------------------------------

// The rules of early stopping and of objectives, for trainings (loop/) and for commands (jobs/). Pure.

// Returns whether `value` is better than `best` by more than min_delta. The first number always is; NaN never is.
bool improves(double value, const std::optional<double>& best, bool lower, double min_delta);

// The best value of a metric so far, its step, and how many values without an improvement have come since.
struct BestSoFar {
  std::optional<double> best;
  Step step;
  int64_t without_improvement = 0;
};
// Updates `so_far` with a value. Returns whether the value improves.
bool take(BestSoFar& so_far, Step step, double value, bool lower, double min_delta);
// "val/loss has not improved in 5 evaluations; its best was 0.25 at step 30". `what` is what brings the
// values: "evaluations".
std::string not_improved(const std::string& metric, const BestSoFar& so_far, const std::string& what);

// The metric whose end a forecast is about: that of early stopping, or else of the objective, or else the one by which
// the best checkpoint is chosen.
forecast::Monitored monitored_metric(const spec::Job& job);

bool meets(const spec::Objective& objective, double value);
// Returns the sentence that says that the objective is met.
std::string objective_met(const spec::Objective& objective, double value);

// ---- writing -------------------------------------------------------------------------------------------------------

struct Progress {
  Step step;
  int64_t total_steps = 0;  // 0: unknown, for example if a time budget ends the run
  double epoch = 0;         // epochs trained so far, with a fractional part
  double total_epochs = 0;  // 0: unknown
  int64_t samples = 0;      // samples trained since step 0
  double samples_per_second = 0;
  double eta_seconds = -1;  // time until the end of the run; < 0: unknown
  // The end comes in this range with a probability of about 90 %. < 0: the range is unknown.
  double eta_low_seconds = -1, eta_high_seconds = -1;
  // The best value of this metric at the end of the run lies in the range with a probability of about 90 %. Empty: it
  // is not known.
  std::string forecast_metric;
  double forecast_low = 0, forecast_high = 0;
  Metrics shown;  // the metrics in the line, for example loss and val/accuracy
};

// A step of a trace. In seconds, on the scale of the spans.
struct TracedStep {
  int64_t step = 0;
  double began = 0, ended = 0;
};
// Returns trace.json: a row for the steps and one for each lane, in the Trace Event Format of Chrome and Perfetto.
// Times are in microseconds since the first step.
std::string trace_json(const std::vector<StageSpan>& spans, const std::vector<TracedStep>& steps);

enum class LogFormat { human, json };
enum class Level { info, warning, error };

struct ReporterOptions {
  std::string directory;  // the run directory; must exist
  LogFormat format = LogFormat::human;
  // Returns the terminal behind STDOUT_FILENO or STDERR_FILENO: terminal_of. If it is empty, there is none. A terminal
  // that moves its cursor shows one live line; everything else gets plain lines, never '\r'.
  std::function<Terminal(int descriptor)> terminal = nullptr;
  // true: if this process crashes while it shows a live line, a sentence says so. For a process that nobody supervises.
  bool tells_crash = false;
  bool tensorboard = true;
  bool ledger = false;                // write ledger.jsonl
  double plain_interval_seconds = 5;  // time between two progress lines if stdout is not a terminal
  std::optional<Step> resumed_at;     // if set, all records after this step are dropped before the first write
  bool takes_over = false;            // true: continue the files of another process without repeating its records
  std::function<void(std::string_view)> output, errors;  // these get the text; if empty, stdout and stderr do
  // Returns whether this process may write files. The Reporter calls it before each write, on the caller's thread.
  // While it returns false, the Reporter changes no file: it keeps records in memory (up to the same limit as on a full
  // disk) and drops no old records yet. It must not throw. If it is empty, the process may always write.
  std::function<bool()> may_write = nullptr;
};

// Writes by `disk`, which must outlive it. A call throws WriterReplaced if another writer has taken over the run
// directory (base/write_fence.h). No call throws or waits because of the disk. If records cannot be written, the
// Reporter keeps them up to a limit, prints one warning, and shows the reason in trouble(). It tries again at calls
// that are at least a second apart. Without such trouble, records reach the kernel at the first call that comes at
// least a second after the last flush. Call flush() before you save a checkpoint, so that a resumed run finds every
// record up to it.
class Reporter {
 public:
  Reporter(ReporterOptions options, Disk& disk, Clock& clock);
  ~Reporter();  // flushes

  void hparams(const std::map<std::string, std::string>& values);   // call once, before the first metrics
  void metrics(Step step, int64_t samples, const Metrics& values);  // writes to metrics.jsonl and TensorBoard
  void progress(const Progress& progress);                          // updates the live line; cheap and rate-limited
  // Prints a line, and writes it to log.jsonl. `metrics`: the numbers that the sentence is about, for programs.
  void say(Level level, const std::string& event, const std::string& text, const Metrics& metrics = {});
  void ledger(Step step, Digest digest);
  // Shows a line that another program has printed, on the stream from which it came. Writes it to no file.
  void pass_on(std::string_view line, bool errors);
  // Shows the last progress, ends the live line and the TensorBoard session, and flushes. Later messages, such as the
  // verdict on the objective, appear below the last line.
  void finish(bool success);
  void flush();  // passes all records to the kernel
  // Returns whether the files of an earlier process are not open yet, because may_write returned false at the last
  // flush. Before they are open, the Reporter does not know which records are in them. So the caller must not pass it
  // records that may already be in them.
  bool waits_to_begin() const;
  bool waits_for_permission() const;  // whether records wait because may_write returned false at the last flush
  // Returns why a file could not be written, for example because the disk is full; "" if every record was written.
  std::string trouble() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// ---- what else is on the terminal of a run -------------------------------------------------------------------------

// Prints a line to stderr. Another process may be drawing a live line on the same terminal: the text takes its place.
// On a terminal it is broken between words.
void print_beside_run(std::string_view text);
// Returns what print_beside_run prints; `live`: the terminal may show a live line. Pure.
std::string text_beside_run(std::string_view text, const Terminal& errors, bool live);
// Ends the live line of this process, if it shows one, so that the shell's prompt does not follow it. Only for a signal
// handler that ends the process.
void leave_live_line();
// Cuts the text to at most `columns` columns. If it cuts, the text ends with "…".
std::string fit(std::string_view text, int columns);
// Returns how many rows of a terminal with so many columns (0: any number) a line without colours takes. Pure.
int rows_of(std::string_view line, int columns);

// ---- reading back --------------------------------------------------------------------------------------------------

struct MetricRecord {
  int64_t step = 0, samples = 0;
  double wall_seconds = 0;
  Metrics values;
};
// Reads metrics.jsonl. Ignores an incomplete last line. Appends the file's name and line number of each other broken
// line to `broken`, up to a hundred. A missing file has no records. Throws DiskError if the file cannot be read.
std::vector<MetricRecord> read_metrics(const std::string& path, std::vector<std::string>* broken = nullptr);
// Returns the evaluations of a metric in metrics.jsonl, by ascending steps: of two with the same step, the first. An
// evaluation of which the file has no learning rate has that of the line before. Throws DiskError if the file cannot be
// read.
std::vector<forecast::Evaluation> read_evaluations_of(const std::string& directory, const std::string& metric);
// Metrics that the client of a command logged at a server.
struct LoggedMetrics {
  std::vector<MetricRecord> records;  // by step, then by time
  std::string left_out;               // a sentence, if points are missing here; else empty
};
// Writes mlflow.jsonl, in the format of metrics.jsonl. The functions below read both files of a run.
void write_logged_metrics(Disk& disk, const std::string& directory, const LoggedMetrics& logged);
// Parses one line of metrics.jsonl. If it is not a record, returns nullopt and stores the reason in `why`.
std::optional<MetricRecord> parse_metrics_line(std::string_view line, std::string* why = nullptr);

// The step that was best by the monitored metric.
struct BestStep {
  std::string metric;
  double value = 0;
  int64_t step = 0;
};

// A run as `sinew runs` shows it, read from resolved.yaml, report.json and metrics.jsonl. A run whose lock is held is
// "running". A run without a held lock and without a report is "interrupted". `problems` names the files that cannot be
// read.
struct RunSummary {
  std::string directory, job, id, status;  // status: running | done | failed | stopped | budget | interrupted
  double started_wall_seconds = 0, seconds = 0;
  int64_t steps = 0, samples = 0;
  Metrics last, best;  // the last and the best value of each metric; lower_is_better(name) decides which value is best
  std::map<std::string, int64_t> best_step;
  std::optional<BestStep> monitored;  // as the run reported it at its end
  std::optional<bool> objective_met;
  std::string objective;
  std::string digest, error;
  std::vector<rundir::FoldResult> folds;       // of a cross-validation
  std::map<std::string, std::string> options;  // resolved.yaml as dotted keys
  std::vector<std::string> checkpoints;        // names of step directories, oldest first
  std::vector<std::string> problems;
};
// Returns nullopt if the directory has no resolved.yaml, so that it is not a run.
std::optional<RunSummary> read_run(const std::string& directory);
// Returns all runs below `root`, newest first.
std::vector<RunSummary> find_runs(const std::string& root);
// Reads the run that rundir::find_run finds. Throws Error if no run matches, or more than one.
RunSummary pick_run(const std::string& root, const std::string& name);

// Return text for a terminal. If `columns` is above 0, no line is wider; the less important columns are left out first.
std::string runs_table(const std::vector<RunSummary>& runs, int columns = 0);
std::string run_details(const RunSummary& run);
// The metrics of a cross-validation: one row for each, with its mean and standard deviation from `means` (see
// rundir::Outcome) and its value in each fold.
std::string folds_table(const std::vector<rundir::FoldResult>& folds, const Metrics& means);
std::string compare_table(const std::vector<RunSummary>& runs, int columns = 0);
// Return JSON for programs: an array of runs; one run with its options; the options that differ and all metrics, side
// by side.
std::string runs_json(const std::vector<RunSummary>& runs);
std::string run_json(const RunSummary& run);
std::string compare_json(const std::vector<RunSummary>& runs);

// ---- which runs a list shows, in which order, and with which columns -----------------------------------------------
//
// A key names a column: a field of the run (run, job, status, started, took, steps, samples, objective_met, digest,
// directory), a metric ("val/loss": its best value; "last:val/loss": its last one), or an option of the job
// ("optimizer.lr"). All functions are pure.

struct RunQuery {
  // "val/loss<0.3", "status=done", "optimizer.lr >= 1e-3": a key, one of = == != < <= > >=, and a value; all must hold
  std::vector<std::string> where;
  std::string sort;  // a key: the best value of a metric first, other keys ascending; "": newest run first
  bool reverse = false;
  int64_t limit = 0;  // at most so many runs; 0: all
};
// Returns the runs for which all conditions hold; a run without the value of a key fulfils only !=. Such runs come last
// in the order. Numbers compare as numbers if both sides are numbers, and all else as text. Throws UsageError if a text
// is no condition, or if no run has a key.
std::vector<RunSummary> select_runs(std::vector<RunSummary> runs, const RunQuery& query);

// One column for each key; `keys` is "run,val/loss", or "" for the columns of runs_table(). A last line says so if
// files of a run cannot be read. Throws UsageError if no run has a key.
std::string runs_table_of(const std::vector<RunSummary>& runs, const std::string& keys, int columns);
// Comma-separated values with a header line (RFC 4180), numbers unrounded. Without keys: all fields, the best and the
// last value of every metric, and the options that differ between the runs.
std::string runs_csv(const std::vector<RunSummary>& runs, const std::string& keys);
// The output of `sinew runs list`.
struct ListRequest {
  std::string root = "runs", format = "table", columns;  // format: table, json or csv
  RunQuery query;
  bool deleted = false;  // true: the deleted runs of the root
};
// `columns` is the width of the terminal, or 0. Throws Error if there is no such root.
std::string list_of_runs(const ListRequest& request, int columns);
// Returns the keys of the options that differ between the runs.
std::vector<std::string> differing_options(const std::vector<RunSummary>& runs);

// ---- the result of an evaluation: eval-<split>.json ----------------------------------------------------------------

// One class against all others (docs/reference/metrics.md). A quotient of nothing by nothing is 0.
struct ClassQuality {
  double precision = 0, recall = 0, f1 = 0;
  int64_t support = 0;    // samples of this class
  int64_t predicted = 0;  // samples that the model assigns to this class
};
// `confusion` is [classes * classes], one row for each true class, one column for each predicted class.
std::vector<ClassQuality> class_qualities(std::span<const int64_t> confusion, int64_t classes);

// What two classes become if every sample with at least this score is taken for the second one. The ROC curve and the
// curve of precision and recall follow from it.
struct ThresholdCounts {
  double score = 0;
  int64_t true_positives = 0, false_positives = 0;
  bool operator==(const ThresholdCounts&) const = default;
};

// What the end of a run and `sinew eval` keep of an evaluation of a trained model.
struct EvaluationRecord {
  std::string part, weights;      // "val"; the file or the checkpoint with the weights
  std::optional<int64_t> step;    // of the weights, if it is known
  std::vector<std::string> data;  // the overrides with which a user replaced data of the job
  int64_t samples = 0, skipped = 0, classes = 0;
  Metrics metrics;
  std::vector<std::string> class_names;
  std::vector<int64_t> confusion;           // empty if it was not counted
  std::vector<ThresholdCounts> thresholds;  // from the highest score to the lowest; only for two classes
  std::optional<double>
      threshold;  // the probability of the second class that decided the predictions, unless it is 0.5
};
// Returns the name of a class, or its number if it has no name.
std::string name_of_class(const std::vector<std::string>& class_names, size_t index);
std::string evaluation_json(const EvaluationRecord& record);  // ends with a newline
// Returns nullopt if the text is no such record.
std::optional<EvaluationRecord> parse_evaluation(std::string_view json);

// ---- pictures and the page of a run --------------------------------------------------------------------------------

struct PlotRequest {
  // A file that ends in .png or .svg, for one picture with all charts; or a directory, which exists or ends in "/", for
  // one picture of each chart in both formats; "": JOB-ID.png.
  std::string output;
  std::vector<std::string> metrics;  // only these: "val/loss", or "loss" for all splits; empty: all
};
struct PlotResult {
  std::vector<std::string> files, notes;  // notes: sentences about charts that cannot be drawn, and why
};
// Draws a run, which may be in progress. Throws Error if the output has another ending, if the run has no such metric,
// or if the disk fails.
PlotResult plot_run(const RunSummary& run, const PlotRequest& request, Disk& disk);

// A step of a range test of the learning rate.
struct RateLoss {
  double lr = 0, loss = 0, smoothed = 0;
};
// Returns the content of a file with the curve of the test: an .svg if `vector`, else a .png.
std::string rate_picture(const std::string& job, const std::vector<RateLoss>& losses, double suggestion, bool vector);

// Returns the page of a run that ends in this way, from its files: one HTML file that needs no other file, no network
// and no scripts. Returns "" if the directory is no run. Throws an exception only if memory is short.
std::string run_page(const std::string& directory, const rundir::Outcome& outcome);
// Writes run_page() to report.html. Returns why it could not, or "". Throws nothing, because a page is never worth a
// run.
std::string keep_run_page(Disk& disk, const std::string& directory, const rundir::Outcome& outcome) noexcept;

}  // namespace sinew::report
