// Private to checkpoint/: decides which checkpoints the Writer keeps. BestSteps chooses the best steps to keep.
// Retention deletes the steps of one root that are no longer kept.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/ids.h"

namespace sinew::checkpoint {

using IsPresent = std::function<bool(Step)>;

// The best steps, as the caller of Writer::set_best lists them. Any thread may call its functions.
class BestSteps {
 public:
  explicit BestSteps(int64_t keep) : keep_(keep) {}
  void set(std::vector<Step> steps);
  // Returns the best steps to keep, newest first. If a listed step is not present, another step takes its place.
  std::vector<Step> chosen(const IsPresent& is_present) const;

 private:
  static constexpr size_t kMaxPrevious = 64;

  const int64_t keep_;
  mutable std::mutex mutex_;
  std::vector<Step> listed_, previous_;  // the steps of the last set() and of earlier ones, newest first
};

// Decides which steps of one root to keep, and remembers which steps are intact. Only one thread may use it.
class Retention {
 public:
  Retention(Disk& disk, std::string root) : disk_(disk), root_(std::move(root)) {}

  void mark_verified(Step step);
  bool holds(Step step);
  // Deletes the steps that are no longer kept. Call this after `verified` was read back. It verifies each unknown step
  // once. A damaged step does not count as kept, and is not deleted.
  void apply(const BestSteps& best_steps, int64_t keep, Step verified);
  // Call this if the disk is full. It deletes now what apply would delete after `next` is saved, except the newest
  // intact step. Returns whether it deleted a step.
  bool make_room(const BestSteps& best_steps, int64_t keep, Step next);

 private:
  std::vector<Step> intact_steps();  // the intact steps on disk, oldest first
  void remove(Step step);

  Disk& disk_;
  std::string root_;
  std::set<Step> intact_, damaged_;
};

}  // namespace sinew::checkpoint
