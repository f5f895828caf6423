// The registry: an index of run directories, files that are kept permanently (artifacts), versions of models with their
// lineage, and manifests of data sets. cli/, jobs/ and web/ use it.
//
// The files are authoritative: a run is its directory (docs/formats/run-directory.md), and the index can be rebuilt
// from the run directories at any time. Only the store has versions and aliases, and only the artifacts have the bytes
// of versions. The registry reads run directories and never writes to them, so no run ever waits for it.
//
// Default places: ROOT/.sinew/store.db and ROOT/.sinew/artifacts, where ROOT is `runs`. A search for run directories
// skips names that begin with a dot.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/beneath.h"
#include "base/clock.h"
#include "base/disk.h"
#include "base/error.h"
#include "base/resource_use.h"
#include "base/stage_timer.h"
#include "spec/spec.h"
#include "store/store.h"

namespace sinew::registry {

std::string default_store(const std::string& root);      // ROOT/.sinew/store.db
std::string default_artifacts(const std::string& root);  // ROOT/.sinew/artifacts
// Makes ROOT/.sinew, which only its owner can enter, because it holds the store, the tokens and the artifacts. If the
// directory exists and others can enter it, closes it to them, unless its set-group-ID bit shows that the user shares
// it with a group. Call it before you construct a Store, whose constructor makes only the file.
void make_registry_directory(const std::string& root);

// ---- index ---------------------------------------------------------------------------------------------------------

// The store's record of a run directory has these fields:
//   subject  kRun and run_id_of(path below the root, job), 32 hex digits. The job is the text of job.yaml, which no
//            program rewrites. If there is no job.yaml, the options in resolved.yaml take its place; its text does not,
//            because a newer program may rewrite it when it resumes the run. A directory that is renamed, or that gets
//            a run of another job, is a new run. The index hides the old record until its directory is back. A record
//            that a user hid stays hidden.
//   parent   the experiment with the job's name. If there is none, the experiment with that id, because it was renamed.
//            If there is neither, the index creates an experiment with the job's name as its id.
//   name     the directory's name, <utc>-<id>
//   state, attempt, begun, ended   derived from the run's files and its lock
//   params   resolved.yaml as dotted keys; values are cut off at 6000 bytes
//   tags     the kTag... below
//   points   metrics.jsonl, one series for each metric
//   body     JSON: {"directory", "environment": {}, "report": {}, "checkpoints": ["step-..."], "data": {},
//            "model": {"model.safetensors": bytes}, "problems": [""]}. The index keeps fields that others add.

// The path of the directory below the root: "mnist/20261121T031502Z-1a2b3c"
inline constexpr const char* kTagDirectory = "sinew.directory";
inline constexpr const char* kTagDigest = "sinew.digest";  // the digest of the final training state
inline constexpr const char* kTagStatus = "sinew.status";  // the status that `sinew runs` shows
inline constexpr const char* kTagError = "sinew.error";
std::string run_id_of(std::string_view path_below_root, std::string_view job_yaml, std::string_view resolved_yaml);

struct IndexOptions {
  std::string root = "runs";
  // The text that names this process as the holder of the lease. If it is empty, lease_holder() of base/ makes the
  // text.
  std::string holder = {};
  int64_t piece_bytes = 1 << 20;           // most bytes that are read from a file, and written to the store, at a time
  std::function<bool()> should_stop = {};  // called between runs and pieces; the pass stops early once it returns true
  // Tells whether the owner of an experiment is an administrator. Runs join the experiment that has their job's name if
  // it has no owner or such an owner. Another owner could hide these runs, or give them to whom it likes.
  std::function<bool(const std::string& owner)> is_admin = {};
};
struct PassReport {
  std::string held_by;             // if not empty, this process holds the lease, and the pass did nothing
  int64_t runs = 0;                // number of run directories found
  int64_t added = 0, changed = 0;  // number of runs that are new in the store, and of runs with new data
  int64_t hidden = 0;              // number of runs that this pass hid
  int64_t points = 0;
  std::vector<std::string> problems;  // sentences, each of which names its file
  bool unfinished = false;  // true: some files were not read to their end, so the caller should call again at once
};

// Copies run directories into the store. One thread may use it. The index stores its progress in the same batch as the
// data. So a process that dies at any moment neither loses nor repeats a point. A lease in the store ensures that only
// one process at a time indexes it.
class Index {
 public:
  Index(store::Store& store, IndexOptions options);
  ~Index();
  // Copies everything new into the store. A directory that has not changed costs only a few stat calls. Throws Error if
  // the root cannot be listed or the store cannot be written. If a run cannot be read, the report lists it as a
  // problem.
  PassReport pass();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Finds a run in the store. `name` is its id, its directory (a path, or a path below the root), `last`, or the end of
// its name. Throws Error if no run matches, or more than one.
store::Record find_run(store::Store& store, const std::string& name, const std::string& root = "runs");
// Returns the directory of the run, or "" if the run has none, because a client (MLflow) logged it.
std::string directory_of(const store::Record& run, const std::string& root);

// What the newest attempt of a run has spent: all of it, or so far if it trains.
struct RunAccounts {
  bool running = false;
  int64_t steps = 0, samples = 0;  // since step 0
  double flops = 0;                // see rundir::ModelUse; 0: not counted
  std::optional<StageTimes> time;  // of the worker that led the run, as everything below
  std::optional<ResourceUse> resources;
  std::map<std::string, int64_t> memory_bytes;  // by what it is for, as in report.json; and "peak"
};
// Reads report.json in the directory of a run, or accounts.json if the run has not ended. Returns nullopt if neither is
// there, or if it is damaged.
std::optional<RunAccounts> accounts_in(const BeneathFile& run);

// ---- artifacts: blobs addressed by their SHA-256 -------------------------------------------------------------------

struct BlobInfo {
  std::string digest;  // SHA-256, 64 hex digits
  int64_t bytes = 0;
  bool operator==(const BlobInfo&) const = default;
};

// A content-addressed store of files (blobs) in one directory (docs/formats/artifacts.md). A blob appears as a whole or
// not at all. It is durable once put() returns, and stored once however often it is put. A safetensors file is stored
// tensor by tensor, so that versions share equal tensors; it reads back bit by bit. Any thread and any number of
// processes may use one directory.
class Artifacts {
  struct State;

 public:
  explicit Artifacts(std::string directory, Disk& disk = system_disk(), Clock& clock = system_clock());
  ~Artifacts();

  // A pin protects blobs that were put or kept through it from garbage collection. The protection ends with the pin; if
  // the process dies, it ends after a day. Keep this order: pin, put, attach the blob in the store, unpin.
  class Pin {
   public:
    Pin(Pin&&) noexcept;
    ~Pin();
    BlobInfo put(std::span<const std::byte> bytes);
    BlobInfo put(std::string_view text);
    // Calls `before_copy` before it writes bytes that the artifacts lack, with their number. An exception that it
    // throws ends the put.
    using BeforeCopy = std::function<void(int64_t bytes)>;
    BlobInfo put_file(const std::string& path, const BeforeCopy& before_copy = nullptr);
    // Pins a blob that exists already, so that it can be attached once more. Returns nullopt if it does not exist.
    std::optional<BlobInfo> keep(const std::string& digest);
    // Puts a blob that arrives in pieces, with bounded memory. If the stream is destroyed before finish(), it puts
    // nothing. The stream must not outlive its pin.
    class Stream {
     public:
      Stream(Stream&&) noexcept;
      ~Stream();
      void write(std::span<const std::byte> bytes);
      BlobInfo finish();

     private:
      friend class Pin;
      struct State;
      explicit Stream(std::unique_ptr<State> state);
      std::unique_ptr<State> state_;
    };
    Stream stream();

   private:
    friend class Artifacts;
    struct State;
    explicit Pin(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };
  Pin pin();

  // Returns false for a text that is not a digest. Such a text, for example "../x", never becomes a path.
  bool has(const std::string& digest);
  // Throws Error if the blob does not exist.
  uint64_t size(const std::string& digest);
  std::vector<std::byte> read(const std::string& digest);  // reads the whole blob and checks its digest
  // A blob that a caller reads piece by piece. It knows its chunks, so a piece costs no more than its own bytes.
  class Blob {
   public:
    // Reads from `offset` on until `out` is full or the blob ends. Does not check the bytes; verify() does.
    size_t read_at(uint64_t offset, std::span<std::byte> out) const;

   private:
    friend class Artifacts;
    struct Chunk {
      std::string digest;
      uint64_t end = 0;  // where the chunk ends in the blob
    };
    std::shared_ptr<State> state_;
    std::string digest_;
    std::vector<Chunk> chunks_;  // empty if the blob is stored as one file
  };
  Blob open(const std::string& digest);                              // throws Error if the blob does not exist
  void copy_to(const std::string& digest, const std::string& path);  // durable and atomic; checks the digest
  // Checks that the blob is undamaged before a server sends a part of it: reads all of it and compares its digest.
  // Skips this if the same object did it in the last ten minutes and neither size nor times of the blob's files have
  // changed since. One thread at a time reads a blob. The thread's CostLimit may end the check. Throws Error if the
  // blob is damaged (ARTIFACT_DAMAGED) or missing (ARTIFACT_NOT_FOUND).
  void check(const std::string& digest);
  // Reads the whole blob and checks its digest. The error says what is wrong.
  std::expected<void, std::string> verify(const std::string& digest);
  std::vector<BlobInfo> list();  // all blobs, including those of single tensors
  bool empty();
  const std::string& directory() const;
  // Returns the id of the store that refers to these artifacts, or "" if no store has claimed them yet (see claim()).
  std::string owner();
  void set_owner(const std::string& store_id);  // returns when the owner is durable

  struct Collected {
    int64_t blobs = 0, bytes = 0;       // blobs that were removed, or that would be removed if `dry_run` were false
    int64_t kept = 0, kept_bytes = 0;   // blobs that stay on the disk
    std::vector<std::string> problems;  // sentences about blobs that are referenced, but missing or unreadable
  };
  // Removes every blob that neither `referenced` nor a pin nor a chunk manifest refers to. Calls `referenced` again
  // before each batch of removals. Other processes may put blobs meanwhile. A collection that is killed has removed
  // nothing that is referenced. Only one collection may run at a time; collect_garbage() ensures this.
  Collected collect(const std::function<std::set<std::string>()>& referenced, bool dry_run = false);

 private:
  std::shared_ptr<State> state_;
};

// Checks files of run directories before a server sends them: a file of a model against model.digests.json, and a file
// of a checkpoint against its manifest. Passes other files unchecked. As with Artifacts::check, a result counts for ten
// minutes. Any thread may use it.
class RunFileChecks {
 public:
  explicit RunFileChecks(Clock& clock = system_clock());
  ~RunFileChecks();
  // Checks the file folder/name. Throws Error (WEIGHTS_DAMAGED, CHECKPOINT_DAMAGED) if the file, or the list or
  // manifest beside it, is damaged; the message has `shown` in place of the folder's path.
  void check(const std::string& folder, const std::string& name, const std::string& shown);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// `files` are in the artifacts. For each of their folders that has a model.digests.json, compares the folder's files
// with that list. Throws Error (WEIGHTS_DAMAGED) if they differ, if the list is damaged, or if model.json names a list
// that is missing; `place` names the directory of the files in the message. Returns whether any folder has a list.
bool check_model_files(Artifacts& artifacts, const std::vector<store::Attachment>& files, const std::string& place);

// Artifacts belong to one store, because a garbage collection for any other store would remove all of them. If no store
// owns them yet, claim() makes this store the owner, provided that there are no artifacts or the store refers to some
// of them. Throws Error if another store owns them.
void claim(store::Store& store, Artifacts& artifacts);

// Collects garbage under a lease: removes the blobs that the store does not refer to, and then their records in the
// store. Throws Error if another process is collecting or another store owns the artifacts.
Artifacts::Collected collect_garbage(store::Store& store, Artifacts& artifacts, bool dry_run = false);

// ---- data sets -----------------------------------------------------------------------------------------------------

struct DataFile {
  // the name in the job, which does not depend on the place: "images", "path", or in a folder "path/cats/17.jpg"
  std::string name;
  std::string path;  // the path that the job gives
  int64_t bytes = 0;
  std::string digest;  // SHA-256
  bool operator==(const DataFile&) const = default;
};
struct DataSplit {
  // If the split has its own files: the digest of their names, of their digests and of `view`; paths do not count.
  // Otherwise: the digest of the split's name, of `from_train` and of the digest of train, which covers `view`.
  std::string digest;
  std::string from_train;  // how the split is taken from train: "0.1 of train, seed 7"; empty if it has its own files
  int64_t count = 0, bytes = 0;
  std::vector<DataFile> files;  // sorted by name; data.json does not list the files of huge splits
  std::string view = {};  // how samples are made from the data, if this changes what metrics measure: "target price"
  bool operator==(const DataSplit&) const = default;
};
// The data that a job reads, as data.json of a run directory describes it. The splits are train, val and test.
struct DataManifest {
  std::string digest;  // the digest of the splits' digests
  std::map<std::string, DataSplit> splits;
  bool operator==(const DataManifest&) const = default;
};
std::string to_json(const DataManifest& manifest);
std::expected<DataManifest, std::string> parse_manifest(std::string_view json);

// The file `cache` stores the digests of files, so that unchanged files are not read again; empty: no cache. A file
// counts as unchanged if its path, size, inode, device and times are the same. If a file changed less than two seconds
// before it was read, its digest is not stored, because the file may change again without a new time.
struct ManifestOptions {
  std::string cache = {};
  Clock* clock = &system_clock();
  // Called before the first read with the number of bytes that must be read.
  std::function<void(int64_t bytes)> before_reading = nullptr;
};
struct SplitSource {
  std::map<std::string, std::string>
      paths;  // maps "path", "images" and "labels" to a file or folder; empty: see `from_train`
  std::string from_train = {}, view = {};
};
// Reads folders recursively. Skips names that begin with a dot. Throws Error, which names the file, if one cannot be
// read.
DataManifest make_manifest(const std::map<std::string, SplitSource>& splits, const ManifestOptions& options = {});
DataManifest manifest_of_job(const spec::Job& job, const ManifestOptions& options = {});
// Makes the manifest of a file or folder that belongs to no job. It has one split, "train".
DataManifest manifest_of_path(const std::string& path, const ManifestOptions& options = {});

struct DataChange {
  enum class What { added, removed, changed, renamed } what = What::changed;
  // `name` is the file's name; `from` is the old name of a renamed file. If `name` is empty, the whole split has
  // changed, and `from` says how if that is known.
  std::string split, name, from;
};
std::vector<DataChange> compare(const DataManifest& before, const DataManifest& after);
std::string to_string(const DataChange& change);  // one line for the user

// ---- model versions ------------------------------------------------------------------------------------------------

// A version is a record of the kind kVersion. Its `parent` is the run's id, its `params` are those of the run, and its
// body is the JSON that facts_json() writes. Its attachments are model/*, job.yaml, resolved.yaml, environment.json,
// report.json and data.json, as far as the run has them. Its links are:
//   run          to the run
//   data         to a kData with the digest of the manifest, or of the training data if there is no manifest
//   job          to the kContent of resolved.yaml
//   environment  to the kContent of environment.json
//   code         to a kContent such as "sinew 0.1.0"
//   parent       to the version or run whose weights the training started from
inline constexpr const char* kChampion = "champion";
inline constexpr const char* kCandidate = "candidate";

struct VersionFacts {
  std::string model;
  int64_t version = 0;
  std::string run, status;                  // the run's id, and how the run ended, for example "done"
  std::map<std::string, double> metrics;    // the last value of each metric
  std::string monitor;                      // the metric that chose the best checkpoint: "val/accuracy"
  std::map<std::string, std::string> data;  // digests of "train", "val" and "test", as far as they are recorded
  std::string digest, code, environment;  // digest of the final state; "sinew 0.1.0"; "libtorch 2.13.0, AVX512, <cpu>"
  std::map<std::string, std::string> checks;  // "passed" or what is wrong, by the name of the check
  int64_t bytes = 0;                          // total size of its files
};
std::string facts_json(const VersionFacts& facts);
std::expected<VersionFacts, std::string> parse_facts(std::string_view json);
// Returns the metadata of a version. If another client (MLflow) made the version, only its run's metrics and state are
// known.
VersionFacts facts_of(store::Store& store, const store::Record& version);

struct RegisterOptions {
  std::string model;                               // empty: the job's name
  std::string alias = kCandidate;                  // the alias that moves to the new version; empty: moves no alias
  std::map<std::string, std::string> checks = {};  // the results of the caller's own checks
  bool restore = false;  // if a model of this name was deleted, true makes it visible again, without its old versions
};
// Copies the run's model/ and its small files into the artifacts, and creates the next version of the model atomically.
// If a version of the same run with the same bytes exists, returns that version. Records these checks:
//   done    the run has ended as "done"
//   whole   model.safetensors is a valid file
//   finite  no weight is infinite or NaN
//   intact  model.digests.json matches the files; recorded only if there is such a list
// Throws Error if the run has no model/ or its files are damaged, or if the model was deleted and `options.restore` is
// false (MODEL_DELETED).
VersionFacts register_run(store::Store& store, Artifacts& artifacts, const store::Record& run, const std::string& root,
                          const RegisterOptions& options);

// The conditions under which a version may become champion (the gates).
struct PromotionRules {
  std::string metric = "auto";  // auto: the candidate's `monitor`, on test if it was tested, or else on val
  double margin = 0;            // the candidate must be better by this much; if negative, it may be worse by this much
  bool need_checks = true, need_same_data = true;
};
// Returns the metric that PromotionRules::metric `wanted` stands for. For "auto" it prefers metrics that the candidate
// has.
std::string pick_metric(const VersionFacts& candidate, const std::string& wanted);
struct Decision {
  bool allowed = false;
  std::string why;                 // the reason, in one sentence
  std::vector<std::string> facts;  // the sentences on which the decision is based
};
// Decides whether the candidate may become champion. Pure. `champion` is nullopt if there is none yet.
Decision may_promote(const VersionFacts& candidate, const std::optional<VersionFacts>& champion,
                     const PromotionRules& rules);

struct Promotion {
  Decision decision;
  int64_t from = 0, to = 0;  // old and new version of the alias; 0 if it did not exist
  // false: the rules refused the move, or other processes kept changing the model (see decision.why)
  bool done = false;
};
// On whose behalf an alias moves, and under which leases.
struct Mover {
  std::vector<store::HeldLease> held = {};
  store::Actor actor = {};
};
// Moves `alias` to the version if the rules allow it, or if `force`. Stores decision.why as the version's tag
// "sinew.decision.<alias>". If the model has changed since the decision, the store refuses the write, and promote()
// decides again. A version that was withdrawn from this alias (see rollback) passes only by `force`. Throws Error if
// this process has lost one of the leases in `mover`.
Promotion promote(store::Store& store, const std::string& model, int64_t version, const PromotionRules& rules,
                  const std::string& alias = kChampion, bool force = false, const Mover& mover = {});
// Moves the alias back to the version that it had before its last move. Withdraws the version that it leaves: neither a
// promotion by the rules nor a second rollback brings that version back.
Promotion rollback(store::Store& store, const std::string& model, const std::string& alias = kChampion,
                   const Mover& mover = {});
// Points the alias at the version, or removes the alias if `version` is 0. Checks no rules. If the alias moves to a
// lower version or is removed, withdraws the version that it leaves. If `expected` is given, the store refuses the
// change unless the alias points to that version. Throws Error (MODEL_BUSY) if others keep changing the model.
store::Outcome set_alias(store::Store& store, const std::string& model, const std::string& alias, int64_t version,
                         std::optional<int64_t> expected = {}, const Mover& mover = {});
// Returns the tag of a version that was withdrawn from the alias. Its value is a sentence with the reason.
std::string withdrawn_tag(const std::string& alias);

// Hides a version and detaches its files, so that the next garbage collection removes those that nothing else refers
// to. The record and its lineage stay. Throws Error if an alias points to the version.
void delete_version(store::Store& store, const std::string& model, int64_t version);
// Returns the changes that delete a version.
std::vector<store::Change> deletion_of(store::Store& store, const store::Subject& version);

// The origin of a version, as a tree.
struct Lineage {
  std::string role;  // "run", "data", "job", ...; empty at the root of the tree
  store::Subject subject;
  std::string text;  // one line for the user
  std::vector<Lineage> from;
};
Lineage lineage(store::Store& store, const store::Subject& subject, int deepest = 16);
std::string to_string(const Lineage& tree);  // indented lines

// Finds a version by "model", "model@alias" or "model/3". "model" alone means its champion, or its newest version if it
// has no champion.
store::Record find_version(store::Store& store, const std::string& name);

// Writes the files of the version below ROOT/.sinew/versions, unless they are there already, and returns the directory
// of its model. The directory appears as a whole or not at all. The lists of digests in it are compared with the
// version at each call, and readers compare the other files with the lists. Throws Error if a list differs, or if the
// version has no model that Sinew wrote.
std::string check_out(store::Store& store, Artifacts& artifacts, const store::Record& version, const std::string& root);
// Returns the version to which a path below ROOT/.sinew/versions belongs.
std::optional<store::Subject> version_of_checkout(const std::string& root, const std::string& path);
// Removes the directories of versions that were deleted.
void remove_old_checkouts(store::Store& store, const std::string& root);

// What a command takes as a MODEL. Returns `name` if it is a path; otherwise the directory of the run that it names
// ("last", the end of an id), or the directory of the version that it names (see find_version), which is checked out.
// `store_place` may be empty: the default of the root. Throws Error if there is no such run and no such version.
std::string path_of_model(const std::string& name, const std::string& root, const std::string& store_place);
// Replaces the name of a version in model.init_from.path by the path of its directory, also in the overrides, so that
// the run records which version it started from.
void check_out_init_from(spec::Job& job, std::vector<std::string>& overrides, const std::string& root,
                         const std::string& store_place);

// ---- reproducing a run ---------------------------------------------------------------------------------------------

// Everything that decides the bits of a run's result.
struct RunIdentity {
  std::string digest;  // the digest of the final training state
  std::map<std::string, std::string> options, environment;
  DataManifest data;                                    // its digest is empty if the run did not record its data
  std::vector<std::pair<int64_t, std::string>> ledger;  // step and digest; may be empty
  // Changes that a user made during training, as the newest checkpoint records them: for example "the learning rate was
  // multiplied by 0.5 from step 120 on". No option contains them, so training the job again does not repeat them.
  std::vector<std::string> manual_changes = {};
  // Evaluations and other events that the clock or a user placed at some step, as the newest checkpoint records them:
  // for example "an evaluation at step 20". If trainer.eval_interval or trainer.max_duration is in seconds, these steps
  // depend on the speed of the machine. So does the best step, which the digest covers. So training the job again does
  // not repeat them either.
  std::vector<std::string> timed_changes = {};
};
RunIdentity read_identity(const std::string& run_directory);
struct Comparison {
  bool same = false;
  std::string why;                 // "same digest", or the first difference with its likely cause
  std::vector<std::string> facts;  // all differences, the likeliest cause first
};
Comparison compare(const RunIdentity& recorded, const RunIdentity& again);  // a pure function

}  // namespace sinew::registry
