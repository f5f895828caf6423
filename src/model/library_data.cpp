// Implements data::Dataset for a data set that comes from a user's shared object (model/library.h).
#include <algorithm>
#include <cstring>
#include <span>
#include <sstream>

#include "base/check.h"
#include "base/error.h"
#include "model/library.h"
#include "model/makers.h"

namespace sinew::model {
namespace {

constexpr int64_t kDigestedSamples = 64;  // the least number of training samples that a digest covers (all, if fewer)

std::string shape_text(const torch::Tensor& tensor) {
  std::ostringstream text;
  text << toString(tensor.scalar_type()) << ' ' << tensor.sizes();
  return text.str();
}

Shape shape_of(const torch::Tensor& tensor) {
  return {tensor.sizes().begin(), tensor.sizes().end()};
}
// A Source accepts only int64 and float32 tensors.
DType dtype_of(const torch::Tensor& tensor) {
  return tensor.scalar_type() == torch::kInt64 ? DType::i64 : DType::f32;
}
DType target_dtype(const data::DataInfo& info) {
  return info.task == data::Task::regression ? DType::f32 : DType::i64;
}

RandomKey sample_key(uint64_t seed, int64_t epoch, int64_t sample) {
  return derive(random_key({seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(sample)}), "sample");
}

// The samples at one path. Each sample must have the shapes and types of the first one.
class Source {
 public:
  Source(const OpenLibrary& opened, const std::string& path, const library::Options& options)
      : where_(opened.path + ": " + path), set_(opened.offers.data(path, options)) {
    if (!set_) throw Error("LIBRARY_DATA_INVALID", where_ + ": library.data returned no data set", "return a DataSet");
    if (set_->size() <= 0)
      throw Error("LIBRARY_DATA_INVALID", where_ + " has no samples", "check the path and DataSet::size");
    const library::Sample first = sample(0, false, 0, 0);
    input_ = first.input;
    target_ = first.target;
    if (input_.scalar_type() != torch::kFloat32 && input_.scalar_type() != torch::kInt64)
      throw Error("LIBRARY_DATA_INVALID",
                  where_ + ": inputs are " + shape_text(input_) + ", but must be float32, or int64 for tokens",
                  "return Sample{input.to(torch::kFloat32), target}");
    const auto wanted = set_->classes() > 0 ? torch::kInt64 : torch::kFloat32;
    if (target_.scalar_type() != wanted)
      throw Error("LIBRARY_DATA_INVALID",
                  where_ + ": targets are " + shape_text(target_) + ", but with classes() == " +
                      std::to_string(set_->classes()) + " they must be " + toString(wanted),
                  "return classes as int64, or numbers as float32 with classes() == 0");
  }

  int64_t size() const { return set_->size(); }
  const torch::Tensor& input() const { return input_; }
  const torch::Tensor& target() const { return target_; }
  int64_t classes() const { return set_->classes(); }
  std::string name(int64_t index) const { return set_->name(index); }
  // Returns whether the samples of the two sources have the same shapes and types, so that they can share batches.
  bool compatible(const Source& other, bool labelled) const {
    return fits(input_, other.input_) && (!labelled || (fits(target_, other.target_) && classes() == other.classes()));
  }
  std::string text() const {
    return shape_text(input_) + " with " + shape_text(target_) + " of " + std::to_string(classes()) + " classes";
  }

  library::Sample sample(int64_t index, bool training, uint64_t seed, int64_t epoch) const {
    // The threads that load data are not lanes, so they limit themselves at their first sample.
    thread_local const bool limited = (use_one_thread(), true);
    SINEW_CHECK(limited);
    const torch::NoGradGuard no_grad;
    const RandomScope scope(sample_key(training ? seed : 0, training ? epoch : 0, index));
    library::Sample sample = set_->sample(index, training);
    if (!sample.input.defined() || !sample.target.defined())
      throw Error("LIBRARY_DATA_INVALID", where_ + ": sample " + set_->name(index) + " has no input or no target",
                  "return Sample{input, target}");
    sample.input = sample.input.contiguous();
    sample.target = sample.target.contiguous();
    if (input_.defined()) check(sample, index);
    return sample;
  }

 private:
  static bool fits(const torch::Tensor& a, const torch::Tensor& b) {
    return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type();
  }
  void check(const library::Sample& sample, int64_t index) const {
    if (fits(sample.input, input_) && fits(sample.target, target_)) return;
    throw Error("LIBRARY_DATA_INVALID",
                where_ + ": sample " + set_->name(index) + " is " + shape_text(sample.input) + " with " +
                    shape_text(sample.target) + ", but the first is " + shape_text(input_) + " with " +
                    shape_text(target_),
                "pad or crop the samples to one shape");
  }

  std::string where_;
  std::unique_ptr<library::DataSet> set_;
  torch::Tensor input_, target_;  // the tensors of the first sample
};

struct SplitSamples {
  const Source* source = nullptr;
  std::vector<int64_t> samples;  // indices in the source; empty if the split has all samples
  int64_t size() const {
    return source == nullptr ? 0 : samples.empty() ? source->size() : static_cast<int64_t>(samples.size());
  }
  int64_t operator[](int64_t i) const { return samples.empty() ? i : samples[static_cast<size_t>(i)]; }
};

class LibraryData final : public data::Dataset {
 public:
  LibraryData(const OpenLibrary& opened, const spec::Job& job)
      : path_(opened.path), opened_(opened), options_(options_of(job.model.options)) {
    if (!opened_.offers.data)
      throw Error("LIBRARY_OFFERS_NONE", path_ + " offers no data set",
                  "SINEW_LIBRARY(library) { library.data = ...; }");
  }

  void open(const spec::DataOptions& options, uint64_t seed) {
    SplitSamples& train = add_split(data::Split::train, options.train.path);
    if (options.val.given()) add_split(data::Split::val, options.val.path);
    if (options.test.given()) add_split(data::Split::test, options.test.path);
    split_train(train, options, seed);
    fill_info(*train.source);
    info_.digest = identity(train);
  }
  // Opens `path` as the only split, test. If `labelled` is false, batches contain zeros as targets, and the library's
  // targets are ignored, because those of unlabelled samples may have another shape.
  void open_as_test(const std::string& path, const data::DataInfo& train, bool labelled) {
    const Source& source = *add_split(data::Split::test, path).source;
    const bool input = shape_of(source.input()) == train.input_shape && dtype_of(source.input()) == train.input_dtype;
    const bool target =
        shape_of(source.target()) == train.target_shape && dtype_of(source.target()) == target_dtype(train);
    if (!input || (labelled && !target))
      throw Error("LIBRARY_DATA_MISMATCH",
                  path + ": samples are " + source.text() + ", unlike those that the model was trained on",
                  "use data of the same shapes and types");
    labelled_ = labelled;
    info_ = train;
    info_.digest = {};  // there is no digest, because these are not the training samples
    info_.reasons.clear();
    info_.train_size = info_.val_size = 0;
    info_.test_size = size(data::Split::test);
  }

  const data::DataInfo& info() const override { return info_; }
  int64_t size(data::Split split) const override { return splits_[static_cast<size_t>(split)].size(); }
  std::string describe(data::Split split, int64_t sample) const override {
    const SplitSamples& from = splits_[static_cast<size_t>(split)];
    return from.source->name(from[sample]);
  }
  bool in_memory() const override { return false; }

  data::Batch load(data::Split split, std::span<const int64_t> samples,
                   const data::SampleContext& context) const override {
    const SplitSamples& from = splits_[static_cast<size_t>(split)];
    const auto count = static_cast<int64_t>(samples.size());
    const auto with_count = [&](const Shape& shape) {
      Shape whole = shape;
      whole.insert(whole.begin(), count);
      return whole;
    };
    data::Batch batch{Array(info_.input_dtype, with_count(info_.input_shape)),
                      Array(target_dtype(info_), with_count(info_.target_shape)),
                      {samples.begin(), samples.end()},
                      {}};
    std::byte *input = batch.input.bytes.data(), *targets = batch.target.bytes.data();
    if (!labelled_ && batch.target.bytes.size() > 0) std::memset(targets, 0, batch.target.bytes.size());
    for (const int64_t sample : samples) {
      const library::Sample one = from.source->sample(from[sample], context.augment, context.seed, context.epoch);
      std::memcpy(input, one.input.const_data_ptr(), one.input.nbytes());
      input += one.input.nbytes();
      if (!labelled_) continue;
      std::memcpy(targets, one.target.const_data_ptr(), one.target.nbytes());
      targets += one.target.nbytes();
    }
    return batch;
  }

 private:
  SplitSamples& add_split(data::Split split, const std::string& path) {
    sources_.push_back(std::make_unique<Source>(opened_, path, options_));
    SplitSamples& made = splits_[static_cast<size_t>(split)];
    made.source = sources_.back().get();
    if (!made.source->compatible(*sources_[0], /*labelled=*/true))
      throw Error(
          "LIBRARY_DATA_INVALID",
          path + ": samples are " + made.source->text() + ", but those of data.train are " + sources_[0]->text(),
          "give all splits the same shapes, types and classes");
    return made;
  }

  // Takes val and test from train by a keyed permutation. The result is a function of (seed, size, fractions).
  void split_train(SplitSamples& train, const spec::DataOptions& options, uint64_t seed) {
    const int64_t size = train.size();
    const auto share = [&](double fraction) { return static_cast<int64_t>(fraction * static_cast<double>(size)); };
    const int64_t val = options.val.given() ? 0 : share(options.split_val);
    const int64_t test = options.test.given() ? 0 : share(options.split_test);
    if (val + test == 0) return;
    const data::Permutation order(derive(random_key({seed}), "split"), size);
    SplitSamples cut[3] = {{train.source, {}}, {train.source, {}}, {train.source, {}}};
    for (int64_t i = 0; i < size; ++i) cut[i < val ? 1 : i < val + test ? 2 : 0].samples.push_back(order[i]);
    for (SplitSamples& one : cut) std::ranges::sort(one.samples);
    if (val > 0) splits_[1] = std::move(cut[1]);
    if (test > 0) splits_[2] = std::move(cut[2]);
    if (cut[0].samples.empty())
      throw Error("DATA_SPLIT_EMPTY", "data.split leaves no training samples", "give more data, or smaller shares");
    train = std::move(cut[0]);
  }

  void fill_info(const Source& source) {
    info_.format = "library";
    info_.preparation = "{}";  // the library has already preprocessed its samples
    info_.input_shape = shape_of(source.input());
    info_.target_shape = shape_of(source.target());
    info_.input_dtype = dtype_of(source.input());
    info_.classes = source.classes();
    const bool tokens = info_.input_dtype == DType::i64 && info_.target_shape == info_.input_shape;
    info_.task = info_.classes == 0 ? data::Task::regression
                 : tokens           ? data::Task::next_token
                                    : data::Task::classification;
    if (info_.task == data::Task::next_token) info_.tokens_per_sample = element_count(info_.input_shape);
    if (info_.task == data::Task::classification && !info_.target_shape.empty())
      throw Error("LIBRARY_DATA_INVALID",
                  path_ + ": a class is " + shape_text(source.target()) + ", but must be one number",
                  "return torch::tensor(label, torch::kInt64)");
    info_.train_size = size(data::Split::train);
    info_.val_size = size(data::Split::val);
    info_.test_size = size(data::Split::test);
  }

  Digest identity(const SplitSamples& train) const {
    std::vector<Digest> parts = {digest_of(std::string_view(opened_.digest))};
    for (const SplitSamples& one : splits_) parts.push_back(digest_of(std::to_string(one.size())));
    const int64_t step = std::max<int64_t>(1, train.size() / kDigestedSamples);
    for (int64_t i = 0; i < train.size(); i += step) {
      const library::Sample sample = train.source->sample(train[i], false, 0, 0);
      for (const torch::Tensor& tensor : {sample.input, sample.target})
        parts.push_back(digest_of(std::span(static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes())));
    }
    return digest_of(parts);
  }

  std::string path_;
  const OpenLibrary& opened_;
  library::Options options_;
  data::DataInfo info_;
  bool labelled_ = true;
  std::vector<std::unique_ptr<Source>> sources_;
  SplitSamples splits_[3];
};

const OpenLibrary& library_of(const spec::Job& job) {
  return open_library(job.data.library.empty() ? job.model.file : job.data.library);
}

}  // namespace

std::unique_ptr<data::Dataset> data_of(const OpenLibrary& opened, const spec::Job& job) {
  auto set = std::make_unique<LibraryData>(opened, job);
  if (job.data.train.path.empty())
    throw Error("DATA_SOURCE_MISSING", "data.train names no path", "set data: {format: library, train: PATH}");
  set->open(job.data, job.trainer.seed);
  return set;
}

std::unique_ptr<data::Dataset> inputs_of(const OpenLibrary& opened, const spec::Job& job, const data::DataInfo& train,
                                         const spec::DataSource& source, bool labelled) {
  auto set = std::make_unique<LibraryData>(opened, job);
  set->open_as_test(source.path, train, labelled);
  return set;
}

std::unique_ptr<data::Dataset> open_library_data(const spec::Job& job) {
  return data_of(library_of(job), job);
}

std::unique_ptr<data::Dataset> open_library_inputs(const spec::Job& job, const data::DataInfo& train,
                                                   const spec::DataSource& source, bool labelled) {
  return inputs_of(library_of(job), job, train, source, labelled);
}

}  // namespace sinew::model
