// Checkpoints: named byte arrays on disk that survive the death of any process and of the machine. A checkpoint is one
// directory with safetensors files, a state document and a manifest of checksums. The directory appears whole or not at
// all.
//
// train/ saves and resumes with this module; cli/ lists, verifies and shows checkpoints with it. The module does not
// know tensors, models or workers: a checkpoint is a map from names to bytes. The bytes depend neither on who wrote
// them nor on the number of workers. Format: docs/formats/checkpoint.md. Any thread may call these functions;
// rundir::RunLock keeps two processes from writing to one directory.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/array.h"
#include "base/clock.h"
#include "base/disk.h"
#include "base/hash.h"
#include "base/ids.h"
#include "checkpoint/state_digest.h"

namespace sinew::checkpoint {

// ---- safetensors ---------------------------------------------------------------------------------------------------

struct TensorBytes {  // does not own `bytes`
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes;
};
using Metadata = std::map<std::string, std::string>;

inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // of the JSON header of a safetensors file

// Returns the bytes of a safetensors file that precede its data (spec: huggingface/safetensors README, version 0.8):
// the length and the JSON header, padded with spaces to a multiple of 8. The header lists the tensors as the stock
// library does, so the bytes are the same: by descending dtype in the library's order (which is descending alignment),
// then by name. The caller must write the data in the order of the header. Throws Error if a name is not UTF-8, occurs
// twice or is reserved, or if the header is larger than 100 MB.
std::vector<std::byte> safetensors_header(const std::vector<TensorBytes>& tensors, const Metadata& metadata);

struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  uint64_t begin = 0, end = 0;  // byte offsets from data_offset
};
struct SafetensorsIndex {
  Metadata metadata;
  std::vector<TensorEntry> tensors;  // in data order
  uint64_t data_offset = 0;          // where the data begins in the file
};
// Returns the reason if the file is not valid. It refuses everything that the format forbids: overlaps, holes, trailing
// bytes, sizes that do not match shapes, more than 64 dimensions, overflow, duplicate names, headers over 100 MB,
// non-UTF-8, unknown dtypes.
// docs/formats/checkpoint.md lists where this function is stricter than the stock library. Even for a malicious header,
// it uses memory in proportion to the size of the header.
std::expected<SafetensorsIndex, std::string> parse_safetensors(std::span<const std::byte> file);
// Does the same, but reads only the header of the file. Refuses a header of more than `max_header_bytes`.
std::expected<SafetensorsIndex, std::string> read_safetensors_index(Disk& disk, const std::string& path,
                                                                    uint64_t max_header_bytes = kMaxHeaderBytes);

// A whole safetensors file in memory, validated.
struct TensorFile {
  Metadata metadata;
  std::map<std::string, Array> tensors;
};
// Uses at most as much memory as the file has bytes, plus its header. The error text names the path.
std::expected<TensorFile, std::string> read_safetensors(Disk& disk, const std::string& path);
// The size and the SHA-256 of a file.
struct FileDigest {
  uint64_t bytes = 0;
  std::string sha256;  // 64 hex digits
  bool operator==(const FileDigest&) const = default;
};

// Writes the file atomically: temporary file, fsync, rename, fsync of the parent directory. Returns the digest of the
// written bytes. Throws Error if the disk fails, or if safetensors_header() does.
FileDigest write_safetensors(Disk& disk, const std::string& path, const std::vector<TensorBytes>& tensors,
                             const Metadata& metadata);

// ---- the files of a trained model ----------------------------------------------------------------------------------

// The directory of a trained model holds model.safetensors, model.json and sometimes the model in the format of the
// user's own file. It also holds model.digests.json, which lists the size and the SHA-256 of each of these files
// (docs/formats/model.md). Only the functions below write and read this list. A model of another program or of an older
// version of Sinew has no list. It is used unchecked, and a remark tells the user.
inline constexpr const char* kModelDigestsFile = "model.digests.json";
inline constexpr const char* kModelInfoFile = "model.json";
inline constexpr uint64_t kMaxDigestsBytes = 1 << 20;    // of model.digests.json
using ModelDigests = std::map<std::string, FileDigest>;  // by name

FileDigest digest_file(Disk& disk, const std::string& path);
std::string model_digests_text(const ModelDigests& digests);
void write_model_digests(Disk& disk, const std::string& directory, const ModelDigests& digests);  // durable
// Refuses every text in which a byte was changed, and every text that version 1 of the format does not allow.
std::expected<ModelDigests, std::string> parse_model_digests(std::string_view text);
// Returns whether this model.json says that the model has a model.digests.json.
bool names_model_digests(std::string_view model_json);
// Compares the files of a model with their list. `found` has the files that the directory contains; model.digests.json
// may be among them. Returns the name of the first wrong file and what is wrong with it. A pure function.
std::optional<std::string> wrong_model_file(const ModelDigests& listed, const ModelDigests& found);
// Returns nullopt if the directory has no list. Throws Error (WEIGHTS_DAMAGED) if the list is damaged, or if model.json
// names a list that is missing.
std::optional<ModelDigests> read_model_digests(Disk& disk, const std::string& directory);
// Throws Error (WEIGHTS_DAMAGED) if the file in the directory differs from the listed one.
void check_model_file(Disk& disk, const std::string& directory, const std::string& name, const ModelDigests& listed);
// Returns the error for a damaged file of a model. `wrong` begins with the file's name.
Error model_damaged(const std::string& directory, const std::string& wrong);
std::string unchecked_model(const std::string& directory);  // the remark about a model that has no list

struct Weights {
  TensorFile file;
  std::string remark;  // for the user, if a model's file could not be checked; else empty
};
// Reads a file of weights. If the file is part of a model or of a checkpoint, checks the bytes that it returns against
// the list or manifest in the same directory. Throws Error (WEIGHTS_DAMAGED, CHECKPOINT_DAMAGED) if they differ. If the
// file cannot be read or is no safetensors file, returns the reason.
std::expected<Weights, std::string> read_weights(Disk& disk, const std::string& path);
// Makes the same checks for any file of a model or of a checkpoint, but keeps no bytes. Returns false if no list names
// the file. The thread's CostLimit may end it.
bool check_listed_file(Disk& disk, const std::string& path);

// ---- checkpoints ---------------------------------------------------------------------------------------------------

// The contents of a checkpoint. Each part (for example model, optimizer, ema, buffers) becomes one file,
// <part>.safetensors. The name of a part starts with a letter or a digit, and consists of letters, digits, `_`, `-` and
// `.`.
struct Snapshot {
  Step step;
  std::map<std::string, std::vector<TensorBytes>> parts;
  std::string state_json;  // cursor, control log, metrics so far, identity; only train/ interprets it
  Digest digest;           // the digest of the training state; `sinew checkpoint verify` prints it
};

struct Loaded {
  Step step;
  std::string directory;
  std::map<std::string, TensorFile> parts;
  std::string state_json;
  Digest digest;
};

// The damage of a checkpoint: the damaged file, and in `what` the chunk or field and the expected value.
struct Damage {
  std::string directory, file, what;
};

Error checkpoint_damaged(const Damage& damage);  // CHECKPOINT_DAMAGED

struct Summary {
  Step step;
  std::string directory;
  uint64_t bytes = 0;
  Digest digest;
  double wall_seconds = 0;  // time of the save, in seconds since 1970-01-01T00:00Z
};

// Writes the step directory, for example `<root>/step-00001000/`. First removes the directories that dead writers left.
// Then writes into a hidden temporary directory, syncs each file and the directory, renames the directory, and syncs
// root.
//
// If a directory of that step exists already, save looks at it. It keeps an intact directory with the same digest,
// because the bits do not depend on the writer. It throws if the digest differs, because two states must never claim
// one step. It replaces a damaged directory.
//
// Returns the path. Throws Error on ENOSPC, EIO and the like, and then leaves root as it was, with one exception: if
// only the very last sync failed, root has the new directory. That directory is complete but perhaps not durable.
std::string save(Disk& disk, const std::string& root, const Snapshot& snapshot, double wall_seconds);

// Reads the whole checkpoint and checks every byte against the manifest, and the tensors against the digest of the
// state. It reads each file once, so the checked bytes are the returned bytes. A directory that is not named like a
// step (`last`, a copy) may contain any step. A file that the disk cannot read counts as Damage.
std::expected<Loaded, Damage> load(Disk& disk, const std::string& directory);
// These functions read or check one file of the checkpoint, <part>.safetensors or state.json, as load does.
std::expected<std::string, Damage> load_state(Disk& disk, const std::string& directory);
std::expected<TensorFile, Damage> load_file(Disk& disk, const std::string& directory, const std::string& name);
std::expected<void, Damage> check_file(Disk& disk, const std::string& directory, const std::string& name);
// Makes all checks of load, so what it calls intact can be loaded, but keeps no tensors in memory. If `past_cache` is
// true, drops the page cache first, so that the bytes come from the device.
std::expected<Summary, Damage> verify(Disk& disk, const std::string& directory, bool past_cache = false);
// Returns the contents of the manifest. Checks that the listed files exist and have the right sizes, but does not read
// them.
std::expected<Summary, Damage> describe(Disk& disk, const std::string& directory);

// Copies a step directory to another root, and verifies the copy past the page cache. If either fails, throws Error
// with the reason.
void mirror(Disk& disk, const std::string& directory, const std::string& root);

struct Newest {
  std::optional<Loaded> loaded;  // the newest intact checkpoint
  std::vector<Damage> damaged;   // damaged checkpoints that are newer than `loaded`, newest first; callers report them
};
// If there is no checkpoint, `loaded` and `damaged` are both empty. If all checkpoints are damaged, only `loaded` is
// empty. Throws DiskError if root cannot be listed.
Newest load_newest(Disk& disk, const std::string& root);

// Returns the paths of the step directories under root, oldest first, without temporary ones. The result is empty if
// root does not exist.
std::vector<std::string> list(Disk& disk, const std::string& root);

// Returns the step that the name of a directory under root stands for; `directory` is one of list().
Step step_of(const std::string& directory);

// Returns the steps to delete, oldest first. A pure function. `present` lists the steps that are known to be intact.
// `verified` is the newest step that was read back past the page cache. The function keeps the newest `keep` steps (at
// least 1) of those up to `verified`, the steps in `best`, and all steps newer than `verified`. It deletes nothing if
// `verified` is not given or not in `present`.
std::vector<Step> to_delete(const std::vector<Step>& present, const std::vector<Step>& best, int64_t keep,
                            std::optional<Step> verified);

// ---- writing in the background -------------------------------------------------------------------------------------

// A snapshot that owns its bytes. The step thread copies them once and passes the snapshot to the Writer.
struct OwnedSnapshot {
  Step step;
  // `begin` and `end` of each TensorEntry are unused
  std::map<std::string, std::vector<std::pair<TensorEntry, Buffer>>> parts;
  std::string state_json;
  Digest digest;
};

struct WriterOptions {
  std::string root;
  std::string mirror;  // root of a second copy, on another device or machine; empty if there is no mirror
  int64_t keep = 2, keep_best = 1;
  // The writer's thread calls this before each change on disk that other processes can see: before a step directory
  // appears, `last` or `best` moves, or a checkpoint is deleted, in root and in the mirror. If it returns false, the
  // Writer skips that change and does not repeat it; the next snapshot makes its own changes. If null, this process may
  // always write.
  std::function<bool()> may_write = nullptr;
  // If null, the Writer works on a thread of its own. Otherwise the Writer passes its work to this function, on the
  // thread that called the Writer. The function must call the work later, or have another thread call it, so that a
  // simulation can decide when. A call of the work does nothing while earlier work runs, or after the Writer is
  // destroyed.
  std::function<void(std::function<void()> work)> in_background = nullptr;
  // The destructor waits this long for the work under way. Then it stops the mirror copy and waits this long again.
  // With `in_background` it does not wait; the work ends at its next call of the disk.
  double shutdown_seconds = 600;
};

struct WriterStatus {
  std::optional<Step> durable;  // newest step that was saved and read back
  double durable_wall_seconds = 0;
  // the submitted step that is not yet durable; meanwhile submit refuses other snapshots
  std::optional<Step> writing;
  std::optional<Step> mirrored;  // newest step that was copied to the mirror and read back
  int64_t skipped = 0;           // number of snapshots that submit refused
  std::optional<Step> saved;     // the last snapshot that was saved and read back
  double save_seconds = 0;       // how long that took, with the links, the mirror and the deletion of old checkpoints
  std::string trouble;           // the problem with the last snapshot (save, links, mirror or deletion); may be empty
  bool damaged = false;          // true: the last snapshot was written and read back damaged; another try may not help
  bool refused = false;          // true: `trouble` is only that may_write returned false; a later save may succeed
};

// Writes checkpoints on one background thread of low priority. For each snapshot, the thread saves it, reads it back
// past the page cache, moves the links `last` and `best`, and copies it to the mirror. Only then does it delete
// checkpoints that are no longer kept. If the disk or a quota is full, it deletes them before it saves, except the
// newest one. Steps that the thread did not write itself count as intact only after it has verified them once.
//
// `submit` never blocks on the disk. While one snapshot waits or is being written, submit refuses another, so the
// Writer needs at most one extra copy of the state. While the thread moves links, mirrors or deletes, it holds no
// snapshot, so submit accepts one. `last` and status().durable never go back to an older step. The Writer does not
// throw: status() shows errors, and training continues.
class Writer {
 public:
  explicit Writer(Disk& disk, WriterOptions options, Clock& clock = system_clock());
  // Waits for the snapshot under way for at most shutdown_seconds, then abandons its mirror copy. After another
  // shutdown_seconds, abandons the snapshot too.
  ~Writer();
  bool ready() const;  // true if submit would accept a snapshot now
  // Returns false if the snapshot was refused; status().skipped counts refusals. A caller that keeps the snapshot can
  // submit it again if it could not be saved.
  bool submit(std::shared_ptr<const OwnedSnapshot> snapshot);
  bool submit(OwnedSnapshot snapshot) { return submit(std::make_shared<const OwnedSnapshot>(std::move(snapshot))); }
  // Lists the best steps. The Writer never deletes the newest `keep_best` of the listed steps that are on disk. While a
  // listed step is not on disk yet, the Writer keeps a step of an earlier list in its place. `best` points at the
  // newest listed step on disk.
  void set_best(std::vector<Step> best);
  WriterStatus status() const;
  // Waits until the Writer is idle, for at most `timeout_seconds`. Returns false on timeout.
  bool wait(double timeout_seconds);  // waits by the Writer's clock, if there is an `in_background`
  // Stops copying to the mirror for good. A copy under way ends at its next chunk, so a snapshot that waits behind a
  // slow mirror gets written.
  void abandon_mirror();

 private:
  void start_work();

  struct State;
  std::shared_ptr<State> state_;  // shared with the thread, which outlives the Writer if it hangs in a disk call
};

// Points the symbolic link `<root>/<name>` (last, best) at a step directory, atomically. The Writer does this by
// itself.
void point_link(Disk& disk, const std::string& root, const std::string& name, Step step);

}  // namespace sinew::checkpoint
