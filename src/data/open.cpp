#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "base/joined.h"
#include "data/data.h"
#include "data/files.h"
#include "data/formats.h"

namespace sinew::data {
namespace {

constexpr std::array kFormats = std::to_array<Format>({
    {"idx", open_arrays,
     "IDX files as of MNIST: images: and labels:, plain or .gz, or path: a folder with the usual names"},
    {"cifar10", open_arrays, "CIFAR-10 binary version: path: its folder or one .bin file"},
    {"cifar100", open_arrays, "CIFAR-100 binary version, fine labels: path: its folder or one .bin file"},
    {"npy", open_arrays, "NumPy arrays: images: the inputs and labels: the targets"},
    {"npz", open_arrays, "NumPy archive: path: a .npz with x and y, or x_train, y_train, x_test, y_test"},
    {"csv", open_table, "table of text, with commas or another separator; columns.target names what to predict"},
    {"tsv", open_table, "table of text with tabs"},
    {"jsonl", open_table, "one flat JSON object on each line"},
    {"text_folder", open_table, "path: a folder with one sub-folder of .txt files for each class"},
    {"text", open_text, "plain UTF-8 text or bytes, for predicting the next token"},
    {"image_folder", open_images, "path: a folder with one sub-folder of images for each class"},
    {"image_list", open_images, "path: a list of image files with their labels"},
    {"webdataset", open_images, "path: a .tar of images with their labels, a folder of such files, or a pattern"},
});

// Wraps a dataset whose format was detected, and adds the reason for the format to its info.
class DetectedDataset final : public Dataset {
 public:
  DetectedDataset(std::unique_ptr<Dataset> inner, const std::string& reason)
      : inner_(std::move(inner)), info_(inner_->info()) {
    info_.reasons["data.format"] = reason;
  }
  const DataInfo& info() const override { return info_; }
  int64_t size(Split split) const override { return inner_->size(split); }
  Batch load(Split split, std::span<const int64_t> samples, const SampleContext& context) const override {
    return inner_->load(split, samples, context);
  }
  std::string describe(Split split, int64_t sample) const override { return inner_->describe(split, sample); }
  bool in_memory() const override { return inner_->in_memory(); }

 private:
  std::unique_ptr<Dataset> inner_;
  DataInfo info_;
};

// Refuses options that have no effect on the detected format. (If the job names the format, the reader of job files
// refuses them.) The digest of the data covers such options, but resolved.yaml leaves them out. So a resumed run would
// compute another digest and refuse the data.
void refuse_without_effect(const spec::DataOptions& resolved, const std::string& reason) {
  const std::vector<spec::Problem> problems = spec::without_effect(resolved);
  if (problems.empty()) return;
  throw Error("DATA_BAD_OPTION", problems[0].what + " (" + reason + ")", problems[0].hint);
}

bool is_table(const std::string& format) {
  return std::any_of(kFormats.begin(), kFormats.end(),
                     [&](const Format& one) { return one.name == format && one.open == open_table; });
}

void check_fraction(double fraction, const std::string& key) {
  if (fraction >= 0 && fraction < 1) return;
  throw Error("DATA_BAD_SPLIT", key + " must be at least 0 and below 1", "for example " + key + "=0.1");
}

}  // namespace

std::span<const Format> formats() {
  return kFormats;
}

std::string to_string(Split split) {
  return split == Split::train ? "train" : split == Split::val ? "val" : "test";
}

Digest options_digest(const spec::DataOptions& options, uint64_t seed) {
  std::ostringstream text;
  text << std::hexfloat;
  const auto list = [&](const auto& values) {  // writes the length first, so that no two lists give the same text
    text << values.size() << ':';
    for (const auto& value : values) text << value << '\0';
  };
  // The digest leaves out the task. If the job says auto, the files decide the task, and the job of a resumed run names
  // that task. Both jobs must give the same digest.
  text << options.format << '\0' << options.normalize << '\0' << options.on_corrupt << '\0';
  if (options.split_val > 0 || options.split_test > 0) {
    text << options.split_val << ' ' << options.split_test << ' ' << seed << '\0';
    text << options.stratify << options.split_group << '\0' << options.split_by << '\0';
  }
  if (options.folds > 0) {  // a job without folds keeps its digest
    text << "fold " << options.fold.value_or(0) << " of " << options.folds << ' ' << options.split_test << ' ' << seed;
    text << '\0' << options.stratify << options.split_group << '\0' << options.split_by << '\0';
  }
  text << options.columns.target << '\0';
  list(options.columns.features);
  list(options.columns.categorical);
  list(options.columns.ignore);
  if (is_table(options.format)) {  // the third way of reading and encoding tables; a new way needs another number
    text << "tables 3" << '\0';
    const spec::TableOptions& table = options.table;
    for (const std::string* value : {&table.sep, &table.encoding, &table.decimal, &table.thousands, &table.header,
                                     &table.dates, &options.columns.on_bad_cell}) {
      text << *value << '\0';
    }
    for (const auto* names :
         {&options.columns.numeric, &options.columns.boolean, &options.columns.date, &options.columns.text}) {
      list(*names);
    }
  }
  list(options.image.size);
  text << options.image.channels << ' ' << options.text.tokens << ' ' << options.text.window;
  return digest_of(std::string_view(text.str()));
}

std::unique_ptr<Dataset> open_dataset(const spec::DataOptions& options, uint64_t seed) {
  if (!options.train.given()) {
    throw Error("DATA_BAD_SOURCE", "data.train names no files", "set data.train.path");
  }
  check_fraction(options.split_val, "data.split.val");
  check_fraction(options.split_test, "data.split.test");
  if (options.split_val + options.split_test >= 1) {
    throw Error("DATA_BAD_SPLIT", "data.split leaves no samples for training",
                "keep the sum of data.split.val and data.split.test below 1");
  }
  const int64_t folds = options.folds, fold = options.fold.value_or(0);
  if (folds > 0 && (folds == 1 || fold < 0 || fold >= folds || options.split_val > 0 || options.val.given())) {
    throw Error("DATA_BAD_SPLIT", "data.split.folds needs at least two folds, one of them as the validation data",
                "give data.split.fold from 0 to folds - 1, and no other validation data");
  }
  spec::DataOptions resolved = options;
  std::string reason;
  if (options.format == "auto") {
    const DetectedFormat detected = detect_format(options.train, options);
    resolved.format = detected.format;
    reason = detected.reason;
    refuse_without_effect(resolved, reason);
  }
  for (const Format& format : kFormats) {
    if (format.name != resolved.format) continue;
    auto dataset = format.open(resolved, seed);
    if (reason.empty()) return dataset;
    return std::make_unique<DetectedDataset>(std::move(dataset), reason);
  }
  if (resolved.format == "library") {
    throw Error("DATA_UNKNOWN_FORMAT", "this command cannot open data.format: library",
                "use sinew train, check, eval or predict");
  }
  throw Error("DATA_UNKNOWN_FORMAT", "data.format: '" + resolved.format + "' is not a format",
              "use one of: auto, " + joined(kFormats, ", ", &Format::name));
}

}  // namespace sinew::data
