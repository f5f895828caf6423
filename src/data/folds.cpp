#include "data/folds.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>

#include "base/check.h"
#include "base/error.h"
#include "base/random.h"
#include "data/data.h"
#include "data/files.h"

namespace sinew::data {
namespace {

void check_enough(int64_t have, int64_t needed, const std::string& what, const SplitRequest& request) {
  if (have >= needed) return;
  throw Error("DATA_BAD_SPLIT",
              "data.split.folds: " + std::to_string(request.folds) + " folds need at least " + with_commas(needed) +
                  " " + what + ", but the data has " + with_commas(have) +
                  (request.test > 0 ? " that are not test data" : ""),
              "lower data.split.folds, or give more data");
}

std::vector<int64_t> keyed_order(const SplitRequest& request, int64_t size) {
  const Permutation places(derive(random_key({request.seed}), "folds"), size);
  std::vector<int64_t> order(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) order[static_cast<size_t>(i)] = places[i];
  return order;
}

// Deals the samples out like cards, class by class. So the counts of a class in two folds differ by at most one, and so
// do the sizes of the folds.
std::vector<int64_t> dealt(const SplitRequest& request, const std::vector<int64_t>& samples) {
  std::vector<int64_t> order = keyed_order(request, static_cast<int64_t>(samples.size()));
  if (!request.classes.empty()) {
    std::ranges::stable_sort(order, {}, [&](int64_t place) {
      return request.classes[static_cast<size_t>(samples[static_cast<size_t>(place)])];
    });
  }
  std::vector<int64_t> folds(samples.size());
  for (size_t i = 0; i < order.size(); ++i)
    folds[static_cast<size_t>(order[i])] = static_cast<int64_t>(i) % request.folds;
  return folds;
}

std::vector<int64_t> by_groups(const SplitRequest& request, const std::vector<int64_t>& samples) {
  std::map<int64_t, int64_t> sizes;
  for (const int64_t sample : samples) ++sizes[request.groups[static_cast<size_t>(sample)]];
  check_enough(static_cast<int64_t>(sizes.size()), request.folds, "groups", request);
  const std::vector<std::pair<int64_t, int64_t>> groups(sizes.begin(), sizes.end());
  std::vector<int64_t> order = keyed_order(request, static_cast<int64_t>(groups.size()));  // of groups of equal size
  const auto size_of = [&](int64_t place) { return groups[static_cast<size_t>(place)].second; };
  std::ranges::stable_sort(order, std::greater<>(), size_of);
  using Load = std::pair<int64_t, int64_t>;  // the samples of a fold, and its number
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (int64_t fold = 0; fold < request.folds; ++fold) loads.emplace(0, fold);
  std::map<int64_t, int64_t> fold_of;
  for (const int64_t place : order) {
    const auto [load, fold] = loads.top();
    loads.pop();
    fold_of[groups[static_cast<size_t>(place)].first] = fold;
    loads.emplace(load + size_of(place), fold);
  }
  std::vector<int64_t> folds;
  for (const int64_t sample : samples) folds.push_back(fold_of[request.groups[static_cast<size_t>(sample)]]);
  return folds;
}

Fold in_order_of_time(const SplitRequest& request, std::vector<int64_t> samples) {
  const auto size = static_cast<int64_t>(samples.size());
  check_enough(size, request.folds + 1, "samples", request);
  std::ranges::stable_sort(samples, {}, [&](int64_t sample) { return request.times[static_cast<size_t>(sample)]; });
  const int64_t part = size / (request.folds + 1), begin = size - (request.folds - request.fold) * part;
  const auto first = samples.begin() + begin;
  Fold fold{{samples.begin(), first}, {first, first + part}};
  std::ranges::sort(fold.train);
  std::ranges::sort(fold.val);
  return fold;
}

}  // namespace

Fold take_fold(const SplitRequest& request, const std::vector<int64_t>& samples) {
  SINEW_CHECK(request.folds >= 2 && request.fold >= 0 && request.fold < request.folds, request.folds, request.fold);
  if (request.groups.empty() && !request.times.empty()) return in_order_of_time(request, samples);
  check_enough(static_cast<int64_t>(samples.size()), request.folds, "samples", request);
  const std::vector<int64_t> folds = request.groups.empty() ? dealt(request, samples) : by_groups(request, samples);
  Fold fold;
  for (size_t i = 0; i < samples.size(); ++i) (folds[i] == request.fold ? fold.val : fold.train).push_back(samples[i]);
  return fold;
}

}  // namespace sinew::data
