#include "train/fit_memory.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "base/check.h"

namespace sinew::train {
namespace {

double product(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), 1.0,
                         [](double all, int64_t one) { return all * static_cast<double>(one); });
}

// What a model can have at most, in numbers of 4 bytes.
struct ModelSize {
  double parameters = 0, activations = 0;  // activations of one sample, kept for the backward pass
};

// Layers that multiply by a matrix keep at most a few numbers for each of their weights.
constexpr double kPerWeight = 64;
// Convolutional networks keep at most so many numbers for each number of their input, in the usual architectures:
// ResNet-50 keeps 170, and no other network that torchvision has keeps 2,000.
constexpr double kPerInput = 4096;

ModelSize size_of_resnet(const spec::ModelOptions& model, const data::DataInfo& info) {
  const auto width = static_cast<double>(model.width);
  const double pixels = info.input_shape.size() == 3 ? static_cast<double>(info.input_shape[1] * info.input_shape[2])
                                                     : product(info.input_shape);
  // The imagenet stem divides each side by 4. In the bottlenecks of ResNet-50 a stage has four times the channels.
  const double of_pixels = model.stem == "imagenet" ? 32 : 256;
  return {.parameters = 26e6 * std::max(0.01, width * width / 4096), .activations = of_pixels * width * pixels};
}

ModelSize size_of(const spec::ModelOptions& model, const data::DataInfo& info) {
  const double inputs = product(info.input_shape), outputs = std::max<double>(1, static_cast<double>(info.classes));
  if (model.name.starts_with("resnet")) return size_of_resnet(model, info);
  if (model.name == "cnn") {
    double channels = 0, before = info.input_shape.empty() ? 1 : static_cast<double>(info.input_shape[0]), weights = 0;
    for (const int64_t one : model.channels) {
      weights += 25 * before * static_cast<double>(one);
      channels += before = static_cast<double>(one);
    }
    return {.parameters = weights + before * outputs * inputs, .activations = 10 * channels * inputs};
  }
  if (model.name == "lstm") {
    const auto hidden = static_cast<double>(model.hidden_size * (model.bidirectional ? 2 : 1)),
               vector = static_cast<double>(model.embedding), layers = static_cast<double>(model.layers);
    const double weights = outputs * (vector + hidden) + layers * 8 * hidden * (hidden + vector);
    return {.parameters = weights, .activations = inputs * (20 * layers * hidden + 4 * outputs + 4 * vector)};
  }
  if (!model.file.empty()) {  // no model keeps more numbers for a weight or an input, apart from unusual ones
    std::error_code unknown;
    const auto bytes = std::filesystem::file_size(model.file, unknown);
    const double weights = unknown ? 1e9 : static_cast<double>(bytes) / 4;
    return {.parameters = weights, .activations = kPerWeight * weights + kPerInput * inputs};
  }
  // linear, svm, mlp, tabular
  double before = inputs, weights = 0;
  if (model.name == "tabular") before *= static_cast<double>(1 + model.tabular.numeric_embedding_size);
  if (model.name == "mlp" || model.name == "tabular") {
    for (const int64_t one : model.hidden) {
      weights += before * static_cast<double>(one);
      before = static_cast<double>(one);
    }
  }
  weights += before * std::max(outputs, product(info.target_shape));
  const double units =
      inputs + static_cast<double>(std::accumulate(model.hidden.begin(), model.hidden.end(), int64_t{0}));
  return {.parameters = weights + inputs * static_cast<double>(4 * model.tabular.frequencies),
          .activations =
              16 * units + (model.name == "tabular" ? 8 * inputs * static_cast<double>(model.tabular.frequencies) : 0)};
}

// ---- what the trials say about shapes -----------------------------------------------------------------------------

class Trials {
 public:
  Trials(const FitProblem& problem, const std::vector<MemoryTrial>& trials) : room_(problem.room), trials_(trials) {}

  const MemoryTrial* of(StepShape shape) const {
    const auto found = std::ranges::find(trials_, shape, &MemoryTrial::shape);
    return found == trials_.end() ? nullptr : &*found;
  }
  bool fits(const MemoryTrial& trial) const { return !trial.ended_early && trial.bytes <= room_; }

  // What is known without another trial: a shape that needs no more than one that fits does fit, and the reverse.
  std::optional<bool> fits(StepShape shape) const {
    if (const MemoryTrial* trial = of(shape); trial != nullptr && trial->error.empty()) return fits(*trial);
    for (const MemoryTrial& trial : trials_) {
      if (!trial.error.empty()) continue;
      const bool no_less = trial.shape.lanes >= shape.lanes && trial.shape.shards <= shape.shards;
      const bool no_more = trial.shape.lanes <= shape.lanes && trial.shape.shards >= shape.shards;
      if (no_less && fits(trial)) return true;
      if (no_more && !fits(trial)) return false;
    }
    return std::nullopt;
  }

 private:
  int64_t room_;
  const std::vector<MemoryTrial>& trials_;
};

// The numbers of shards that come into question: the wanted one, doubled again and again, without those of which the
// model does not take the samples.
std::vector<int64_t> shard_counts(const FitProblem& problem, const std::vector<MemoryTrial>& trials) {
  constexpr int64_t kMostShards = 65536;  // of trainer.shards
  std::vector<int64_t> counts = {problem.wanted.shards};
  const int64_t most = std::min(problem.batch_size, kMostShards);
  while (problem.may_change_shards && counts.back() < most) counts.push_back(std::min(most, 2 * counts.back()));
  std::erase_if(counts, [&](int64_t shards) {
    return shards != problem.wanted.shards && std::ranges::any_of(trials, [&](const MemoryTrial& trial) {
             return !trial.error.empty() && trial.shape.shards == shards;
           });
  });
  return counts;
}

// Returns the first index of [low, high) that fits, where all behind it fit, too; or the index to try next. `high` is
// known to fit.
struct Searched {
  size_t index = 0;
  bool known = false;
};
template <typename Fits>
Searched first_that_fits(size_t low, size_t high, Fits fits) {
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const std::optional<bool> fitting = fits(middle);
    if (!fitting) return {middle, false};
    (*fitting ? high : low) = *fitting ? middle : middle + 1;
  }
  return {high, true};
}

}  // namespace

int64_t memory_bound(const spec::Job& job, const data::DataInfo& info, int64_t lanes, int64_t shards, bool prefetches) {
  constexpr double kProgram = 128 << 20;  // what libraries keep, and threads
  constexpr double kCopies = 12;          // of the parameters: state, optimizer, averages, snapshot, sums, files
  const ModelSize size = size_of(job.model, info);
  const double inputs = product(info.input_shape), outputs = product(info.target_shape);
  const int64_t batch = std::max(job.trainer.batch_size, job.trainer.eval_batch_size);
  const auto of_shard = static_cast<double>(quotient_up(batch, shards)), all_lanes = static_cast<double>(lanes);
  // A lane has the gradients of its shard, those of a few siblings, and a copy while they change their type.
  const double numbers =
      size.parameters * (kCopies + 6 * all_lanes) + all_lanes * of_shard * (size.activations + 16 * (inputs + outputs));
  const double batches = prefetches ? static_cast<double>(job.data.prefetch_bytes) : 0;
  constexpr double kMost = 9e18;
  return static_cast<int64_t>(std::min(kMost, kProgram + batches + 4 * numbers));
}

std::variant<StepShape, FitChoice> next_fit(const FitProblem& problem, const std::vector<MemoryTrial>& trials) {
  const StepShape wanted = problem.wanted;
  SINEW_CHECK(wanted.lanes > 0 && wanted.shards > 0, wanted.lanes, wanted.shards);
  const Trials known(problem, trials);
  const MemoryTrial* usual = known.of(wanted);
  if (usual == nullptr) return wanted;
  if (known.fits(*usual)) return FitChoice{wanted, true, usual->bytes, usual->bytes};
  // The shards: the fewest that fit on the fewest lanes.
  const std::vector<int64_t> counts = shard_counts(problem, trials);
  const int64_t fewest = problem.may_change_lanes ? 1 : wanted.lanes;
  const StepShape least{fewest, counts.back()};
  if (!known.fits(least)) return least;
  if (!*known.fits(least)) {
    const MemoryTrial* smallest = known.of(least);
    return FitChoice{least, false, smallest == nullptr ? 0 : smallest->bytes, usual->bytes};
  }
  const Searched shards = first_that_fits(0, counts.size() - 1, [&](size_t index) {
    return known.fits(StepShape{fewest, counts[index]});
  });
  if (!shards.known) return StepShape{fewest, counts[shards.index]};
  // The lanes: the most that fit these shards. More lanes than shards find no work.
  const int64_t count = counts[shards.index], most = std::max(fewest, std::min(wanted.lanes, count));
  const auto lanes_at = [&](size_t index) { return most - static_cast<int64_t>(index); };
  const Searched lanes = first_that_fits(0, static_cast<size_t>(most - fewest), [&](size_t index) {
    return known.fits(StepShape{lanes_at(index), count});
  });
  const StepShape shape{lanes_at(lanes.index), count};
  const MemoryTrial* chosen = known.of(shape);
  if (!lanes.known || chosen == nullptr) return shape;
  return FitChoice{shape, true, chosen->bytes, usual->bytes};
}

}  // namespace sinew::train
