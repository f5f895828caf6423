// Opens datasets from files, and loads the samples of a shard.
//
// train/ uses this code to load batches, and cli/ to propose a job file for given data (`sinew init`). The code uses no
// tensor library, so every reader can be fuzzed and `sinew` can inspect data within milliseconds. The content of a
// shard is a pure function of (files, seed, epoch, positions). It does not depend on which thread loads the shard,
// when, or how often.
//
// Errors: an unreadable or malformed file throws Error, which names the file and the place in it.
// Threads: a Dataset is immutable after it is opened; any thread may use it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/array.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/load_use.h"
#include "base/random.h"
#include "spec/spec.h"

namespace sinew::data {

enum class Split { train, val, test };
std::string to_string(Split split);

enum class Task { classification, regression, next_token };

// What became of one column of a table.
struct ColumnFacts {
  std::string name;
  std::string kind;     // number, category, date, ...; target; ignored
  std::string reason;   // why it has this kind
  int64_t missing = 0;  // training rows without a value
};

// The facts about the data that a model needs before it can be built, and that a user wants to see.
struct DataInfo {
  Task task = Task::classification;
  std::string format;  // resolved: "idx", "csv", ...
  Shape input_shape;   // the shape of one sample: image [channels, height, width], table [columns], text [window]
  DType input_dtype = DType::f32;  // f32, or i64 for tokens
  Shape target_shape;              // the shape of one sample's target: [] for a class or a number, [window] for text
  int64_t classes = 0;             // classification: number of classes; text: size of the vocabulary; else 0
  std::vector<std::string> class_names;                 // may be empty
  std::vector<int64_t> class_counts;                    // training samples of each class; empty: not known
  std::vector<std::string> input_names;                 // tables: one name for each encoded column ("cut=Ideal")
  int64_t train_size = 0, val_size = 0, test_size = 0;  // samples
  int64_t tokens_per_sample = 1;                        // text: the window; else 1
  // Regression: the mean and the standard deviation of train's targets, in their own units: one for each number of a
  // target. A model of an older version has one for all numbers.
  std::vector<double> target_mean = {0}, target_std = {1};
  // Regression: the smallest and the largest of train's targets, as target_mean. Empty if they are not known: a trained
  // model keeps them only if its architecture needs them, among its buffers.
  std::vector<double> target_low = {}, target_high = {};
  // Covers the options that decide what the samples are, and the files of all splits. It covers the whole content of
  // every file, except for image datasets: for those it covers all names, sizes and labels, but the content of only
  // some files.
  Digest digest;
  spec::Reasons reasons;             // why each `auto` was resolved as it was (data.format, data.task, data.normalize)
  std::vector<ColumnFacts> columns;  // tables: every column of the file, in its order; empty for a trained model
  // What the user should know about the files: how a table is read, changed names of columns, values, rows and files
  // that were left out, each with its count.
  std::vector<std::string> notes;
  std::string preparation;  // JSON: the preprocessing that was fitted on train; open_inference_data applies it
};

// Input columns that encode one property of a sample: columns [first, first + count).
struct InputGroup {
  enum class Kind {
    number,    // one column, a number
    category,  // one of the columns is 1, or none; a single column says whether a value is missing
    other,     // any other numbers, such as the points of a circle that encode a month, or counts of words
  };
  Kind kind = Kind::number;
  int64_t first = 0, count = 1;
  bool operator==(const InputGroup&) const = default;
};
// The groups of a data set's input columns, in the order of the columns. Each input of data that is no table is a
// number. Throws Error if the description of a trained model's data cannot be used.
std::vector<InputGroup> input_groups(const DataInfo& info);

// A sample whose bytes could be read but not decoded (data.on_corrupt: skip).
struct Skipped {
  int64_t sample = 0;
  std::string what;  // "cats/17.jpg: premature end of JPEG data"
};

// The samples of one shard, collated for a model.
struct Batch {
  Array input;                   // [count, input_shape...], f32 or i64
  Array target;                  // [count, target_shape...], i64 (classes, tokens) or f32 (regression)
  std::vector<int64_t> samples;  // for each row, its index within the split; for messages about a row
  std::vector<Skipped> skipped;
  LoadUse use;  // what the loading took in stages that only the dataset can tell apart
  int64_t count() const { return static_cast<int64_t>(samples.size()); }
};

// The keys of all randomness in training samples. Validation and test samples are never augmented.
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
  // `samples` has indices in [0, size(split)).
  virtual Batch load(Split split, std::span<const int64_t> samples, const SampleContext& context) const = 0;
  // A name by which a user can find the sample: "train.csv:18", "cats/17.jpg", "train-images.gz[1234]".
  virtual std::string describe(Split split, int64_t sample) const = 0;
  // True if the decoded samples are in memory. Then a load costs little more than a copy, and prefetching would only
  // add cost.
  virtual bool in_memory() const = 0;
};

// Opens the files that the job names; `seed` only decides the split. Throws Error if the format is unknown, or if a
// file is missing or damaged.
std::unique_ptr<Dataset> open_dataset(const spec::DataOptions& options, uint64_t seed);

// The columns of a table as lines of text, the first one a heading: name, kind, missing values, reason. At most `most`
// columns.
std::vector<std::string> column_lines(const std::vector<ColumnFacts>& columns, size_t most = 60);

// ---- data for a trained model --------------------------------------------------------------------------------------

// These functions convert the part of DataInfo that a trained model keeps to JSON and back. The JSON leaves out sizes,
// digest and reasons.
std::string info_json(const DataInfo& info);
// Throws Error if `text` is not such JSON, or if one of its sizes contradicts another: the file may come from anywhere,
// and the readers trust the sizes of a DataInfo.
DataInfo info_from_json(const std::string& text);

// Opens new samples for a trained model. They are Split::test of a dataset whose other splits are empty. `train`
// describes the training data. Its preprocessing is applied to the samples; the training data itself is not needed.
// If `labelled` is false, the targets are not read and may be missing, and the targets of a batch are 0. Then `source`
// names only the file of inputs for idx and npy, and images may be one file or any folder of files.
// Of `options`, only data.on_corrupt and data.text.tokens matter.
std::unique_ptr<Dataset> open_inference_data(const spec::DataOptions& options, const DataInfo& train,
                                             const spec::DataSource& source, bool labelled);

// Turns text into the tokens of a trained text model, and tokens into text.
class TextCoder {
 public:
  struct Tokens {
    std::vector<int64_t> tokens;
    std::vector<uint64_t> offsets;  // the byte offset of each token in the text
  };

  // `train` describes the training data, as in open_inference_data(). Throws Error if that is no text.
  TextCoder(const spec::DataOptions& options, const DataInfo& train);
  // Throws Error if the text has a character that does not occur in the training data, or is not UTF-8. `name` is what
  // the message calls the text.
  Tokens encode(std::string_view text, const std::string& name) const;
  // Returns the character of a token, or its byte if data.text.tokens is bytes. Returns "" for the token that stands
  // for characters that do not occur in the training data.
  std::string decode(int64_t token) const;

 private:
  std::vector<uint32_t> vocabulary_;  // the code point or the byte of each token, ascending
  int64_t classes_;
  bool bytes_;
};

// ---- the preparation of samples, for a program that repeats it outside of Sinew ------------------------------------

// How one column of a table becomes input of a trained model. `*_at`: the first input column; -1: there is none.
struct PreparedColumn {
  enum class Kind { number, value, date, text };  // value: one input for each of `places`
  enum class Cells { number, boolean, date, word };
  std::string name;
  Kind kind = Kind::number;
  Cells cells = Cells::number;           // what the cells of the file are
  char decimal = '.', thousands = '\0';  // how numbers are written; '\0': in no groups
  std::string unit, date_form;           // "$"; iso, day_first, month_first, named or compact
  double fill = 0, center = 0, std = 1;  // number, date: (x - center) / std; `fill` replaces a missing x
  double year_center = 0, year_std = 1;  // date
  bool hours = false;                    // date
  int64_t number_at = -1, missing_at = -1, other_at = -1;
  std::vector<std::pair<std::string, int64_t>> places;  // value: the input of each value, in the order of the inputs
};
struct Preparation {
  std::string format;
  bool images = false;                  // image files; their pixels are divided by 255 first
  bool resized = false;                 // images of another size are resized
  DType dtype = DType::f32;             // arrays: of the file
  std::vector<double> mean, factor;     // arrays and images: (x - mean) * factor, for each channel or column
  std::vector<PreparedColumn> columns;  // tables
  std::vector<uint32_t> vocabulary;     // text: the code point (or byte) of each token, sorted
};
// Throws Error if the description of the data cannot be used.
Preparation preparation_of(const DataInfo& info);

// The cells of one column that a file would hold: numbers (NaN: missing), truth values (0, 1, NaN) and dates (seconds
// since 1970) in `numbers`, words in `words`.
struct CellColumn {
  std::vector<double> numbers;
  std::vector<std::string> words;
};
// Encodes made-up rows as rows of a file are encoded. `cells`: one for each of Preparation.columns. Returns f32 [rows,
// input columns].
Array encode_columns(const DataInfo& info, const std::vector<CellColumn>& cells);
// The texts of cells that have no value: "", "NA", ...
const std::vector<std::string>& missing_words();

// ---- proposing a job -----------------------------------------------------------------------------------------------

// What `sinew init` found at a path: data options that open_dataset accepts, a model that fits, and remarks for the
// user.
struct Proposal {
  spec::Job job;
  std::vector<std::string> remarks;  // also comments of the job file
  std::vector<std::string> details;  // the columns of a table
  std::optional<Error> trouble;      // the job cannot open the data, for this reason
};
// What the user of `sinew init` has decided.
struct Wanted {
  std::string target;         // the column to predict; empty: the most likely one
  std::string task = "auto";  // data.task
  double time_limit = 0;      // of a table: the seconds that one core may train; 0: no limit
  std::string test = {};      // the path of the test data; empty: a part of the data
};
// Throws Error if the kind of the data, or the column to predict, is not clear.
Proposal propose_job(const std::string& path, const Wanted& wanted = {});
// Writes the proposal as a short, commented job file. It holds the options that matter for this data and no option
// without effect. read_job() of the text gives the same job.
std::string proposal_yaml(const Proposal& proposal);
std::string proposal_text(const Proposal& proposal);  // the remarks and the details, for a terminal

// ---- packing -------------------------------------------------------------------------------------------------------

// Copies the images of a job into tars that WebDataset and data.format: webdataset read, with an index
// (docs/formats/pack.md).
struct PackRequest {
  std::string folder;                 // must not exist, or be empty
  int64_t shard_bytes = 256'000'000;  // the most bytes of a tar; one that holds a larger sample has more
  bool decode = false;                // stores the pixels, at the size of the job, instead of the encoded image
  int64_t threads = 1;
  std::function<void(int64_t done, int64_t all)> progress;  // may be empty; samples
};
struct PackResult {
  struct PackedSplit {
    std::string name;  // train, val or test; none is empty
    int64_t samples = 0, shards = 0, bytes = 0;
  };
  std::vector<PackedSplit> splits;
  DataInfo info;             // of the images; without the shape, the normalisation and the digest
  int64_t left_encoded = 0;  // decode: samples that do not decode (data.on_corrupt: skip)
  bool rounded = false;      // decode: the pixels of some sample were scaled, so they were rounded to bytes
};
// Packs each split in its order, so a training with the packed data visits the samples in the same order. The same
// images give the same bytes. The folder appears when all of it is written and durable: until then its name ends in
// ".packing". Throws Error if the job has no images, if a sample cannot be read, or if the disk is too small.
PackResult pack_images(const spec::DataOptions& options, uint64_t seed, const PackRequest& request);

// ---- order ---------------------------------------------------------------------------------------------------------

// A keyed permutation of 0..size-1 that takes O(1) memory and O(1) time for each position. It is a Feistel network over
// the next power of four, with cycle walking (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).
class Permutation {
 public:
  Permutation(RandomKey key, int64_t size);
  int64_t operator[](int64_t position) const;  // the sample at this position

 private:
  RandomKey key_;
  int64_t size_;
  int half_bits_;
};

// The order of the training samples in one epoch.
Permutation epoch_order(uint64_t seed, int64_t epoch, int64_t size);

// Where the samples of the next step begin. The cursor is part of the training state.
struct Cursor {
  int64_t epoch = 0;
  int64_t offset = 0;  // samples of this epoch that are already committed
  bool operator==(const Cursor&) const = default;
};

// The samples of one step: positions [first, first + count) in the order of one epoch. A step never spans two epochs.
struct StepRange {
  int64_t epoch = 0, first = 0, count = 0;
};
// Returns the samples of the step that begins at `cursor`. Throws Error if an epoch has no step.
StepRange step_range(const Cursor& cursor, int64_t train_size, int64_t batch_size, bool drop_last);
Cursor after(const StepRange& range, int64_t train_size, int64_t batch_size, bool drop_last);
int64_t steps_per_epoch(int64_t train_size, int64_t batch_size, bool drop_last);

// Splits the `count` samples of a step into S shards. Returns S pairs [first, last) of offsets within the step. It uses
// as many shards as those samples would fill in a full batch; the rest are empty. The sizes of the used shards differ
// by at most one, so a ragged batch never has a shard of one sample beside full ones.
std::vector<std::pair<int64_t, int64_t>> split_into_shards(int64_t count, int64_t batch_size, int64_t shards);

// Returns the number of samples in each part of an evaluation; the last part may have fewer. A part is as large as a
// shard of a full batch. It is larger if the split would otherwise have more than `most_parts` parts.
int64_t evaluation_part(int64_t size, int64_t batch_size, int64_t shards, int64_t most_parts);

// The default S: 8, or fewer if a shard would have under 16 samples. It depends on the job file alone.
int64_t default_shards(int64_t batch_size);

// ---- prefetch ------------------------------------------------------------------------------------------------------

// A shard to load: positions [first, first + count) in the order of (split, epoch).
struct ShardRequest {
  Split split = Split::train;
  int64_t epoch = 0, first = 0, count = 0;
  bool evaluation = false;  // true: samples of train are not augmented
  bool operator==(const ShardRequest&) const = default;
  auto operator<=>(const ShardRequest&) const = default;
};

// Loads shards ahead of need, in threads of its own. If no thread has begun to load a shard, the caller of take() loads
// it instead of waiting. The shards that the threads are loading, and the loaded shards that no caller has taken yet,
// hold at most `bytes` of memory.
class Prefetcher {
 public:
  // The number of threads may grow while the callers wait for samples and the threads for files.
  struct Tuning {
    int64_t most_threads = 0;   // 0: the number stays as it is
    double window_seconds = 2;  // between two decisions
  };
  Prefetcher(const Dataset& dataset, uint64_t seed, int64_t threads, int64_t bytes, const Tuning& tuning);
  Prefetcher(const Dataset& dataset, uint64_t seed, int64_t threads, int64_t bytes);
  ~Prefetcher();
  // Announces shards that callers will take, in this order, after the shards announced before. Any thread may call it.
  void prefetch(const std::vector<ShardRequest>& requests);
  void clear();  // drops all announced and loaded shards, except those that a take() waits for
  // Waits until those of these shards that were announced are loaded, at most so many seconds. Returns whether they
  // are. Any thread may call it.
  bool wait_for(const std::vector<ShardRequest>& requests, double seconds);
  // From now on so many threads load shards, and the number no longer changes by itself. At least 1; a prefetcher that
  // was made without threads has none. Any thread may call it.
  void use_threads(int64_t threads);
  // Returns the shard, whether it was announced or not. Rethrows what the loading threw. Any thread may call it.
  Batch take(const ShardRequest& request);
  double waited_seconds() const;  // time that callers spent waiting or loading, summed over all threads
  LoadUse use() const;            // what the loading has taken so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sinew::data
