#include "loop/pace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

namespace sinew::loop {
namespace {

constexpr size_t kNewest = 16, kFewestWithOutlier = 4;  // durations that longest() looks at
constexpr size_t kMostBlocks = 16;                      // even, so that all blocks can be merged in pairs
constexpr size_t kFewestBlocks = 3;
constexpr double kLeastError = 0.05;   // of a mean, however little its blocks differ
constexpr double kErrorOfGuess = 0.4;  // of a mean of too few blocks
constexpr double kMostCorrelation = 0.8;
constexpr double kUnseenOfQuiet = 0.2;  // an `unseen` above it means that other programs come and go
constexpr double kBeyondSeen = 0.25;    // the load may become higher or lower than all loads so far, by this part
constexpr double kFastest = 0.2;        // no forecast is shorter than this part of what was measured

// The 95 % quantiles of Student's t distribution with 1, 2, ... degrees of freedom.
constexpr std::array kQuantiles = {6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86,
                                   1.83, 1.81, 1.80, 1.78, 1.77, 1.76, 1.75};

}  // namespace

void Pace::add(double seconds) {
  if (count_ == 1 && !forgot_first_) {
    *this = Pace();
    forgot_first_ = true;
  }
  seconds = std::max(0.0, seconds);
  newest_.push_back(seconds);
  if (newest_.size() > kNewest) newest_.pop_front();
  seconds_ += seconds;
  ++count_;
  if (blocks_.empty() || blocks_.back().count == block_size_) {
    if (blocks_.size() == kMostBlocks) merge_blocks();
    blocks_.emplace_back();
  }
  blocks_.back().seconds += seconds;
  ++blocks_.back().count;
}

void Pace::merge_blocks() {
  std::deque<Block> merged;
  for (size_t i = 0; i < blocks_.size(); i += 2)
    merged.push_back({blocks_[i].seconds + blocks_[i + 1].seconds, blocks_[i].count + blocks_[i + 1].count});
  blocks_ = std::move(merged);
  block_size_ *= 2;
}

double Pace::mean() const {
  return count_ > 0 ? seconds_ / static_cast<double>(count_) : 0;
}

double Pace::longest() const {
  double first = 0, second = 0;
  for (const double seconds : newest_) {
    second = std::max(second, std::min(first, seconds));
    first = std::max(first, seconds);
  }
  return newest_.size() >= kFewestWithOutlier ? second : first;
}

// The blocks of one load are alike, so neighbours tell less than their number: the scatter of their mean grows with the
// correlation of neighbours, as in a process that forgets exponentially.
Pace::Scatter Pace::scatter() const {
  Scatter found;
  for (const Block& block : blocks_) {
    if (block.count == block_size_ || blocks_.size() == 1)
      found.blocks.push_back(block.seconds / static_cast<double>(block.count));
  }
  const std::vector<double>& blocks = found.blocks;
  const size_t n = blocks.size();
  if (n < kFewestBlocks) return found;
  found.centre = std::accumulate(blocks.begin(), blocks.end(), 0.0) / static_cast<double>(n);
  double squares = 0, products = 0;
  for (size_t i = 0; i < n; ++i) {
    squares += std::pow(blocks[i] - found.centre, 2);
    if (i + 1 < n) products += (blocks[i] - found.centre) * (blocks[i + 1] - found.centre);
  }
  const double correlation = squares > 0 ? std::clamp(products / squares, 0.0, kMostCorrelation) : 0;
  found.likeness = (1 + correlation) / (1 - correlation);
  found.variance = squares / static_cast<double>(n - 1);
  return found;
}

double Pace::error() const {
  const Scatter found = scatter();
  const size_t n = found.blocks.size();
  if (n < kFewestBlocks || found.centre <= 0) return kErrorOfGuess;
  return kQuantiles.at(n - 2) * std::sqrt(found.variance * found.likeness / static_cast<double>(n)) / found.centre;
}

Range Pace::of(double count, double unseen) const {
  if (count <= 0 || count_ == 0) return {};
  const auto [blocks, centre, variance, likeness] = scatter();
  const size_t n = blocks.size();
  if (n < kFewestBlocks) return {count * mean() * (1 - kErrorOfGuess), count * mean() * (1 + kErrorOfGuess)};
  const bool load_changes = unseen > kUnseenOfQuiet;
  const double further = count / static_cast<double>(block_size_);  // blocks to come
  const double scatter_of_mean =
      std::sqrt(variance * (likeness / static_cast<double>(n) + std::min(1.0, likeness / further)));
  unseen *= std::sqrt(count / (count + static_cast<double>(count_)));
  const double error = std::max({kQuantiles.at(n - 2) * scatter_of_mean, kLeastError * centre, unseen * centre});
  // only the load of other programs makes the fastest and the slowest blocks last
  const auto [fastest, slowest] =
      load_changes ? std::ranges::minmax(blocks) : std::ranges::minmax_result<double>{centre, centre};
  const double beyond = kBeyondSeen * (slowest - fastest);
  const double recent = (blocks[n - 2] + blocks[n - 1]) / 2;
  const double low = std::min({centre - error, recent * (1 - kLeastError), fastest - beyond});
  const double high = std::max({centre + error, recent * (1 + kLeastError), slowest + beyond});
  return {count * std::max(low, kFastest * centre), count * high};
}

void RunPace::step_begins(double at, int64_t batch_size) {
  if (began_) steps_.add(at - *began_ - evaluated_seconds_);
  began_ = at;
  evaluated_seconds_ = 0;
  if (std::exchange(batch_size_, batch_size) != batch_size) steps_ = Pace();
}

void RunPace::evaluated(double seconds) {
  evaluated_seconds_ += seconds;
  evaluations_.add(seconds);
}

double RunPace::seconds_of_step() const {
  if (!steps_.is_measured()) return 0;
  const double evaluated = evaluations_.mean() * static_cast<double>(evaluations_.count());
  return steps_.mean() + evaluated / static_cast<double>(steps_.count());
}

}  // namespace sinew::loop
