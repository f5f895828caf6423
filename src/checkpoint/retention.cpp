#include "checkpoint/retention.h"

#include <algorithm>

#include "checkpoint/checkpoint.h"
#include "checkpoint/names.h"
#include "checkpoint/publish.h"

namespace sinew::checkpoint {
namespace {

bool contains(const std::vector<Step>& steps, Step step) {
  return std::find(steps.begin(), steps.end(), step) != steps.end();
}

}  // namespace

void BestSteps::set(std::vector<Step> steps) {
  std::sort(steps.begin(), steps.end(), std::greater<>());
  const std::lock_guard lock(mutex_);
  std::vector<Step> earlier = std::move(listed_);
  earlier.insert(earlier.end(), previous_.begin(), previous_.end());
  previous_.clear();
  for (const Step step : earlier) {
    if (!contains(steps, step) && !contains(previous_, step) && previous_.size() < kMaxPrevious)
      previous_.push_back(step);
  }
  listed_ = std::move(steps);
}

std::vector<Step> BestSteps::chosen(const IsPresent& is_present) const {
  std::vector<Step> candidates;
  size_t most = 0;
  {
    const std::lock_guard lock(mutex_);
    candidates = listed_;
    candidates.insert(candidates.end(), previous_.begin(), previous_.end());
    most = std::min(listed_.size(), static_cast<size_t>(std::max<int64_t>(keep_, 0)));
  }
  std::vector<Step> chosen;
  for (const Step step : candidates) {
    if (chosen.size() < most && is_present(step)) chosen.push_back(step);
  }
  return chosen;
}

void Retention::mark_verified(Step step) {
  intact_.insert(step);
  damaged_.erase(step);
}

bool Retention::holds(Step step) {
  return disk_.exists(join(root_, step_name(step)));
}

std::vector<Step> Retention::intact_steps() {
  std::vector<Step> present;
  for (const std::string& directory : list(disk_, root_)) {
    const Step step = *parse_step_name(base_name(directory));
    if (!intact_.contains(step) && !damaged_.contains(step))
      (verify(disk_, directory) ? intact_ : damaged_).insert(step);
    if (intact_.contains(step)) present.push_back(step);
  }
  return present;
}

void Retention::remove(Step step) {
  delete_step(disk_, root_, step);
  intact_.erase(step);
}

void Retention::apply(const BestSteps& best_steps, int64_t keep, Step verified) {
  const std::vector<Step> present = intact_steps();
  const std::vector<Step> best =
      best_steps.chosen([&](Step step) { return step <= verified && contains(present, step); });
  for (const Step step : to_delete(present, best, keep, verified)) remove(step);
}

bool Retention::make_room(const BestSteps& best_steps, int64_t keep, Step next) {
  if (!disk_.exists(root_)) return false;
  std::vector<Step> present = intact_steps();
  if (present.empty()) return false;
  const Step newest = present.back();
  const std::vector<Step> best = best_steps.chosen([&](Step step) { return contains(present, step); });
  present.push_back(next);
  bool deleted = false;
  for (const Step step : to_delete(present, best, keep, next)) {
    if (step == newest) continue;
    remove(step);
    deleted = true;
  }
  return deleted;
}

}  // namespace sinew::checkpoint
