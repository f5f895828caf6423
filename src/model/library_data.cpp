// The data set of a library behind data/'s interface.
#include <omp.h>

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

constexpr int64_t kDigested = 64;  // samples the digest of a data set looks at

// The threads that load are no lanes. In each of them, once: sums of more than one thread have other bits.
void compute_alone() {
  thread_local const bool alone = [] {
    omp_set_num_threads(1);
    at::init_num_threads();
    at::set_num_threads(1);
    return true;
  }();
  SINEW_CHECK(alone);
}

std::string shape_text(const torch::Tensor& tensor) {
  std::ostringstream text;
  text << toString(tensor.scalar_type()) << ' ' << tensor.sizes();
  return text.str();
}

RandomKey sample_key(uint64_t seed, int64_t epoch, int64_t sample) {
  return derive(random_key({seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(sample)}), "sample");
}

// The samples of one path, each checked against the first.
class Source {
 public:
  Source(const OpenLibrary& opened, const std::string& path, const library::Options& options)
      : where_(opened.path + ": " + path), set_(opened.offers.data(path, options)) {
    if (!set_) throw Error(where_ + ": its data set is none", "library.data returns a DataSet");
    if (set_->size() <= 0) throw Error(where_ + " has no samples", "check the path, and DataSet::size");
    const library::Sample first = sample(0, false, 0, 0);
    input_ = first.input;
    target_ = first.target;
    if (input_.scalar_type() != torch::kFloat32 && input_.scalar_type() != torch::kInt64)
      throw Error(where_ + ": inputs are " + shape_text(input_) + ", not float32, nor int64 tokens",
                  "Sample{input.to(torch::kFloat32), target}");
    const auto wanted = set_->classes() > 0 ? torch::kInt64 : torch::kFloat32;
    if (target_.scalar_type() != wanted)
      throw Error(where_ + ": targets are " + shape_text(target_) + ", but with classes() " +
                      std::to_string(set_->classes()) + " they are " + toString(wanted),
                  "classes are int64, numbers float32 with classes() 0");
  }

  int64_t size() const { return set_->size(); }
  const torch::Tensor& input() const { return input_; }
  const torch::Tensor& target() const { return target_; }
  int64_t classes() const { return set_->classes(); }
  std::string name(int64_t index) const { return set_->name(index); }

  library::Sample sample(int64_t index, bool training, uint64_t seed, int64_t epoch) const {
    compute_alone();
    const torch::NoGradGuard no_grad;
    const RandomScope scope(sample_key(training ? seed : 0, training ? epoch : 0, index));
    library::Sample sample = set_->sample(index, training);
    if (!sample.input.defined() || !sample.target.defined())
      throw Error(where_ + ": sample " + set_->name(index) + " has no input or no target", "Sample{input, target}");
    sample.input = sample.input.contiguous();
    sample.target = sample.target.contiguous();
    if (input_.defined()) check(sample, index);
    return sample;
  }

 private:
  void check(const library::Sample& sample, int64_t index) const {
    const auto fits = [](const torch::Tensor& a, const torch::Tensor& b) {
      return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type();
    };
    if (fits(sample.input, input_) && fits(sample.target, target_)) return;
    throw Error(where_ + ": sample " + set_->name(index) + " is " + shape_text(sample.input) + " with " +
                    shape_text(sample.target) + ", but the first is " + shape_text(input_) + " with " +
                    shape_text(target_),
                "all samples have one shape: pad or crop them");
  }

  std::string where_;
  std::unique_ptr<library::DataSet> set_;
  torch::Tensor input_, target_;  // of the first sample
};

struct PartOf {
  const Source* source = nullptr;
  std::vector<int64_t> samples;  // empty: all of them
  int64_t size() const {
    return source == nullptr ? 0 : samples.empty() ? source->size() : static_cast<int64_t>(samples.size());
  }
  int64_t operator[](int64_t i) const { return samples.empty() ? i : samples[static_cast<size_t>(i)]; }
};

class LibraryData final : public data::Dataset {
 public:
  explicit LibraryData(const spec::Job& job)
      : path_(job.data.library.empty() ? job.model.file : job.data.library),
        opened_(open_library(path_)),
        options_(options_of(job.model.options)) {
    if (!opened_.offers.data)
      throw Error(path_ + " offers no data set", "SINEW_LIBRARY(library) { library.data = ...; }");
  }

  void open(const spec::DataOptions& options, uint64_t seed) {
    PartOf& train = part(data::Part::train, options.train.path);
    if (options.val.given()) part(data::Part::val, options.val.path);
    if (options.test.given()) part(data::Part::test, options.test.path);
    split(train, options, seed);
    describe_all(*train.source);
    info_.digest = identity(train);
  }
  // As the only part: test.
  void open_alone(const std::string& path, const data::DataInfo& train) {
    const Source& source = *part(data::Part::test, path).source;
    describe_all(source);
    if (info_.input_shape != train.input_shape || info_.input_dtype != train.input_dtype)
      throw Error(path + ": samples are " + shape_text(source.input()) + ", which is not what the model was trained on",
                  "take data of the same shape");
    info_.task = train.task;
    info_.classes = train.classes;
    info_.class_names = train.class_names;
    info_.target_shape = train.target_shape;
  }

  const data::DataInfo& info() const override { return info_; }
  int64_t size(data::Part which) const override { return parts_[static_cast<size_t>(which)].size(); }
  std::string describe(data::Part which, int64_t sample) const override {
    const PartOf& from = parts_[static_cast<size_t>(which)];
    return from.source->name(from[sample]);
  }
  bool in_memory() const override { return false; }

  data::Batch load(data::Part which, std::span<const int64_t> samples,
                   const data::SampleContext& context) const override {
    const PartOf& from = parts_[static_cast<size_t>(which)];
    const auto count = static_cast<int64_t>(samples.size());
    const auto with_count = [&](const Shape& shape) {
      Shape whole = shape;
      whole.insert(whole.begin(), count);
      return whole;
    };
    const DType target = info_.task == data::Task::regression ? DType::f32 : DType::i64;
    data::Batch batch{Array(info_.input_dtype, with_count(info_.input_shape)),
                      Array(target, with_count(info_.target_shape)),
                      {samples.begin(), samples.end()},
                      {}};
    std::byte *input = batch.input.bytes.data(), *targets = batch.target.bytes.data();
    for (const int64_t sample : samples) {
      const library::Sample one = from.source->sample(from[sample], context.augment, context.seed, context.epoch);
      std::memcpy(input, one.input.const_data_ptr(), one.input.nbytes());
      input += one.input.nbytes();
      std::memcpy(targets, one.target.const_data_ptr(), one.target.nbytes());
      targets += one.target.nbytes();
    }
    return batch;
  }

 private:
  PartOf& part(data::Part which, const std::string& path) {
    sources_.push_back(std::make_unique<Source>(opened_, path, options_));
    PartOf& made = parts_[static_cast<size_t>(which)];
    made.source = sources_.back().get();
    if (sources_.size() > 1 && (made.source->input().sizes() != sources_[0]->input().sizes() ||
                                made.source->classes() != sources_[0]->classes()))
      throw Error(path + ": samples are " + shape_text(made.source->input()) + ", those of train " +
                      shape_text(sources_[0]->input()),
                  "all parts have samples of one shape, and the same classes");
    return made;
  }

  // A keyed draw, as of every other data set: a function of (seed, size, shares).
  void split(PartOf& train, const spec::DataOptions& options, uint64_t seed) {
    const int64_t size = train.size();
    const auto share = [&](double fraction) { return static_cast<int64_t>(fraction * static_cast<double>(size)); };
    const int64_t val = options.val.given() ? 0 : share(options.split_val);
    const int64_t test = options.test.given() ? 0 : share(options.split_test);
    if (val + test == 0) return;
    const data::Permutation order(derive(random_key({seed}), "split"), size);
    PartOf cut[3] = {{train.source, {}}, {train.source, {}}, {train.source, {}}};
    for (int64_t i = 0; i < size; ++i) cut[i < val ? 1 : i < val + test ? 2 : 0].samples.push_back(order[i]);
    for (PartOf& one : cut) std::ranges::sort(one.samples);
    if (val > 0) parts_[1] = std::move(cut[1]);
    if (test > 0) parts_[2] = std::move(cut[2]);
    if (cut[0].samples.empty())
      throw Error("data.split leaves nothing to train on", "give more data, or smaller shares");
    train = std::move(cut[0]);
  }

  void describe_all(const Source& source) {
    info_.format = "library";
    info_.preparation = "{}";  // its samples come as they are
    info_.input_shape = Shape(source.input().sizes().begin(), source.input().sizes().end());
    info_.target_shape = Shape(source.target().sizes().begin(), source.target().sizes().end());
    info_.input_dtype = source.input().scalar_type() == torch::kInt64 ? DType::i64 : DType::f32;
    info_.classes = source.classes();
    const bool tokens = info_.input_dtype == DType::i64 && info_.target_shape == info_.input_shape;
    info_.task = info_.classes == 0 ? data::Task::regression
                 : tokens           ? data::Task::next_token
                                    : data::Task::classification;
    if (info_.task == data::Task::next_token) info_.tokens_per_sample = element_count(info_.input_shape);
    if (info_.task == data::Task::classification && !info_.target_shape.empty())
      throw Error(path_ + ": a class is " + shape_text(source.target()) + ", not one number",
                  "torch::tensor(label, torch::kInt64)");
    info_.train_size = size(data::Part::train);
    info_.val_size = size(data::Part::val);
    info_.test_size = size(data::Part::test);
  }

  Digest identity(const PartOf& train) const {
    std::vector<Digest> parts = {digest_of(std::string_view(opened_.digest))};
    for (const PartOf& one : parts_) parts.push_back(digest_of(std::to_string(one.size())));
    const int64_t step = std::max<int64_t>(1, train.size() / kDigested);
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
  std::vector<std::unique_ptr<Source>> sources_;
  PartOf parts_[3];
};

}  // namespace

std::unique_ptr<data::Dataset> open_library_data(const spec::Job& job) {
  auto set = std::make_unique<LibraryData>(job);
  if (job.data.train.path.empty()) throw Error("data.train names no path", "data: {format: library, train: path}");
  set->open(job.data, job.trainer.seed);
  return set;
}

std::unique_ptr<data::Dataset> open_library_inputs(const spec::Job& job, const data::DataInfo& train,
                                                   const spec::DataSource& source, bool) {
  auto set = std::make_unique<LibraryData>(job);
  set->open_alone(source.path, train);
  return set;
}

}  // namespace sinew::model
