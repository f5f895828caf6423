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
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/array.h"
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

// Bytes of a safetensors file (spec: huggingface/safetensors README, 0.8). Tensors sorted by descending alignment of
// dtype, then name; header padded with spaces to 8.
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
// shapes, overflow, duplicate names, headers over 100 MB, non-UTF-8, unknown dtypes.
std::expected<SafetensorsIndex, std::string> parse_safetensors(std::span<const std::byte> file);

// A whole file in memory, checked. `name` for messages.
struct TensorFile {
  Metadata metadata;
  std::map<std::string, Array> tensors;
};
std::expected<TensorFile, std::string> read_safetensors(Disk& disk, const std::string& path);
void write_safetensors(Disk& disk, const std::string& path, const std::vector<TensorBytes>& tensors,
                       const Metadata& metadata);  // atomic: temp, fsync, rename, fsync parent; throws Error

// ---- checkpoints ---------------------------------------------------------------------------------------------------

// What a checkpoint holds. Files are written as <part>.safetensors, e.g. model, optimizer, ema, buffers.
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
// fsync of root. An existing intact directory of that step is kept (the bits are the same whoever wrote them); a
// damaged one is replaced. Returns its path; throws Error on ENOSPC, EIO and the like, leaving root as it was.
std::string save(Disk& disk, const std::string& root, const Snapshot& snapshot, double wall_seconds);

// Reads everything and checks every byte against the manifest.
std::expected<Loaded, Damage> load(Disk& disk, const std::string& directory);
// Checks without keeping; `past_cache` drops the page cache first, so that the disk is read.
std::expected<Summary, Damage> verify(Disk& disk, const std::string& directory, bool past_cache = false);

struct Newest {
  std::optional<Loaded> loaded;  // the newest intact one
  std::vector<Damage> damaged;   // newer ones that were not; loud, never silent
};
Newest load_newest(Disk& disk, const std::string& root);

// Step directories under root by name, oldest first; temporary ones are not listed.
std::vector<std::string> list(Disk& disk, const std::string& root);

// Which to delete: pure. Keeps the newest `keep` intact ones, `best` (steps), and everything newer than `verified`,
// the newest step that was re-read past the page cache.
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
  std::string mirror;  // empty: none
  int64_t keep = 2, keep_best = 1;
};

struct WriterStatus {
  std::optional<Step> durable;       // newest verified on disk
  double durable_wall_seconds = 0;
  std::optional<Step> writing;
  int64_t skipped = 0;               // submissions refused because one was still being written
  std::string trouble;               // last error, empty when the last save succeeded
};

// One background thread. `submit` never blocks on the disk: while one snapshot is being written another is refused
// (skipped and counted), so memory is bounded by one extra copy of the state. Errors do not throw: they show in
// status() and training goes on.
class Writer {
 public:
  Writer(Disk& disk, WriterOptions options);
  ~Writer();  // waits for the one under way
  bool ready() const;                       // would submit be accepted now?
  bool submit(OwnedSnapshot snapshot);      // false: skipped
  void set_best(std::vector<Step> best);    // never deleted while listed; newest `keep_best` of them
  WriterStatus status() const;
  // Waits until nothing is being written, at most `timeout_seconds`; false on timeout.
  bool wait(double timeout_seconds);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Points `<root>/<name>` (last, best) at a step directory, atomically.
void point(Disk& disk, const std::string& root, const std::string& name, Step step);

// ---- one owner a directory -----------------------------------------------------------------------------------------

// Held while a run writes to its directory; a second run is refused with the holder's pid and host. Released when the
// process dies, however it dies (an advisory lock of the kernel, not a file's existence).
class RunLock {
 public:
  static std::expected<RunLock, std::string> take(const std::string& directory);  // error: who holds it
  RunLock(RunLock&&) noexcept;
  RunLock& operator=(RunLock&&) noexcept;
  ~RunLock();

 private:
  explicit RunLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace sinew::checkpoint
