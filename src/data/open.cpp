#include <array>
#include <sstream>

#include "base/error.h"
#include "data/data.h"
#include "data/files.h"
#include "data/formats.h"

namespace sinew::data {
namespace {

constexpr std::array kFormats = std::to_array<Format>({
    {"idx", open_arrays,
     "MNIST's IDX files: images: and labels:, plain or .gz, or path: a folder with the usual names"},
    {"cifar10", open_arrays, "CIFAR-10 binary version: path: its folder or one .bin file"},
    {"cifar100", open_arrays, "CIFAR-100 binary version, fine labels: path: its folder or one .bin file"},
    {"npy", open_arrays, "NumPy arrays: images: the inputs and labels: the targets"},
    {"npz", open_arrays, "NumPy archive: path: a .npz with x and y, or x_train, y_train, x_test, y_test"},
    {"csv", open_table, "comma-separated table with a header line; columns.target names what to predict"},
    {"tsv", open_table, "tab-separated table with a header line"},
    {"jsonl", open_table, "one flat JSON object a line"},
    {"text", open_text, "plain UTF-8 text or bytes, for predicting the next token"},
    {"image_folder", open_images, "path: a folder with one sub-folder of images a class"},
    {"image_list", open_images, "path: a list of image files with their labels"},
});

// A data set whose format was told by looking: the same, with the reason written down.
class Detected final : public Dataset {
 public:
  Detected(std::unique_ptr<Dataset> inner, const std::string& reason)
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

// Of a format that was named the job file's reader says it. Such options would be left out of resolved.yaml, and with
// them the run could not go on: the data would seem to be other data.
void refuse_without_effect(const spec::DataOptions& resolved, const std::string& reason) {
  const std::vector<spec::Problem> problems = spec::without_effect(resolved);
  if (!problems.empty()) throw Error(problems[0].what + " (" + reason + ")", problems[0].hint);
}

void check_split(double fraction, const std::string& key) {
  if (!(fraction >= 0 && fraction < 1)) throw Error(key + " must be in [0, 1)", "for example " + key + "=0.1");
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
  const auto list = [&](const auto& values) {  // lengths first, so that no two lists read alike
    text << values.size() << ':';
    for (const auto& value : values) text << value << '\0';
  };
  // Not the task: where it is auto the files decide it, and a resumed run names what they decided.
  text << options.format << '\0' << options.normalize << '\0' << options.on_corrupt << '\0';
  if (options.split_val > 0 || options.split_test > 0) {
    text << options.split_val << ' ' << options.split_test << ' ' << seed << '\0';
  }
  text << options.columns.target << '\0';
  list(options.columns.features);
  list(options.columns.categorical);
  list(options.columns.ignore);
  list(options.image.size);
  text << options.image.channels << ' ' << options.text.tokens << ' ' << options.text.window;
  return digest_of(std::string_view(text.str()));
}

std::unique_ptr<Dataset> open_dataset(const spec::DataOptions& options, uint64_t seed) {
  if (!options.train.given()) throw Error("data.train names no files", "give data.train.path");
  check_split(options.split_val, "data.split.val");
  check_split(options.split_test, "data.split.test");
  if (options.split_val + options.split_test >= 1) {
    throw Error("data.split leaves nothing to train on", "val and test together must stay below 1");
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
    return std::make_unique<Detected>(std::move(dataset), reason);
  }
  if (resolved.format == "library")
    throw Error("data.format: library is opened where the model is", "sinew train, check, eval and predict open it");
  std::string known;
  for (const Format& format : kFormats) known += (known.empty() ? "" : ", ") + std::string(format.name);
  throw Error("data.format: '" + resolved.format + "' is no format", "one of: auto, " + known);
}

}  // namespace sinew::data
