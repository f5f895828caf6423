// The index: copies metadata and metrics of run directories into the store. Each pass copies only what is new.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/hex.h"
#include "registry/index_changes.h"
#include "registry/index_lease.h"
#include "registry/read_progress.h"
#include "registry/registry.h"
#include "rundir/rundir.h"

namespace sinew::registry {
namespace {

using rundir::file_in;
using store::Kind;

constexpr int kMaxIndexAttempts = 50;  // an attempt fails only if another process changes the record meanwhile
// most pieces of one run in a pass, so that a long file does not delay other runs
constexpr int64_t kMaxPieces = 16;
constexpr const char* kRootNote = "registry.root";

// The directory of a run: `path` below `root`.
struct RunPlace {
  const std::string& root;
  const std::string& path;
};

// Reads the next piece of a growing file of the run. A missing file counts as empty.
rundir::FilePiece next_piece(const RunPlace& place, const char* name, const rundir::FilePosition& mark, int64_t bytes) {
  try {
    const auto run = open_run(place.root, place.path);
    const auto file = run ? open_in_run(*run, place.path, name) : std::nullopt;
    constexpr const char* kNoFile = "";  // no file has this name
    return rundir::read_piece(file ? file->path() : kNoFile, mark, bytes);
  } catch (const DiskError& error) {
    throw Problem{std::string(name) + " cannot be read: " + std::strerror(error.system_code)};
  } catch (const Error& error) {
    throw Problem{error.what()};
  }
}

std::optional<RunFiles> files_of(const std::string& root, const std::string& path) {
  try {
    return read_run_files(root, path);
  } catch (const Error& error) {
    throw Problem{error.what()};
  }
}

struct KnownRun {
  std::string id;
  ReadProgress reading;
  bool over = false, hidden = false;
  // the series that came from the run's metrics.jsonl; loaded when needed
  std::optional<std::set<std::string>> keys = {};
};

void add_problem(PassReport& report, const std::string& what) {
  if (report.problems.size() < 1000) report.problems.push_back(clean_text(what, 1000));
}

// Turns metric lines into changes, one for each series. If the file was cut back, drops the series that came from the
// file, and no others. The index then reads the file again from its beginning.
void take_points(store::Store& store, KnownRun& run, const std::string& path, const rundir::FilePiece& piece,
                 PassReport& report, std::vector<store::Change>& changes) {
  if (piece.text.empty() && !piece.cut_back && piece.too_long == 0) return;
  if (!run.keys) run.keys = keys_from_note(store.note(keys_note_of(run.id)));
  if (piece.cut_back) changes.push_back(store::DropPoints{run.id, INT64_MIN, run.keys});
  const size_t known_keys = run.keys->size();
  std::map<std::string, std::vector<store::Point>> series;
  for (size_t at = 0; at < piece.text.size();) {
    const size_t end = piece.text.find('\n', at);
    std::string_view line = std::string_view(piece.text).substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    std::string why;
    const auto record = report::parse_metrics_line(line, &why);
    if (!record) {
      add_problem(report, file_in(path, rundir::kMetricsFile) + ": a line is not a metrics record: " + why);
      continue;
    }
    for (const auto& [name, value] : record->values)
      series[name].push_back({record->step, std::llround(record->wall_seconds * 1000), value});
  }
  for (auto& [name, points] : series) {
    const std::string key = clean_text(name, 500);
    if (key.empty()) continue;
    report.points += static_cast<int64_t>(points.size());
    run.keys->insert(key);
    changes.push_back(store::AddPoints{run.id, key, std::move(points)});
  }
  if (run.keys->size() > known_keys) changes.push_back(store::SetNote{keys_note_of(run.id), keys_to_note(*run.keys)});
  if (piece.too_long > 0)
    add_problem(report, file_in(path, rundir::kMetricsFile) + ": a line is too long to be a metrics record");
}

// Returns how often `word` has occurred in the file so far. Goes on from `mark`, where the count was `count`.
int64_t count_in(const RunPlace& place, const char* name, std::string_view word, rundir::FilePosition& mark,
                 int64_t count, int64_t piece_bytes) {
  while (true) {
    const rundir::FilePiece piece = next_piece(place, name, mark, piece_bytes);
    if (piece.cut_back) count = 0;
    for (size_t at = piece.text.find(word); at != piece.text.npos; at = piece.text.find(word, at + 1)) ++count;
    mark = piece.after;
    if (!piece.more) return count;
  }
}

// Counts attempts. log.jsonl of a training has an event for each resume. attempts.jsonl of a command has an event for
// each attempt.
void read_attempts(const RunPlace& place, ReadProgress& reading, int64_t piece_bytes) {
  reading.resumes =
      count_in(place, rundir::kLogFile, "\"event\":\"resume\"", reading.log, reading.resumes, piece_bytes);
  reading.begins =
      count_in(place, rundir::kAttemptsFile, "\"event\":\"begin\"", reading.attempts, reading.begins, piece_bytes);
}

}  // namespace

struct Index::State {
  State(store::Store& store, IndexOptions given)
      : store(store), options(std::move(given)), lease(store, options.holder) {}

  // Ensures that the store indexes only one root, because a pass hides all runs that are not below its root.
  void check_root() {
    std::error_code code;
    const std::string root = std::filesystem::canonical(options.root, code).string();
    if (code)
      throw Error("INDEX_ROOT_UNREADABLE", "cannot open the directory " + options.root + ": " + code.message(),
                  "name the directory of the runs with --root");
    const std::string noted = store.note(kRootNote);
    if (noted == root) return;
    if (!noted.empty() && std::filesystem::is_directory(noted, code))
      throw Error("INDEX_OTHER_ROOT", "this store indexes the runs in " + noted + ", not those in " + root,
                  "use another store for this directory: --store");
    lease.write({store::SetNote{kRootNote, root}});
  }

  void load_known() {
    if (loaded) return;
    check_root();
    known.clear();
    store.each({.kind = Kind::kRun, .hidden = true, .metrics = false}, [&](const store::Record& record) {
      const auto directory = record.tags.find(kTagDirectory);
      if (directory == record.tags.end()) return;  // not indexed from a directory
      const auto there = known.find(directory->second);
      if (there != known.end() && !there->second.hidden) return;  // a newer run has this directory
      const ReadProgress reading = from_note(store.note(progress_note_of(record.subject.id)));
      known[directory->second] = {record.subject.id, reading, store::is_over(record.state),
                                  record.hidden && reading.gone};
    });
    loaded = true;
  }

  std::string experiment_of(const std::string& job) {
    if (const auto it = experiments.find(job); it != experiments.end()) return it->second;
    const auto named = store.list({.kind = Kind::kExperiment, .name = job, .hidden = true, .metrics = false});
    const bool joins = !named.empty() && (named[0].owner.empty() || is_admin(named[0].owner));
    std::string id = joins ? named[0].subject.id : job;
    if (!joins && !store.find({Kind::kExperiment, id})) {  // if this exists, a user has renamed it
      store::Create create;
      create.subject = {Kind::kExperiment, id};
      create.name = named.empty() ? job : clean_text(job, 400) + "-" + random_hex(4);
      lease.write({std::move(create)});
    }
    return experiments[job] = id;
  }

  bool is_admin(const std::string& owner) const { return options.is_admin && options.is_admin(owner); }

  void hide(KnownRun& run, PassReport& report) {
    if (run.hidden) return;
    const auto record = store.find({Kind::kRun, run.id});
    if (!record || !record->hidden) {  // a run that a user hid stays hidden even if its directory comes back
      run.reading.gone = true;
      lease.write({store::Update{{Kind::kRun, run.id}, {}, {}, true},
                   store::SetNote{progress_note_of(run.id), to_note(run.reading)}});
      ++report.hidden;
    }
    run.hidden = true;
  }

  void index_run(const std::string& path, KnownRun& run, PassReport& report) {
    const std::string directory = options.root + "/" + path;
    const std::string signature = signature_of(directory);
    if (!run.id.empty() && !run.hidden && run.reading.seen == signature && (run.over || rundir::is_running(directory)))
      return;
    const auto files = files_of(options.root, path);
    if (!files) return;
    for (const std::string& what : files->problems) add_problem(report, what);
    if (run.id != files->id) {
      if (!run.id.empty()) hide(run, report);  // now another run has this directory
      run = {files->id, from_note(store.note(progress_note_of(files->id))), false, false};
    }
    std::vector<store::Change> changes;
    const store::Subject subject{Kind::kRun, files->id};
    if (!store.find(subject)) {
      changes.push_back(creation_of(*files, experiment_of(files->job)));
      ++report.added;
    }
    run.reading.seen.clear();
    if (!read_points(path, run, changes, report)) return;
    read_attempts({options.root, path}, run.reading, options.piece_bytes);
    finish(*files, run, std::move(changes), signature);
    ++report.changed;
  }

  // Returns false if it did not reach the end of the file.
  bool read_points(const std::string& path, KnownRun& run, std::vector<store::Change>& changes, PassReport& report) {
    for (int64_t pieces = 0;; ++pieces) {
      const rundir::FilePiece piece =
          next_piece({options.root, path}, rundir::kMetricsFile, run.reading.metrics, options.piece_bytes);
      take_points(store, run, path, piece, report, changes);
      run.reading.metrics = piece.after;
      if (!piece.more) return true;
      changes.push_back(store::SetNote{progress_note_of(run.id), to_note(run.reading)});
      lease.write(std::move(changes));
      changes.clear();
      if (pieces + 1 == kMaxPieces || should_stop()) return report.unfinished = true, false;
    }
  }

  void finish(const RunFiles& files, KnownRun& run, std::vector<store::Change> changes, const std::string& signature) {
    if (!changes.empty()) {
      changes.push_back(store::SetNote{progress_note_of(run.id), to_note(run.reading)});
      lease.write(std::move(changes));
    }
    run.reading.seen = signature;
    for (int attempt = 0; !bring_up_to_date(files, run); ++attempt) {
      if (attempt == kMaxIndexAttempts)
        throw Problem{"other processes changed its record during each attempt to update it"};
    }
    const auto now = store.find({Kind::kRun, run.id});
    run.over = now && store::is_over(now->state);
    run.hidden = run.reading.gone = false;
  }

  // Returns false if another process changed the record meanwhile. Then the caller must try again.
  bool bring_up_to_date(const RunFiles& files, KnownRun& run) {
    const store::Subject subject{Kind::kRun, run.id};
    const int64_t seen = store.newest_event(subject);
    const auto record = store.find(subject);
    if (!record) return true;  // another process removed the record
    auto changes = changes_of(files, *record, std::max(run.reading.resumes, run.reading.begins - 1), run.reading.gone);
    ReadProgress after = run.reading;
    after.gone = false;
    changes.push_back(store::SetNote{progress_note_of(run.id), to_note(after)});
    return lease.write_if_unchanged(std::move(changes), store::Batch::Unchanged{subject, seen});
  }

  // Runs `work` for one run. If it fails, reports the problem, so that the pass can go on with the other runs.
  template <typename Work>
  void report_problems_of(const std::string& path, KnownRun& run, PassReport& report, Work work) {
    try {
      work();
    } catch (const Problem& problem) {
      if (!store.find({Kind::kRun, run.id})) run = {};  // its record was never created, so there is nothing to hide
      if (!run.id.empty()) run.reading = from_note(store.note(progress_note_of(run.id)));
      run.keys.reset();
      add_problem(report, path + ": " + problem.what);
    }
  }

  bool should_stop() const { return options.should_stop && options.should_stop(); }

  void pass(PassReport& report) {
    load_known();
    const RunDirectories directories = run_directories(options.root);
    report.runs = static_cast<int64_t>(directories.runs.size());
    std::set<std::string> there;
    for (const std::string& path : directories.runs) {
      if (should_stop()) {  // the pass has not seen all directories, so it must hide no run
        report.unfinished = true;
        return;
      }
      const std::string name = clean_text(path, 4000);
      there.insert(name);
      KnownRun& run = known[name];
      report_problems_of(path, run, report, [&] { index_run(path, run, report); });
    }
    for (const auto& [path, why] : directories.unlisted)
      add_problem(report, path + ": cannot be listed: " + why + "; the records of its runs stay unchanged");
    const auto may_be_there = [&](const std::string& path) {
      return there.contains(path) ||
             std::any_of(directories.unlisted.begin(), directories.unlisted.end(), [&](const auto& folder) {
               const std::string name = clean_text(folder.first, 4000);
               return path == name || path.starts_with(name + "/");
             });
    };
    for (auto& [path, run] : known) {
      if (!run.id.empty() && !may_be_there(path)) report_problems_of(path, run, report, [&] { hide(run, report); });
    }
  }

  store::Store& store;
  IndexOptions options;
  IndexLease lease;
  bool loaded = false;
  std::map<std::string, KnownRun> known;           // by the path below the root
  std::map<std::string, std::string> experiments;  // the experiment's id, by the job's name
};

Index::Index(store::Store& store, IndexOptions options) : state_(std::make_unique<State>(store, std::move(options))) {}

Index::~Index() = default;

PassReport Index::pass() {
  PassReport report;
  if (!state_->lease.renew()) {
    state_->loaded = false;
    report.held_by = state_->lease.acquire();
    if (!report.held_by.empty()) return report;
  }
  try {
    state_->pass(report);
  } catch (const LeaseLost& other) {
    state_->lease.forget();
    state_->loaded = false;
    report.held_by = other.why;
  } catch (const Problem& problem) {
    throw Error("INDEX_FAILED", problem.what, "check that the store can be written");
  } catch (...) {  // a write may or may not have succeeded, so the next pass loads everything again
    state_->loaded = false;
    throw;
  }
  return report;
}

}  // namespace sinew::registry
