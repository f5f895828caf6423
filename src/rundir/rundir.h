// A run's directory: the names of its files, its lock, how it is made and found, how the run ended, and reading files
// that grow.
//
// Rooms that write or read run directories call this one, so that each name and each format is spelt once. The files'
// formats: docs/formats/run-directory.md. Every function here works on the disk as it is now; none keeps state.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace sinew::rundir {

// ---- names ---------------------------------------------------------------------------------------------------------

inline constexpr const char* kJobFile = "job.yaml";            // the job as the user gave it
inline constexpr const char* kResolvedFile = "resolved.yaml";  // the job with every `auto` decided; makes it a run
inline constexpr const char* kDataManifest = "data.json";
inline constexpr const char* kEnvironmentFile = "environment.json";
inline constexpr const char* kMetricsFile = "metrics.jsonl";
inline constexpr const char* kLogFile = "log.jsonl";
inline constexpr const char* kLedgerFile = "ledger.jsonl";
inline constexpr const char* kAttemptsFile = "attempts.jsonl";
inline constexpr const char* kOutcomeFile = "report.json";
inline constexpr const char* kCoordinatorFile = "coordinator.json";
inline constexpr const char* kCoordinatorLog = "coordinator.log";
inline constexpr const char* kViewFile = "view.json";
inline constexpr const char* kLockFile = ".lock";
inline constexpr const char* kCheckpoints = "checkpoints";  // a directory
inline constexpr const char* kModel = "model";              // a directory: the model artifact

std::string file_in(const std::string& directory,
                    std::string_view name);  // "runs/x/1" and "job.yaml": "runs/x/1/job.yaml"

// ---- one writer a directory ----------------------------------------------------------------------------------------

// A process holds the lock while it writes to a run's directory; a second process is refused. The kernel releases the
// lock when the last process that has it open ends, however it ends (an advisory flock, not the file's existence).
class RunLock {
 public:
  // Returns the reason, which names the holder's pid and host, if another process holds the lock. Waits up to
  // kPatienceSeconds first, because lock_is_held() takes the lock for an instant. Throws Error if the directory cannot
  // have a lock.
  static constexpr double kPatienceSeconds = 0.2;
  static std::expected<RunLock, std::string> take(const std::string& directory, Clock& clock = system_clock());
  RunLock(RunLock&&) noexcept;
  RunLock& operator=(RunLock&&) noexcept;
  ~RunLock();
  // For a forked process that should share the lock.
  int descriptor() const { return descriptor_; }

 private:
  explicit RunLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

bool lock_is_held(const std::string& directory);

// What the lock file says about its last holder, who may have ended since.
struct LockHolder {
  pid_t pid = 0;
  std::string host;
  bool operator==(const LockHolder&) const = default;
};
std::string to_string(const LockHolder& holder);                      // "pid 4711 on host-a": the text of the lock file
std::optional<LockHolder> lock_holder(const std::string& directory);  // nullopt: no lock file, or none that says it

// ---- making a run --------------------------------------------------------------------------------------------------

// <root>/<job>/<utc>-<id> for this instant; the directory is not created.
std::string new_run_directory(const std::string& root, const std::string& job_name, Clock& clock);

// Writes `text` as the run's job file. A directory whose run ended before resolved.yaml was written is used again.
// Throws UsageError if the directory holds another run: any run, unless `resume` is set and its job file has the same
// text.
void keep_job_file(const std::string& directory, const std::string& text, bool resume);

// ---- finding runs --------------------------------------------------------------------------------------------------

bool is_run(const std::string& directory);  // it has a resolved.yaml
// Every run below `root`, in no order; directories whose names begin with a dot are left out.
std::vector<std::string> run_directories(const std::string& root);
// The run that `name` means: a directory, "last", the end of a run's id, or "<job>/<id>". Throws Error if no run or
// more than one fits.
std::string find_run(const std::string& root, const std::string& name);
// When the run started, in seconds since 1970: from its outcome, else from its id, else from its first metrics line,
// else from the time of its resolved.yaml.
double started_wall_seconds(const std::string& directory);

// resolved.yaml as a flat list: dotted keys and the values as written. Throws Error naming the place if the text is not
// a YAML mapping, or is too large to be a job.
std::map<std::string, std::string> flat_options(const std::string& yaml);

// ---- how a run ended: report.json ----------------------------------------------------------------------------------

struct BestMetric {
  std::string metric;
  double value = 0;
  int64_t step = 0;
};
struct ObjectiveResult {
  std::string text;  // "val/accuracy >= 0.92"
  bool met = false;
  double value = 0;  // of the metric that was judged; NaN: never measured
};

// The worker writes report.json last, with write_durably, and removes that of an earlier attempt when it resumes.
struct Outcome {
  std::string status = "done";  // done | failed | stopped | budget
  int exit_code = 0;
  std::string job;
  double started_wall_seconds = 0, seconds = 0;
  int64_t steps = 0, samples = 0;
  double epochs = 0;
  std::string digest;  // of the final training state, hexadecimal; empty: none
  std::optional<BestMetric> best;
  std::optional<ObjectiveResult> objective;
  std::map<std::string, double> last;
  std::string error, hint;  // of a failed run
};
std::string outcome_json(const Outcome& outcome);  // ends with a newline
// nullopt: the text is no outcome; `why` then says what is wrong with it.
std::optional<Outcome> parse_outcome(std::string_view json, std::string* why = nullptr);

// ---- files that grow -----------------------------------------------------------------------------------------------

// A resumed run cuts its files back and writes on. The size alone does not show a cut once the file has outgrown what
// was read, so a position remembers a digest of the last bytes before it. A line carries the time it was written, so a
// line that was written again differs.
struct FilePosition {
  uint64_t offset = 0;
  bool inside = false;  // of an overlong line: the rest of it is passed over
  std::string window;   // digest of the bytes before offset, at most kWindow of them; empty at the beginning
  bool operator==(const FilePosition&) const = default;
};
inline constexpr uint64_t kWindow = 4096;

struct FilePiece {
  bool cut_back = false;  // the file was cut: what was read before is void, and this piece starts at the beginning
  std::string text;       // whole lines
  int64_t too_long = 0;   // overlong lines that were passed over
  FilePosition after;
  bool more = false;  // the file has more to read at once
};

// Reads the whole lines after `position`, at most `piece_bytes` of them. A missing file counts as empty. Throws
// DiskError if it cannot be read or is not a regular file.
FilePiece read_piece(const std::string& path, const FilePosition& position, int64_t piece_bytes);

// The position at the present end of the file, for a reader that skips what is there. The beginning if there is no
// file.
FilePosition end_of_file(const std::string& path);

// Follows one growing file of lines.
class GrowingFile {
 public:
  explicit GrowingFile(std::string path) : path_(std::move(path)) {}
  struct NewLines {
    bool cut_back = false;  // forget the lines of earlier calls
    std::vector<std::string> lines;
  };
  NewLines next();  // all whole lines since the last call

 private:
  std::string path_;
  FilePosition position_;
};

}  // namespace sinew::rundir
