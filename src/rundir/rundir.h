// Run directories: the names of their files, their lock, how they are made and found, how a run ended, and how growing
// files are read.
//
// All code that writes or reads run directories uses rundir/, so that each name and each format is defined once.
// docs/formats/run-directory.md describes the formats. The functions read the disk at every call and keep no state.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/disk.h"
#include "base/experiment.h"
#include "base/load_use.h"
#include "base/resource_use.h"
#include "base/stage_timer.h"
#include "rundir/job_changes.h"
#include "spec/spec.h"

namespace sinew::rundir {

// ---- names ---------------------------------------------------------------------------------------------------------

inline constexpr const char* kJobFile = "job.yaml";            // the job as the user gave it
inline constexpr const char* kResolvedFile = "resolved.yaml";  // the job with every `auto` decided; every run has it
inline constexpr const char* kDataManifest = "data.json";
inline constexpr const char* kEnvironmentFile = "environment.json";
inline constexpr const char* kMetricsFile = "metrics.jsonl";
inline constexpr const char* kLoggedMetricsFile = "mlflow.jsonl";  // what a command logged through MLflow
inline constexpr const char* kLogFile = "log.jsonl";
inline constexpr const char* kLedgerFile = "ledger.jsonl";
inline constexpr const char* kAttemptsFile = "attempts.jsonl";
inline constexpr const char* kEndsFile = "ends.jsonl";  // the options of the end that users changed
inline constexpr const char* kOutcomeFile = "report.json";
inline constexpr const char* kAccountsFile = "accounts.json";  // what a run has spent so far, while it trains
inline constexpr const char* kRunPageFile = "report.html";
inline constexpr const char* kTraceFile = "trace.json";
inline constexpr const char* kCoordinatorFile = "coordinator.json";
inline constexpr const char* kCoordinatorLog = "coordinator.log";
inline constexpr const char* kViewFile = "view.json";
inline constexpr const char* kRevokedTokens = "revoked";  // a directory
inline constexpr const char* kLockFile = ".lock";
inline constexpr const char* kCheckpoints = "checkpoints";  // a directory
inline constexpr const char* kTrials = "trials";            // a directory with a run for each trial of a study
inline constexpr const char* kModel = "model";              // a directory: the model artifact
// A file in checkpoints/ of a member of a population. It names the checkpoint with which the member begins, which
// another run with other options made.
inline constexpr const char* kCarriedFile = ".carried";

std::string file_in(const std::string& directory,
                    std::string_view name);  // file_in("runs/x/1", "job.yaml") is "runs/x/1/job.yaml"
// Returns the name of the file with the result of an evaluation: "eval-val.json".
std::string evaluation_file(const std::string& split);

// Compares the texts of two environment.json. Returns in words which facts differ on which the bits of a result depend:
// the processor, the libraries and their variables, not the number of cores. Returns "" if none differs, or if a text
// is no such file.
std::string environment_changes(const std::string& before, const std::string& now);

// ---- one writer a directory ----------------------------------------------------------------------------------------

// A process holds the lock while it writes to a run's directory; a second process is refused. The lock is an advisory
// flock(2); it does not matter whether the lock file exists. The kernel releases the lock when the last process that
// has the file open ends, however it ends.
class RunLock {
 public:
  // If another process holds the lock, returns a sentence that names the holder's pid and host. Waits up to
  // kPatienceSeconds first, because lock_is_held() takes the lock for an instant. Throws Error if the directory cannot
  // have a lock.
  static constexpr double kPatienceSeconds = 0.2;
  static std::expected<RunLock, std::string> take(const std::string& directory, Clock& clock = system_clock());
  RunLock(RunLock&&) noexcept;
  RunLock& operator=(RunLock&&) noexcept;
  ~RunLock();
  // If a process forks, its child inherits this descriptor and shares the lock.
  int descriptor() const { return descriptor_; }

 private:
  explicit RunLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

// Notices that a path no longer leads to the directory in which a run began: the directory was moved or removed, its
// lock file was removed, or another directory took its name. Then another training may lock the path, and this one must
// not write there any more. Keeps the lock file open, so that its inode is not used again. Any thread may call lost().
class RunPlace {
 public:
  // `lock` is the descriptor of the directory's RunLock, if this process holds the lock. Otherwise the present lock
  // file identifies the directory; if there is none, the place never counts as lost.
  explicit RunPlace(std::string directory, int lock = -1);
  RunPlace(const RunPlace&) = delete;
  RunPlace& operator=(const RunPlace&) = delete;
  ~RunPlace();
  // Returns what happened to the directory. Returns "" if nothing did, or if the file system cannot tell now.
  std::string lost() const;

 private:
  std::string directory_;
  int descriptor_ = -1;
};

bool lock_is_held(const std::string& directory);

// The processes that lead a study each hold the lock of a directory below this one.
inline constexpr const char* kLeaders = ".sinew/processes";
// Returns the directory of a living leader, or "" if none leads the study. A leader begins only while it holds the
// study's own lock, so none can begin while the caller holds that lock.
std::string leading_place(const std::string& study);
// Returns the directory with the lock that a process of the run holds now: the run's own, or that of a leader if the
// run is a study. Returns "" if the run does not run.
std::string running_place(const std::string& directory);
inline bool is_running(const std::string& directory) {
  return !running_place(directory).empty();
}

// The last holder of the lock. The lock file names it, or the kernel to another user. It may have ended meanwhile.
struct LockHolder {
  pid_t pid = 0;
  std::string host;
  bool operator==(const LockHolder&) const = default;
};
std::string to_string(const LockHolder& holder);                      // the text of the lock file: "pid 4711 on host-a"
std::optional<LockHolder> lock_holder(const std::string& directory);  // nullopt if nothing names a holder

// ---- making a run --------------------------------------------------------------------------------------------------

// Makes a name <root>/<job>/<utc>-<id> for a run that starts now. Does not create the directory.
std::string new_run_directory(const std::string& root, const std::string& job_name, Clock& clock);

// Writes `job` as the run's job file, and the overrides as comments at its end. If the directory's run ended before it
// wrote resolved.yaml, replaces its job file. If the directory already holds a run, throws UsageError, unless `resume`
// is set and the run's job file has the same text.
void keep_job_file(const std::string& directory, const std::string& job, const std::vector<std::string>& overrides,
                   bool resume);

// Removes unfinished files that killed processes left in the run directory, its checkpoints and its model. Ignores
// errors of the disk. The caller must hold the lock.
void remove_abandoned_writes(Disk& disk, const std::string& run_directory);

// ---- finding runs --------------------------------------------------------------------------------------------------

bool is_run(const std::string& directory);  // returns whether it has a resolved.yaml
// Returns the runs below `root`, at most six levels deep, in no particular order. Skips symbolic links and directories
// whose names begin with a dot.
std::vector<std::string> run_directories(const std::string& root);
// Returns the directory of the run that `name` means: a directory, "last", the end of a run's id, or "<job>/<id>".
// Throws Error if no run matches, or more than one.
std::string find_run(const std::string& root, const std::string& name);
// Returns when the run started, in seconds since 1970. Takes the first of these that is known: its outcome, its id, its
// first metrics line, the modification time of its resolved.yaml. Returns 0 if none is known.
double started_wall_seconds(const std::string& directory);

// Parses resolved.yaml into dotted keys with the values as they are written. Throws Error with the position if the text
// is not a YAML mapping or is too large to be a job.
std::map<std::string, std::string> flat_options(const std::string& yaml);
// Returns whether the option with this key only decides where and how a run trains. Such an option changes no bit of
// the result.
bool is_of_the_machine(const std::string& key);

// ---- deleted runs: ROOT/.deleted, which no search for runs looks into ----------------------------------------------

std::string deleted_root(const std::string& root);  // the deleted runs lie below it as they lay below the root
// Moves a run below `root` to the deleted runs. Returns its new directory. Throws UsageError if it trains now, or if it
// is not below the root.
std::string delete_run(const std::string& root, const std::string& directory);
// Moves a deleted run back. `name` as in find_run(). Returns its directory. Throws Error if there is a run.
std::string restore_run(const std::string& root, const std::string& name);
void remove_deleted_run(const std::string& root, const std::string& name);  // for good

// ---- another end ---------------------------------------------------------------------------------------------------

// Returns whether the option with this key only decides when training ends, such as trainer.max_duration. A run that
// goes on may have another value.
bool is_of_the_end(const std::string& key);
// Gives a run the options of `job`, which may differ from its own only in options of the end and of the machine:
// appends a line for each changed option of the end to ends.jsonl, and writes resolved.yaml with the comments that it
// has. Throws UsageError if another option differs, or if the run trains now.
// Calls `before_writing`, which may throw, once the change is known to be allowed; the lock of the run is held then.
void change_end(
    const std::string& directory, const spec::Job& job, Clock& clock,
    const std::function<void()>& before_writing = [] {});
// Returns whether ends.jsonl says that a user gave the option this value. A resolved.yaml that differs from a
// checkpoint although no user wanted that is damaged, or someone edited it.
bool user_wanted_end(Disk& disk, const std::string& directory, const std::string& key, const std::string& value);

// ---- how a run ended: report.json ----------------------------------------------------------------------------------

struct BestMetric {
  std::string metric;
  double value = 0;
  int64_t step = 0;
};
struct ObjectiveResult {
  std::string text;  // "val/accuracy >= 0.92"
  bool met = false;
  double value = 0;  // the value of the objective's metric; NaN if the metric was never measured
};

// One fold of a cross-validation, which is a run of its own.
struct FoldResult {
  int64_t fold = 0;
  std::string run;                        // its directory, relative to that of the cross-validation
  std::string status;                     // as Outcome::status
  std::map<std::string, double> metrics;  // of the model with which it ended
};

// What the memory of a worker is for, in bytes. The peak of all of it is in ResourceUse.
struct MemoryUse {
  int64_t program = 0;                    // resident before the data were opened: the program and its libraries
  int64_t data = 0;                       // the most that opening the data added
  int64_t parameters = 0, optimizer = 0;  // the tensors of the state
  bool operator==(const MemoryUse&) const = default;
};

// What the forward and backward passes of a layer do in a step, in all shards together.
struct LayerUse {
  std::string name;             // "conv1", "blocks.0.attn.qkv"; an operator without parameters: "relu 8x64"
  int64_t calls = 0;            // of its operators that compute or move something
  double flops = 0, bytes = 0;  // floating-point operations; memory read and written, as if no cache kept anything
  int64_t parameters = 0;       // numbers
  bool operator==(const LayerUse&) const = default;
};
// What training the model takes: layers are counted in one shard, which stands for all others.
struct ModelUse {
  // The layers with the most operations first. The last one may be the sum of all further ones, with this name.
  static constexpr const char* kOther = "other";
  static constexpr size_t kMostLayers = 30;  // without kOther
  std::vector<LayerUse> layers;
  double flops_per_step = 0;   // of a step with a whole batch
  int64_t gradient_bytes = 0;  // of the sums of a step
  int64_t steps = 0;           // that the run has made in this attempt
  double flops = 0;            // that this worker has computed in these steps; other workers have computed the rest
  bool operator==(const ModelUse&) const = default;
};
// A forecast that a run made when a part of its steps was done, so that it can be compared with what came.
struct MetricForecast {
  int64_t step = 0, last_step = 0;             // of the forecast; of the training, as it was expected then
  double best = 0, low = 0, high = 0;          // the best value until then; the best one at the end lies in this range
  double none_better = 0;                      // the probability that no better value comes
  double seconds_low = -1, seconds_high = -1;  // the whole training takes so long; < 0: not known
  bool operator==(const MetricForecast&) const = default;
};
struct MetricForecasts {
  std::string metric;
  std::vector<MetricForecast> made;  // when about 25 %, 50 % and 75 % of the steps were done, as far as it was possible
  std::optional<double> best;        // the best value until the end
  int64_t best_step = 0;
};

// The content of report.json. A run writes this file last, with write_durably. When a run is resumed, the worker first
// removes the report of the earlier attempt.
struct Outcome {
  std::string status = "done";  // done | failed | stopped | budget
  int exit_code = 0;
  std::string job;
  double started_wall_seconds = 0, seconds = 0;
  int64_t steps = 0, samples = 0;
  double epochs = 0;
  std::string digest;  // the digest of the final training state in hex; empty if there is none
  std::optional<BestMetric> best;
  std::optional<ObjectiveResult> objective;
  std::map<std::string, double> last;
  // Of a cross-validation. `last` then has the mean of each metric over the folds, and under NAME_std its standard
  // deviation, the root of the squared distances from the mean divided by folds - 1.
  std::vector<FoldResult> folds;
  std::string error, hint;  // why the run failed and what to try; empty if it did not fail
  // Of the worker that wrote the report, in its last attempt.
  std::optional<StageTimes> time;
  std::optional<ResourceUse> resources;  // between the first step and the end of the last one
  std::optional<LoadUse> loading;
  // The shares of a step that the members of the group have had at the end, this worker's own first: each in proportion
  // to the speed of its member. Empty if the worker was alone.
  std::vector<double> shares;
  std::optional<MemoryUse> memory;
  std::vector<ConditionTime> experiments;  // of the newest experiment; empty if there was none
  std::optional<ModelUse> model;
  std::optional<MetricForecasts> forecasts;
  // Of all attempts, if budget.cost or budget.energy limits the run.
  std::optional<double> cost, kilowatt_hours;
  // Set if this attempt failed before it could train: the status of the last attempt that trained. The steps, samples,
  // epochs, digest and metrics above are then those of that attempt.
  std::string earlier_status;
};
std::string outcome_json(const Outcome& outcome);  // ends with a newline
// Returns nullopt if the text is not an outcome, and stores the reason in `why`.
std::optional<Outcome> parse_outcome(std::string_view json, std::string* why = nullptr);

// accounts.json: the fields of report.json that are known while a run trains. Its status is kRunning.
inline constexpr const char* kRunning = "running";
std::optional<Outcome> parse_accounts(std::string_view json, std::string* why = nullptr);
// Removes accounts.json, because report.json says it all. Ignores errors of the disk: readers prefer report.json.
void remove_accounts(Disk& disk, const std::string& run_directory);

// Returns the text of report.json in the run directory, or "" if it is missing or unreadable.
std::string report_text(Disk& disk, const std::string& run_directory);
// Describes an attempt that may fail before its training loop can report it.
struct Attempt {
  std::string run_directory, job;
  double began_wall_seconds = 0;
  std::string report_at_begin;  // report_text() when the attempt began
};
// Sets `outcome` to the failure of a run. `error` says why it failed, `hint` what to try.
void set_failed(Outcome& outcome, const std::string& error, const std::string& hint);
// Writes a report that the attempt failed, unless the attempt has written its own. Replaces the report of an earlier
// attempt, but keeps its steps, digest and metrics. Ignores all errors of the disk, because the user must see the
// failure itself. Returns the outcome that it wrote, or nullopt.
std::optional<Outcome> report_failed_attempt(Disk& disk, const Attempt& attempt, const std::string& error,
                                             const std::string& hint, double now_wall_seconds);

// ---- files that grow -----------------------------------------------------------------------------------------------

// A place in a growing file up to which a reader has read. A resumed run truncates its files and then appends to them.
// Once a file has grown past the reader's offset again, its size no longer shows the truncation. So a position also
// contains a digest of the bytes just before it. Every line contains the time when it was written. So a line that is
// written again differs from the old one.
struct FilePosition {
  uint64_t offset = 0;
  bool inside = false;  // true: the offset is inside an overlong line, whose rest the reader skips
  std::string window;   // digest of the bytes before `offset`, at most kWindow of them; empty at the beginning
  bool operator==(const FilePosition&) const = default;
};
inline constexpr uint64_t kWindow = 4096;

struct FilePiece {
  // true: the file was truncated; discard all earlier text, because this piece starts at the beginning
  bool cut_back = false;
  std::string text;      // whole lines
  int64_t too_long = 0;  // number of overlong lines that were skipped
  FilePosition after;
  bool more = false;  // true: the file may have more text, so read again without waiting
};

// Reads the whole lines within the next `piece_bytes` bytes after `position`. A missing file counts as empty. Throws
// DiskError if the file cannot be read or is not a regular file.
FilePiece read_piece(const std::string& path, const FilePosition& position, int64_t piece_bytes);

// Returns the position at the present end of the file, for a reader that wants only what comes later. Returns the
// beginning if there is no file.
FilePosition end_of_file(const std::string& path);

// Follows one growing file of lines.
class GrowingFile {
 public:
  explicit GrowingFile(std::string path) : path_(std::move(path)) {}
  struct NewLines {
    bool cut_back = false;  // true: the file was truncated; forget the lines of earlier calls
    std::vector<std::string> lines;
  };
  NewLines next();  // returns all whole lines since the last call

 private:
  std::string path_;
  FilePosition position_;
};

}  // namespace sinew::rundir
