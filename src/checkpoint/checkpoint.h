// Named byte arrays on disk that survive whatever dies: safetensors files, a state document and a manifest of
// checksums in one directory that appears whole or not at all.
//
// For train/ (saves and resumes), cli/ (list, verify, show) and, later, joiners. It knows nothing of tensors, models or
// workers: a checkpoint is a map from names to bytes, the same whoever wrote it and however many they were. Format:
// docs/formats/checkpoint.md. Functions may be called from any thread; two writers on one directory exclude each other
// by RunLock.
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

namespace sinew::checkpoint {

// ---- safetensors ---------------------------------------------------------------------------------------------------

struct TensorBytes {  // borrowed
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes;
};
using Metadata = std::map<std::string, std::string>;

// The first bytes of a safetensors file, up to its data (spec: huggingface/safetensors README, 0.8). Tensors are sorted
// by descending dtype in the stock library's order, so by descending alignment, then by name: the same bytes as it
// writes; header padded with spaces to 8. The data must follow in that order, which is the one a reader finds. Throws
// Error for names that are not UTF-8, stand twice or are reserved, and for headers over 100 MB.
std::vector<std::byte> safetensors_header(const std::vector<TensorBytes>& tensors, const Metadata& metadata);

struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  uint64_t begin = 0, end = 0;  // within the data part
};
struct SafetensorsIndex {
  Metadata metadata;
  std::vector<TensorEntry> tensors;  // in data order
  uint64_t data_offset = 0;          // of the data part in the file
};
// Refuses (with the reason) everything the format forbids: overlaps, holes, trailing bytes, sizes that do not match
// shapes, overflow, duplicate names, headers over 100 MB, non-UTF-8, unknown dtypes. docs/formats/checkpoint.md lists
// where it is stricter than the stock library. Needs memory in proportion to the header, whatever stands in it.
std::expected<SafetensorsIndex, std::string> parse_safetensors(std::span<const std::byte> file);
// The same of a file of which only the header is read.
std::expected<SafetensorsIndex, std::string> read_safetensors_index(Disk& disk, const std::string& path);

// A whole file in memory, checked.
struct TensorFile {
  Metadata metadata;
  std::map<std::string, Array> tensors;
};
// Never needs more memory than the file has bytes, plus its header. The error names the path.
std::expected<TensorFile, std::string> read_safetensors(Disk& disk, const std::string& path);
void write_safetensors(Disk& disk, const std::string& path, const std::vector<TensorBytes>& tensors,
                       const Metadata& metadata);  // atomic: temp, fsync, rename, fsync parent; throws Error

// ---- checkpoints ---------------------------------------------------------------------------------------------------

// What a checkpoint holds. Files are written as <part>.safetensors, e.g. model, optimizer, ema, buffers; a part's name
// is letters, digits, `_`, `-`, `.` and starts with a letter or digit.
struct Snapshot {
  Step step;
  std::map<std::string, std::vector<TensorBytes>> parts;
  std::string state_json;  // cursor, control log, metrics so far, identity: train/ owns its meaning
  Digest digest;           // of the training state; printed by verify
};

struct Loaded {
  Step step;
  std::string directory;
  std::map<std::string, TensorFile> parts;
  std::string state_json;
  Digest digest;
};

// Damage, told so a person can act: which file, which chunk or field, what was expected.
struct Damage {
  std::string directory, file, what;
};

struct Summary {
  Step step;
  std::string directory;
  uint64_t bytes = 0;
  Digest digest;
  double wall_seconds = 0;  // when it was written
};

// Writes `<root>/step-00001000/`: into a hidden temporary directory, fsync of each file and of the directory, rename,
// fsync of root. An existing intact directory of that step is kept (the bits are the same whoever wrote them), unless
// its digest is another one: that throws, two states never claim one step. A damaged one is replaced. What dead writers
// left is removed first. Returns its path; throws Error on ENOSPC, EIO and the like, leaving root as it was (or, if
// only the very last sync failed, with the new one, whole but perhaps not durable).
std::string save(Disk& disk, const std::string& root, const Snapshot& snapshot, double wall_seconds);

// Reads everything and checks every byte against the manifest: the bytes checked are the bytes returned. A directory
// not named like a step (`last`, a copy) may hold any step. What can not be read is Damage too.
std::expected<Loaded, Damage> load(Disk& disk, const std::string& directory);
// Checks without keeping; `past_cache` drops the page cache first, so that the disk is read.
std::expected<Summary, Damage> verify(Disk& disk, const std::string& directory, bool past_cache = false);
// What the manifest says; files are looked at but not read.
std::expected<Summary, Damage> describe(Disk& disk, const std::string& directory);

// Copies a step directory to another root and checks the copy past the page cache; throws Error with the reason.
void mirror(Disk& disk, const std::string& directory, const std::string& root);

struct Newest {
  std::optional<Loaded> loaded;  // the newest intact one
  std::vector<Damage> damaged;   // newer ones that were not, newest first; loud, never silent
};
// None at all: `loaded` empty and `damaged` empty. Present but bad: `loaded` empty, `damaged` not. Throws DiskError if
// root can not be listed: that is neither.
Newest load_newest(Disk& disk, const std::string& root);

// Paths of the step directories under root, oldest first; temporary ones are not listed. None if root is missing.
std::vector<std::string> list(Disk& disk, const std::string& root);

// Which to delete: pure. Keeps the newest `keep` intact ones, `best` (steps), and everything newer than `verified`,
// the newest step that was re-read past the page cache. Nothing, unless `verified` is given and present; `present` are
// steps known to be intact, and `keep` below 1 counts as 1.
std::vector<Step> to_delete(const std::vector<Step>& present, const std::vector<Step>& best, int64_t keep,
                            std::optional<Step> verified);

// ---- writing in the background -------------------------------------------------------------------------------------

// Owned bytes of a snapshot, copied once by the step thread; then belongs to the writer.
struct OwnedSnapshot {
  Step step;
  std::map<std::string, std::vector<std::pair<TensorEntry, Buffer>>> parts;  // begin/end unused
  std::string state_json;
  Digest digest;
};

struct WriterOptions {
  std::string root;
  std::string mirror;  // root of a second copy, on another device or machine; empty: none
  int64_t keep = 2, keep_best = 1;
  // Asked, by the writer's thread, before each effect on disk that others see: a step directory appears, `last` or
  // `best` moves, a checkpoint is deleted, here or in the mirror. False: that attempt is not made and not repeated; the
  // next snapshot brings its own. Empty: always this process's turn.
  std::function<bool()> may_write = nullptr;
  bool thread = true;          // false: nothing happens but in work(), for a simulation
  double leave_seconds = 600;  // how long the destructor waits for what is under way, and again for its mirror's end
};

struct WriterStatus {
  std::optional<Step> durable;  // newest verified on disk
  double durable_wall_seconds = 0;
  std::optional<Step> writing;   // given and not yet durable; while there is one, another is refused
  std::optional<Step> mirrored;  // newest verified in the mirror
  int64_t skipped = 0;           // submissions refused because one was still being written
  std::string trouble;           // what went wrong with the last one: save, links, mirror or deletion; else empty
};

// One background thread at low priority: saves, reads back past the page cache, points `last` and `best`, mirrors, and
// only then deletes what is no longer kept. Steps it did not write itself are verified once before they count. `submit`
// never blocks on the disk: while one snapshot waits or is being written another is refused (skipped and counted), so
// memory is bounded by one extra copy of the state; what the thread does without one, pointing, mirroring and deleting,
// refuses nothing. `last` and status().durable never go back to an older step. Errors do not throw: they show in
// status() and training goes on.
class Writer {
 public:
  explicit Writer(Disk& disk, WriterOptions options, Clock& clock = system_clock());
  ~Writer();           // waits for the one under way, bounded: then first the mirror, then all of it is given up
  bool ready() const;  // would submit be accepted now?
  bool submit(OwnedSnapshot snapshot);  // false: skipped
  // Never deleted: the newest `keep_best` of those listed that are on disk. As long as one of them is not, the one that
  // was listed before it stays in its place. `best` is pointed at the newest that is there.
  void set_best(std::vector<Step> best);
  WriterStatus status() const;
  // Waits until nothing is being written, at most `timeout_seconds`; false on timeout.
  bool wait(double timeout_seconds);
  // No copies any more: the one being made ends at its next chunk. What waits behind a slow mirror is written then.
  void leave_mirror();
  // What the thread does, here and now, for a Writer without one: one piece of work; false: there is none.
  bool work();

 private:
  struct State;
  std::shared_ptr<State> state_;  // also the thread's: one that hangs in the disk may outlive the Writer
};

// Points `<root>/<name>` (last, best) at a step directory, atomically. The Writer does this by itself.
void point(Disk& disk, const std::string& root, const std::string& name, Step step);

// ---- one owner per directory ---------------------------------------------------------------------------------------

// A process holds this lock while it writes to a run directory. A second process that tries to take it learns the
// holder's pid and host. It is an advisory lock of the kernel, not the existence of a file, so the kernel releases it
// however the process dies.
class RunLock {
 public:
  // Returns the lock, or a sentence that names its holder. Retries for kPatienceSeconds, because a program that only
  // checks whether a run is alive (`sinew runs`) holds the lock for an instant. Throws Error if the directory or its
  // file system cannot have a lock at all.
  static constexpr double kPatienceSeconds = 0.2;
  static std::expected<RunLock, std::string> take(const std::string& directory, Clock& clock = system_clock());
  RunLock(RunLock&&) noexcept;
  RunLock& operator=(RunLock&&) noexcept;
  ~RunLock();
  // A forked child that keeps this descriptor holds the lock, too. The lock is free once all holders have ended.
  int descriptor() const { return descriptor_; }

 private:
  explicit RunLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace sinew::checkpoint
