// Data sets: from files to the samples of a shard.
//
// For train/ (batches), cli/ (`sinew init`) and check. Plain C++: no tensor library, so that every reader can be
// fuzzed and `sinew` can look at data in milliseconds. What a shard holds is a pure function of (files, seed, epoch,
// positions): who loads it, when, in which thread or how often does not matter.
//
// Errors: an unreadable or malformed file throws Error naming file and place. A Dataset is immutable after open and may
// be used from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/array.h"
#include "base/hash.h"
#include "base/random.h"
#include "spec/spec.h"

namespace sinew::data {

enum class Split { train, val, test };
std::string to_string(Split split);

enum class Task { classification, regression, next_token };

// What a model needs to know of the data to be built, and a person to trust it.
struct DataInfo {
  Task task = Task::classification;
  std::string format;              // resolved: "idx", "csv", ...
  Shape input_shape;               // of one sample: image [channels, height, width], table [columns], text [window]
  DType input_dtype = DType::f32;  // f32, or i64 for tokens
  Shape target_shape;              // of one sample: [] class or number, [window] for text
  int64_t classes = 0;             // classification: number of classes; text: size of the vocabulary; else 0
  std::vector<std::string> class_names;                 // may be empty
  std::vector<std::string> input_names;                 // table: one name a column after encoding ("cut=Ideal")
  int64_t train_size = 0, val_size = 0, test_size = 0;  // samples
  int64_t tokens_per_sample = 1;                        // text: window; else 1
  double target_mean = 0, target_std = 1;               // regression: of train; targets stay in their own units
  Digest digest;            // of the files of all splits (contents; of image files sizes and some contents) and options
  spec::Reasons reasons;    // why each auto became what it is (data.format, data.task, data.normalize)
  std::string preparation;  // JSON: how samples are made ready, as learned from train; for open_inputs
};

// A sample whose bytes were read and did not decode (on_corrupt: skip).
struct Skipped {
  int64_t sample = 0;
  std::string what;  // "cats/17.jpg: premature end of JPEG data"
};

// Samples of one shard, ready for a model.
struct Batch {
  Array input;                   // [count, input_shape...], f32 or i64
  Array target;                  // [count, target_shape...], i64 (classes, tokens) or f32 (regression)
  std::vector<int64_t> samples;  // indices within the split, one a row: for naming a bad one
  std::vector<Skipped> skipped;
  int64_t count() const { return static_cast<int64_t>(samples.size()); }
};

// Keys of everything random about training samples. Validation and test are never augmented.
struct SampleContext {
  uint64_t seed = 0;
  int64_t epoch = 0;
  bool augment = false;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const DataInfo& info() const = 0;
  virtual int64_t size(Split split) const = 0;
  // `samples`: indices in [0, size(split)).
  virtual Batch load(Split split, std::span<const int64_t> samples, const SampleContext& context) const = 0;
  // A name a person can find the sample by: "train.csv:18", "cats/17.jpg", "train-images.gz[1234]".
  virtual std::string describe(Split split, int64_t sample) const = 0;
  // True when a load is little more than a copy (decoded in memory): prefetching it would only cost.
  virtual bool in_memory() const = 0;
};

// Opens what the job names; `seed` drives the split only. Throws Error (unknown format, missing file, corrupt header…).
std::unique_ptr<Dataset> open_dataset(const spec::DataOptions& options, uint64_t seed);

// ---- samples after training ----------------------------------------------------------------------------------------

// What a model must remember of the data it was trained on, as JSON and back. Sizes, digest and reasons are left out.
std::string info_json(const DataInfo& info);
DataInfo info_from_json(const std::string& text);  // throws Error

// Opens samples as Split::test of a data set that is otherwise empty, made ready exactly as `train` says the training
// data was; the training data is not needed. Not `labelled`: targets may be missing and are not looked at (those of a
// batch are 0), of idx and npy `source` names the inputs' file alone, images may be a file or any folder of files.
// Of `options` only data.on_corrupt and data.text.tokens matter.
std::unique_ptr<Dataset> open_inputs(const spec::DataOptions& options, const DataInfo& train,
                                     const spec::DataSource& source, bool labelled);

// ---- looking at data -----------------------------------------------------------------------------------------------

// What `sinew init` learned by looking: data options that open_dataset accepts, a model that fits, and remarks.
struct Proposal {
  spec::Job job;
  std::vector<std::string> remarks;
};
Proposal propose_job(const std::string& path);
// The proposal as a short, commented job file: what matters for this data, and no line without effect. read_job of it
// gives the same job.
std::string proposal_yaml(const Proposal& proposal);

// ---- order ---------------------------------------------------------------------------------------------------------

// A keyed permutation of 0..size-1 with O(1) memory and O(1) seek: a Feistel network over the next even power of two
// with cycle walking (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).
class Permutation {
 public:
  Permutation(RandomKey key, int64_t size);
  int64_t operator[](int64_t position) const;  // the sample at this position

 private:
  RandomKey key_;
  int64_t size_;
  int half_bits_;
};

// The order of one epoch's training samples.
Permutation epoch_order(uint64_t seed, int64_t epoch, int64_t size);

// Where the next step's samples begin. Split of the training state.
struct Cursor {
  int64_t epoch = 0;
  int64_t offset = 0;  // samples of this epoch already committed
  bool operator==(const Cursor&) const = default;
};

// The samples of one step: positions [first, first + count) of one epoch's order. Steps never span epochs.
struct StepRange {
  int64_t epoch = 0, first = 0, count = 0;
};
StepRange step_range(const Cursor& cursor, int64_t train_size, int64_t batch_size, bool drop_last);
Cursor after(const StepRange& range, int64_t train_size, int64_t batch_size, bool drop_last);
int64_t steps_per_epoch(int64_t train_size, int64_t batch_size, bool drop_last);

// Splits `count` samples into the step's S shards: as many shards as a full batch would need for them, sizes differing
// by at most one, so a ragged batch never leaves a shard of one sample beside full ones. The rest are empty. Returns S
// pairs [first, last) of offsets within the step.
std::vector<std::pair<int64_t, int64_t>> split_into_shards(int64_t count, int64_t batch_size, int64_t shards);

// The default S, a function of the job file alone: 8, fewer where shards would fall under 16 samples.
int64_t default_shards(int64_t batch_size);

// ---- prefetch ------------------------------------------------------------------------------------------------------

// One shard to be loaded: positions [first, first+count) of the order of (split, epoch).
struct ShardRequest {
  Split split = Split::train;
  int64_t epoch = 0, first = 0, count = 0;
  bool measured = false;  // samples as they are, of train too: what is measured is not augmented
  bool operator==(const ShardRequest&) const = default;
  auto operator<=>(const ShardRequest&) const = default;
};

// Loads shards ahead of need in its own threads. `take` gives the shard whether it was expected or not, ready or not:
// a shard nobody has begun is loaded by the caller, so a lane never waits idle. Bounded by `bytes` of waiting batches.
class Prefetcher {
 public:
  Prefetcher(const Dataset& dataset, uint64_t seed, int64_t threads, int64_t bytes);
  ~Prefetcher();
  // Shards that will be taken, in this order; appended to what is already expected. Any thread.
  void prefetch(const std::vector<ShardRequest>& requests);
  void clear();  // drops everything expected and ready (the plan changed)
  // Any thread. Rethrows what loading threw.
  Batch take(const ShardRequest& request);
  double waited_seconds() const;  // time callers spent waiting or loading, all threads together

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sinew::data
