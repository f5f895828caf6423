// What we have: an index over run directories, the files kept for good, model versions with their lineage, data sets.
//
// For cli/, jobs/ and web/. Files are the truth: a run is its directory (docs/formats/run-directory.md), and everything
// here that is about runs can be made again from nothing. What is not in run directories, versions and aliases, is in
// the store and its bytes are in the artifacts. No run waits for any of this: run directories are only read.
//
// Where things are, if not said otherwise: ROOT/.sinew/store.db and ROOT/.sinew/artifacts, ROOT being `runs`. Whoever
// walks over run directories passes over names that begin with a dot.
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

#include "base/clock.h"
#include "base/disk.h"
#include "base/error.h"
#include "spec/spec.h"
#include "store/store.h"

namespace sinew::registry {

std::string default_store(const std::string& root);      // ROOT/.sinew/store.db
std::string default_artifacts(const std::string& root);  // ROOT/.sinew/artifacts
// The folder of either, made; for Store's constructor, which makes the file alone.
void make_place(const std::string& root);

// ---- index ---------------------------------------------------------------------------------------------------------

// In the store a run of a directory has
//   subject  kRun, run_id_of(its path below the root, its job): 32 hex digits. The job is job.yaml, which is never
//   written
//            again, as resolved.yaml is by a resume with a newer program; of a run without one, what resolved.yaml
//            says. A directory that is renamed, or replaced by a run of another job, is another run; the old one is
//            hidden until its directory is there again. One that a person hid stays so
//   parent   its experiment: the one of the job's name, else the one with that id, which was given another name; made,
//            with the name as its id, if there is neither
//   name     the directory's name, <utc>-<id>;  state, attempt, begun, ended: as its files and its lock tell
//   params   resolved.yaml as dotted keys (values cut at 6000 bytes);  tags  kTag... below
//   points   metrics.jsonl, a series a metric
//   body     JSON: {"directory", "environment": {}, "report": {}, "checkpoints": ["step-..."], "data": {},
//            "model": {"model.safetensors": bytes}, "problems": [""]}; what others write there besides stays
inline constexpr const char* kTagDirectory = "sinew.directory";  // below the root: "mnist/20261121T031502Z-1a2b3c"
inline constexpr const char* kTagDigest = "sinew.digest";        // of the final training state
inline constexpr const char* kTagStatus = "sinew.status";        // as `sinew runs` has it
inline constexpr const char* kTagError = "sinew.error";
std::string run_id_of(std::string_view path_below_root, std::string_view job_yaml, std::string_view resolved_yaml);

struct IndexOptions {
  std::string root = "runs";
  std::string holder = {};        // names this process, for the lease of the index; empty: host and process number
  int64_t piece_bytes = 1 << 20;  // read of a file, and written to the store, at a time
  std::function<bool()> is_ending = {};  // asked between runs and pieces; true: the pass ends there, unfinished
};
struct PassReport {
  std::string held_by;             // not empty: somebody else indexes this store; nothing was done
  int64_t runs = 0;                // directories there are
  int64_t fresh = 0, changed = 0;  // of them: new; with anything new in them
  int64_t gone = 0;                // runs that are hidden now
  int64_t points = 0;
  std::vector<std::string> problems;  // sentences, each naming its file
  bool unfinished = false;            // not all was looked at, or read to its end: call again at once
};

// One thread. What a pass has read is remembered in the store in the batch that brings it, so a death between any two
// instructions neither loses nor repeats a point. Of several processes that index one store one does (a lease).
class Index {
 public:
  Index(store::Store& store, IndexOptions options);
  ~Index();
  // Brings everything new into the store. Unchanged directories cost a few looks at them. Throws Error when the root
  // can not be listed or the store can not be written; a run that can not be read is a problem in the report.
  PassReport pass();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The run meant by an id of the store, by a directory (as it is, or below the root), by `last`, or by the end of its
// name; throws Error when there is none or more than one.
store::Record find_run(store::Store& store, const std::string& name, const std::string& root = "runs");
// Where that run's directory is; empty: it came from elsewhere (MLflow).
std::string directory_of(const store::Record& run, const std::string& root);

// ---- artifacts: contents by their SHA-256 --------------------------------------------------------------------------

struct Stored {
  std::string digest;  // SHA-256, 64 hex digits
  int64_t bytes = 0;
  bool operator==(const Stored&) const = default;
};

// Files by digest in one directory (docs/formats/artifacts.md): whole or not at all, durable when put returns, once
// however often they are put. Of a safetensors file tensors are kept singly, so that what versions share is there once;
// it reads back to the bit. Any thread, any number of processes.
class Artifacts {
 public:
  explicit Artifacts(std::string directory, Disk& disk = system_disk(), Clock& clock = system_clock());
  ~Artifacts();

  // What is put or kept under a hold is not collected while the hold lives (or its process died less than a day ago).
  // Attach it in the store, then let go. The order is the guarantee: hold, put, attach, let go.
  class Hold {
   public:
    Hold(Hold&&) noexcept;
    ~Hold();
    Stored put(std::span<const std::byte> bytes);
    Stored put(std::string_view text);
    Stored put_file(const std::string& path);
    // Content that is there already: for attaching it elsewhere. nullopt: it is not (any more).
    std::optional<Stored> keep(const std::string& digest);
    // Bytes that come in pieces, bounded memory. Dropped before finish: nothing was put.
    class Stream {
     public:
      Stream(Stream&&) noexcept;
      ~Stream();
      void write(std::span<const std::byte> bytes);
      Stored finish();

     private:
      friend class Hold;
      struct State;
      explicit Stream(std::unique_ptr<State> state);
      std::unique_ptr<State> state_;
    };
    Stream stream();

   private:
    friend class Artifacts;
    struct State;
    explicit Hold(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };
  Hold hold();

  // False also for what is not a digest, whatever it holds: no path is made of it.
  bool has(const std::string& digest);
  // Throws Error when it is not there.
  uint64_t size(const std::string& digest);
  std::vector<std::byte> read(const std::string& digest);  // whole, into memory; checked against the digest
  // Fills `out` from `offset`; less only at the end. Pieces are not checked; `verify` does that.
  size_t read_at(const std::string& digest, uint64_t offset, std::span<std::byte> out);
  void copy_to(const std::string& digest, const std::string& path);  // durable, atomic, checked
  // Reads everything. The error says what is wrong.
  std::expected<void, std::string> verify(const std::string& digest);
  std::vector<Stored> list();  // whole contents and single tensors alike
  bool empty();
  const std::string& directory() const;
  // The store that says what of them is referred to, by its id; empty: none yet. See claim().
  std::string owner();
  void set_owner(const std::string& store_id);  // durable

  struct Collected {
    int64_t contents = 0, bytes = 0;    // removed, or with `only_say`: would be
    int64_t kept = 0, kept_bytes = 0;   // on the disk
    std::vector<std::string> problems;  // what is referred to and not there or not readable, one a sentence
  };
  // Removes what nothing refers to: not `referenced`, which is asked again after each piece of work, no hold, no
  // content made of pieces. Safe beside puts; killed anywhere it leaves everything referenced. One at a time:
  // collect_garbage sees to that.
  Collected collect(const std::function<std::set<std::string>()>& referenced, bool only_say = false);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Artifacts belong to one store: to any other all of them would be garbage. Makes them this store's if they are
// nobody's: if they are empty, or it refers to some of them. Throws Error when they are another's.
void claim(store::Store& store, Artifacts& artifacts);

// collect with what the store refers to, under a lease, and forgets in the store what is gone. Throws Error while
// another process collects, and when the artifacts are another store's.
Artifacts::Collected collect_garbage(store::Store& store, Artifacts& artifacts, bool only_say = false);

// ---- data sets -----------------------------------------------------------------------------------------------------

struct DataFile {
  std::string name;  // within the part, wherever it lies: "images", "path", of a folder "path/cats/17.jpg"
  std::string path;  // as the job leads to it
  int64_t bytes = 0;
  std::string digest;  // SHA-256
  bool operator==(const DataFile&) const = default;
};
struct DataPart {
  std::string
      digest;       // of its files' names and digests, not of where they lie; or of how it is cut from train; and view
  std::string cut;  // "0.1 of train, seed 7", "as train has it"; empty: it has files of its own
  int64_t count = 0, bytes = 0;
  std::vector<DataFile> files;  // sorted by name; of a manifest read back not those of huge parts
  std::string view = {};        // how samples are made of it, as far as it is part of what is measured: "target price"
  bool operator==(const DataPart&) const = default;
};
// What data a job reads: `data.json` of a run directory. Parts: train, val, test.
struct DataManifest {
  std::string digest;  // of the parts' digests
  std::map<std::string, DataPart> parts;
  bool operator==(const DataManifest&) const = default;
};
std::string to_json(const DataManifest& manifest);
std::expected<DataManifest, std::string> parse_manifest(std::string_view json);

// Digests of files that did not change (path, size, times and inode are the same) are not computed again; `cache` is a
// file, empty for none. Files changed within the last two seconds are never believed by their times.
struct ManifestOptions {
  std::string cache = {};
  Clock* clock = &system_clock();
  // Told how many bytes are going to be read, before they are.
  std::function<void(int64_t bytes)> before_reading = nullptr;
};
struct PartSource {
  std::map<std::string, std::string> paths;  // "path", "images", "labels" to a file or folder; empty: cut from train
  std::string cut = {}, view = {};
};
// Throws Error naming what can not be read. Folders are read with all below them, names with a dot apart.
DataManifest make_manifest(const std::map<std::string, PartSource>& parts, const ManifestOptions& options = {});
DataManifest manifest_of_job(const spec::Job& job, const ManifestOptions& options = {});
// Of a folder or file that is no job's: one part, "train".
DataManifest manifest_of_path(const std::string& path, const ManifestOptions& options = {});

struct DataChange {
  enum class What { added, removed, changed, renamed } what = What::changed;
  std::string part, name, from;  // from: of a renamed one; an empty name: the part as a whole, from: in what way
};
std::vector<DataChange> compare(const DataManifest& before, const DataManifest& after);
std::string to_string(const DataChange& change);  // a sentence

// ---- model versions ------------------------------------------------------------------------------------------------

// A version is a record of kind kVersion: `parent` is the run's id, `params` the run's, body JSON as facts_json has it.
// Its attachments are model/*, job.yaml, resolved.yaml, environment.json, report.json, data.json, as far as there are.
// Its links: "run" to the run, "data" to kData (the manifest's digest), "job", "environment" to kContent (of
// resolved.yaml and environment.json), "code" to kContent ("sinew 0.1.0"), "parent" to the version or run whose weights
// it began with.
inline constexpr const char* kChampion = "champion";
inline constexpr const char* kCandidate = "candidate";

struct VersionFacts {
  std::string model;
  int64_t version = 0;
  std::string run, status;                    // the run's id; how it ended: "done"
  std::map<std::string, double> metrics;      // the last value of each
  std::string monitor;                        // what its best was judged by: "val/accuracy"
  std::map<std::string, std::string> data;    // digests of the parts: "train", "val", "test"; as far as recorded
  std::string digest, code, environment;      // of the final state; "sinew 0.1.0"; "libtorch 2.13.0, AVX512, <cpu>"
  std::map<std::string, std::string> checks;  // name -> "passed", or what is wrong
  int64_t bytes = 0;                          // of its files together
};
std::string facts_json(const VersionFacts& facts);
std::expected<VersionFacts, std::string> parse_facts(std::string_view json);
// Of a version made elsewhere (MLflow) there are fewer: the metrics of its run.
VersionFacts facts_of(store::Store& store, const store::Record& version);

struct RegisterOptions {
  std::string model;                               // empty: the job's name
  std::string alias = kCandidate;                  // is set to the new version; empty: none
  std::map<std::string, std::string> checks = {};  // besides the ones made here
};
// Freezes the run's model/ and records into the artifacts and makes the next version, all of it or nothing; the same
// run's same bytes are the same version again. Checks made here: `done` (the run ended so), and of model.safetensors
// `whole` and `finite` (every weight). Throws Error when the run has no model/.
VersionFacts register_run(store::Store& store, Artifacts& artifacts, const store::Record& run, const std::string& root,
                          const RegisterOptions& options);

// What a version must be to become champion.
struct Gates {
  std::string metric = "auto";  // auto: what the candidate was judged by, on test if it was tested, else on val
  double margin = 0;            // better by at least so much; below 0: may be worse by so much
  bool need_checks = true, need_same_data = true;
};
// The metric that is compared when `wanted` is (Gates::metric); of several, one that the candidate has.
std::string pick_metric(const VersionFacts& candidate, const std::string& wanted);
struct Decision {
  bool allowed = false;
  std::string why;                 // a sentence
  std::vector<std::string> facts;  // what it was decided on, a sentence each
};
// Pure. `champion` nullopt: there is none yet.
Decision may_promote(const VersionFacts& candidate, const std::optional<VersionFacts>& champion, const Gates& gates);

struct Promotion {
  Decision decision;
  int64_t from = 0, to = 0;  // of the alias; 0: it stood nowhere
  bool done = false;         // false: refused by the gates, or by somebody who was faster (decision.why says)
};
// Moves `alias` to the version if the gates allow it, or `force`; the sentence that decided is kept as the version's
// tag "sinew.decision.<alias>". One write, which is refused if anything about the model changed meanwhile; then it is
// decided again. Throws Error when one of the leases `held` is held no longer.
Promotion promote(store::Store& store, const std::string& model, int64_t version, const Gates& gates,
                  const std::string& alias = kChampion, bool force = false, const std::vector<store::Held>& held = {});
// Back to where the alias stood before its last move.
Promotion rollback(store::Store& store, const std::string& model, const std::string& alias = kChampion,
                   const std::vector<store::Held>& held = {});

// Hides a version and lets go of its files, which the next collection removes: what it was made from stays known.
// Throws Error while an alias names it.
void delete_version(store::Store& store, const std::string& model, int64_t version);
std::vector<store::Change> deletion_of(store::Store& store, const store::Subject& version);

// What a version was made from, as a tree.
struct Lineage {
  std::string role;  // "", at the root; "run", "data", "job", ...
  store::Subject subject;
  std::string text;  // for people
  std::vector<Lineage> from;
};
Lineage lineage(store::Store& store, const store::Subject& subject, int deepest = 16);
std::string to_string(const Lineage& tree);  // lines, indented

// The version meant by "model", "model@alias" or "model/3" (of "model": the champion, else the newest).
store::Record find_version(store::Store& store, const std::string& name);

// ---- doing it again ------------------------------------------------------------------------------------------------

// What of a run decides its bits.
struct RunIdentity {
  std::string digest;  // of the final state
  std::map<std::string, std::string> options, environment;
  DataManifest data;                                    // no digest: not recorded
  std::vector<std::pair<int64_t, std::string>> ledger;  // step, digest; may be empty
  // What a person changed while it trained, as far as its newest checkpoint knows: "learning_rate 0.5 from step 120".
  // It is in no option, so training the job again does not do it again.
  std::vector<std::string> steered = {};
};
RunIdentity read_identity(const std::string& run_directory);
struct Comparison {
  bool same = false;
  std::string why;                 // "same digest", or the first difference and its likely cause
  std::vector<std::string> facts;  // every difference found, the likeliest cause first
};
Comparison compare(const RunIdentity& recorded, const RunIdentity& again);  // pure

}  // namespace sinew::registry
