#include "data/splits.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/random.h"
#include "data/data.h"
#include "data/files.h"
#include "data/folds.h"

namespace sinew::data {
namespace {

int64_t share(int64_t size, double fraction) {
  return std::min(size, static_cast<int64_t>(static_cast<double>(size) * fraction + 0.5));
}

// Returns the samples in an order in which the first ones become test, the next ones validation and the others train.
std::vector<int64_t> shuffled(const SplitRequest& request) {
  const Permutation ranks(derive(random_key({request.seed}), "split"), request.size);
  std::vector<int64_t> order(static_cast<size_t>(request.size));
  for (int64_t sample = 0; sample < request.size; ++sample) order[static_cast<size_t>(ranks[sample])] = sample;
  return order;
}

std::vector<int64_t> latest_first(const SplitRequest& request) {
  std::vector<int64_t> order(static_cast<size_t>(request.size));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return request.times[static_cast<size_t>(a)] < request.times[static_cast<size_t>(b)];
  });
  std::reverse(order.begin(), order.end());
  return order;
}

// Returns how many samples of each class a split of `total` samples takes from `left`, the samples that each class can
// still give: in proportion to the size of the class, by the largest remainders, of equal ones the lower class first.
std::vector<int64_t> quotas(const std::vector<int64_t>& sizes, const std::vector<int64_t>& left, int64_t total,
                            int64_t all) {
  std::vector<int64_t> taken(sizes.size());
  std::vector<std::pair<double, size_t>> remainders;
  int64_t sum = 0;
  for (size_t c = 0; c < sizes.size(); ++c) {
    const double ideal = static_cast<double>(sizes[c]) * static_cast<double>(total) / static_cast<double>(all);
    taken[c] = std::min(left[c], static_cast<int64_t>(ideal));
    sum += taken[c];
    remainders.emplace_back(static_cast<double>(taken[c]) - ideal, c);
  }
  std::sort(remainders.begin(), remainders.end());
  // One round is enough unless small classes have nothing left to give.
  for (bool gave = true; gave && sum < total;) {
    gave = false;
    for (const auto& [negative, c] : remainders) {
      if (sum >= total) break;
      if (taken[c] >= left[c]) continue;
      ++taken[c], ++sum;
      gave = true;
    }
  }
  return taken;
}

struct Counts {
  int64_t test = 0, val = 0;
};

// Which split each sample goes to, by place in `order`: 0 test, 1 validation, 2 train.
std::vector<uint8_t> by_class(const SplitRequest& request, const std::vector<int64_t>& order, Counts wanted) {
  const int64_t classes = *std::max_element(request.classes.begin(), request.classes.end()) + 1;
  std::vector<int64_t> sizes(static_cast<size_t>(classes)), left;
  for (const int64_t c : request.classes) ++sizes[static_cast<size_t>(c)];
  for (const int64_t size : sizes) left.push_back(std::max<int64_t>(0, size - 1));  // one sample stays in train
  std::vector<int64_t> test = quotas(sizes, left, wanted.test, request.size);
  for (size_t c = 0; c < left.size(); ++c) left[c] -= test[c];
  std::vector<int64_t> val = quotas(sizes, left, wanted.val, request.size);
  std::vector<uint8_t> to(order.size(), 2);
  for (const int64_t sample : order) {
    const auto c = static_cast<size_t>(request.classes[static_cast<size_t>(sample)]);
    uint8_t& split = to[static_cast<size_t>(sample)];
    if (test[c] > 0) {
      --test[c];
      split = 0;
    } else if (val[c] > 0) {
      --val[c];
      split = 1;
    }
  }
  return to;
}

std::vector<uint8_t> by_group(const SplitRequest& request, Counts wanted) {
  const int64_t groups = *std::max_element(request.groups.begin(), request.groups.end()) + 1;
  std::vector<int64_t> sizes(static_cast<size_t>(groups));
  for (const int64_t group : request.groups) ++sizes[static_cast<size_t>(group)];
  const Permutation order(derive(random_key({request.seed}), "split"), groups);
  std::vector<uint8_t> of_group(static_cast<size_t>(groups), 2);
  for (int64_t place = 0; place + 1 < groups; ++place) {  // the last group stays in train
    const auto group = static_cast<size_t>(order[place]);
    int64_t& missing = wanted.test > 0 ? wanted.test : wanted.val;
    if (missing <= 0) break;
    of_group[group] = wanted.test > 0 ? 0 : 1;
    missing -= sizes[group];
  }
  std::vector<uint8_t> to(static_cast<size_t>(request.size));
  for (size_t i = 0; i < to.size(); ++i) to[i] = of_group[static_cast<size_t>(request.groups[i])];
  return to;
}

std::vector<uint8_t> by_order(const std::vector<int64_t>& order, Counts wanted) {
  std::vector<uint8_t> to(order.size(), 2);
  for (size_t i = 0; i < order.size(); ++i) {
    const auto rank = static_cast<int64_t>(i);
    to[static_cast<size_t>(order[i])] = rank < wanted.test ? 0 : rank < wanted.test + wanted.val ? 1 : 2;
  }
  return to;
}

std::vector<uint8_t> decide(const SplitRequest& request, Counts wanted) {
  if (request.size == 0) return {};
  if (!request.groups.empty()) return by_group(request, wanted);
  if (!request.times.empty()) return by_order(latest_first(request), wanted);
  if (!request.classes.empty()) return by_class(request, shuffled(request), wanted);
  return by_order(shuffled(request), wanted);
}

}  // namespace

SplitRequest split_request(const spec::DataOptions& options, int64_t size, uint64_t seed) {
  return {.size = size,
          .val = options.val.given() ? 0 : options.split_val,
          .test = options.test.given() ? 0 : options.split_test,
          .seed = seed,
          .folds = options.val.given() ? 0 : options.folds,
          .fold = options.fold.value_or(0)};
}

SplitIndices split_samples(const SplitRequest& request) {
  for (const size_t given : {request.classes.size(), request.groups.size(), request.times.size()}) {
    SINEW_CHECK(given == 0 || given == static_cast<size_t>(request.size), given, request.size);
  }
  Counts wanted;
  wanted.test = share(request.size, request.test);
  wanted.val = request.folds > 0 ? 0 : std::min(request.size - wanted.test, share(request.size, request.val));
  const std::vector<uint8_t> to = decide(request, wanted);
  SplitIndices splits;
  std::vector<int64_t>* const of[] = {&splits.test, &splits.val, &splits.train};
  for (size_t sample = 0; sample < to.size(); ++sample) of[to[sample]]->push_back(static_cast<int64_t>(sample));
  if (request.folds == 0) return splits;
  Fold fold = take_fold(request, splits.train);
  splits.train = std::move(fold.train);
  splits.val = std::move(fold.val);
  return splits;
}

SplitIndices split_samples(const SplitRequest& request, std::vector<std::string>& notes) {
  SplitIndices splits = split_samples(request);
  if (request.folds == 0) return splits;
  const auto count = [](const std::vector<int64_t>& split) { return with_commas(static_cast<int64_t>(split.size())); };
  notes.push_back("cross-validation: fold " + std::to_string(request.fold) + " of 0 to " +
                  std::to_string(request.folds - 1) + ": " + count(splits.train) + " samples for training, " +
                  count(splits.val) + " for validation");
  std::vector<int64_t> sizes;
  for (const auto* split : {&splits.train, &splits.val}) {
    for (const int64_t sample : *split) {
      if (request.classes.empty()) break;
      const auto c = static_cast<size_t>(request.classes[static_cast<size_t>(sample)]);
      if (c >= sizes.size()) sizes.resize(c + 1);
      ++sizes[c];
    }
  }
  const auto few = std::ranges::count_if(sizes, [&](int64_t size) { return size > 0 && size < request.folds; });
  if (few > 0)
    notes.push_back(with_commas(few) + (few == 1 ? " class has" : " classes have") + " fewer samples than there are " +
                    "folds, so some folds have none of " + (few == 1 ? "it" : "them"));
  return splits;
}

void count_classes(std::span<const int64_t> classes, DataInfo& info) {
  info.class_counts.assign(static_cast<size_t>(info.classes), 0);
  for (const int64_t c : classes) ++info.class_counts[static_cast<size_t>(c)];
}

}  // namespace sinew::data
