// Decides trainer.shards and trainer.lanes so that a training keeps to budget.memory.
#include <algorithm>

#include "base/cgroup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/number_text.h"
#include "base/resident_memory.h"
#include "base/size_text.h"
#include "train/fit_memory.h"
#include "train/memory_trial.h"
#include "train/resolve.h"

namespace sinew::train {
namespace {

constexpr int64_t kLeastKept = 12 << 20, kKeptPart = 32;  // bytes, and a part of the memory, that stay free
constexpr int64_t kCode = 16 << 20;                       // bytes of code that a training uses all the time
constexpr int64_t kOfOthers = 32 << 20;  // bytes of a control group that its other processes and the kernel use
constexpr double kMostSeconds = 120, kMostOfBudget = 0.1;  // all trials together take no longer than this

// The memory that a process may have. It follows from limits alone, never from what happens to be free.
struct Memory {
  int64_t budget = 0;  // this process's part of budget.memory
  int64_t group = 0;   // its part of the limit of its control group; 0: none

  // What the process may hold besides so many bytes of resident files. A training grows a little over time. The kernel
  // takes files away before it ends a process, but the code that runs must stay in memory, or it runs slowly.
  int64_t usable(int64_t file_bytes) const {
    return std::max<int64_t>(0, std::min(of_budget(file_bytes), of_group(file_bytes)));
  }
  bool limited_by_budget(int64_t file_bytes) const { return of_budget(file_bytes) <= of_group(file_bytes); }
  std::string text(int64_t file_bytes) const {
    if (limited_by_budget(file_bytes)) return "budget.memory allows " + size_text(budget);
    return "this process may have " + size_text(group) + " (the limit of its cgroup)";
  }

 private:
  static int64_t without_rest(int64_t bytes) { return bytes - std::max(kLeastKept, bytes / kKeptPart); }
  int64_t of_budget(int64_t file_bytes) const { return without_rest(budget) - file_bytes; }
  int64_t of_group(int64_t file_bytes) const {
    return group > 0 ? without_rest(group) - std::min(kCode, file_bytes) : INT64_MAX;
  }
};

Memory memory_of(int64_t budget, int64_t sharers) {
  const auto limit = static_cast<int64_t>(cgroup_memory());
  return {budget / sharers, limit > 0 ? std::max<int64_t>(1, limit - kOfOthers) / sharers : 0};
}

// Returns true if the training certainly needs less than it may have.
bool needs_little(const Memory& memory, const spec::Job& job, const data::Dataset& dataset) {
  const ResidentMemory now = resident_memory();
  const int64_t bound =
      memory_bound(job, dataset.info(), *job.trainer.lanes, *job.trainer.shards, !dataset.in_memory());
  const int64_t half = memory.usable(now.files) / 2;
  return now.held < half && bound < half - now.held;
}

// What the limit would have to be for a process that holds so much.
std::string need_text(int64_t bytes, int64_t file_bytes, const Memory& memory) {
  if (bytes == 0) return "more";
  const int64_t limit = memory.limited_by_budget(file_bytes) ? memory.budget : memory.group;
  return size_text(bytes + limit - memory.usable(file_bytes));
}

std::string samples_text(const spec::Job& job, int64_t shards) {
  const int64_t samples = quotient_up(job.trainer.batch_size, shards);
  return std::to_string(samples) + (samples == 1 ? " sample" : " samples");
}

std::string lanes_text(int64_t lanes) {
  return std::to_string(lanes) + (lanes == 1 ? " lane" : " lanes");
}

[[noreturn]] void refuse(const FitChoice& choice, const spec::Job& job, bool shards_given, const Memory& memory,
                         int64_t files) {
  const bool known = choice.least_bytes > 0;
  const std::string need = need_text(choice.least_bytes, files, memory);
  throw Error("MEMORY_TOO_SMALL",
              "shards of " + samples_text(job, choice.shape.shards) + " on " + lanes_text(choice.shape.lanes) +
                  " need " + need + (known ? " of memory" : " memory than there is") + ", and " + memory.text(files),
              std::string(known ? "give the training more memory" : "give the training much more memory") +
                  (shards_given && choice.shape.shards < job.trainer.batch_size
                       ? ", or choose a larger trainer.shards (smaller shards)"
                       : "") +
                  ", or choose a smaller model, or a lower data.prefetch.memory");
}

class Fitting {
 public:
  Fitting(Resolved& resolved, const spec::Job& job, const data::Dataset& dataset, const FitOptions& options,
          const Memory& memory)
      : resolved_(resolved), job_(job), dataset_(dataset), options_(options), memory_(memory) {
    const auto& trainer = resolved.job.trainer;
    problem_ = {.batch_size = trainer.batch_size,
                .wanted = {*trainer.lanes, *trainer.shards},
                .may_change_shards = options.may_change_shards && !job.trainer.shards,
                .may_change_lanes = !job.trainer.lanes};
    own_files_ = resident_memory().files;
    seconds_ =
        options.budget_seconds > 0 ? std::min(kMostSeconds, kMostOfBudget * options.budget_seconds) : kMostSeconds;
  }

  // Returns false if a stop was asked for.
  bool decide() {
    const double ends_at = system_clock().monotonic_seconds() + seconds_;
    for (;;) {
      problem_.room = memory_.usable(files());
      const auto next = next_fit(problem_, trials_);
      if (const auto* choice = std::get_if<FitChoice>(&next)) {
        apply(*choice);
        return true;
      }
      const StepShape shape = std::get<StepShape>(next);
      if (trials_.empty() && options_.say) options_.say("measuring the memory that a step needs (budget.memory)");
      TrialResult result = try_memory({resolved_.job, &dataset_, shape, problem_.room, ends_at, options_.stop_signals});
      if (result.end == TrialResult::End::stopped) return false;
      if (result.end == TrialResult::End::impossible) return true;  // the default stays, as if nothing were known
      if (result.end == TrialResult::End::too_long) result.trial.ended_early = times_out(shape);
      // The training itself fails in the same way, and says why. Other shards may still do.
      if (!result.trial.error.empty() && shape.shards == problem_.wanted.shards) return true;
      most_files_ = std::max(most_files_, result.file_bytes);
      trials_.push_back(std::move(result.trial));
    }
  }

 private:
  // Time may decide about lanes, which never change the result: a shape that was not measured in time counts as one
  // that does not fit. Throws Error where it would decide about shards.
  bool times_out(StepShape shape) const {
    const int64_t fewest = problem_.may_change_lanes ? 1 : problem_.wanted.lanes;
    if (shape.lanes > fewest) return true;
    throw Error("MEMORY_NOT_MEASURED",
                "what shards of " + samples_text(resolved_.job, shape.shards) + " on " + lanes_text(shape.lanes) +
                    " need was not measured within " + rounded_text(seconds_, 3) + " s",
                std::string("leave out budget.memory and give trainer.shards, or choose a smaller model") +
                    (seconds_ < kMostSeconds ? ", or raise budget.time: a tenth of it is for this" : ""));
  }

  void apply(const FitChoice& choice) {
    const StepShape wanted = problem_.wanted;
    if (!choice.fits) refuse(choice, resolved_.job, job_.trainer.shards.has_value(), memory_, files());
    if (choice.shape == wanted) return;
    const std::string why = "shards of " + samples_text(resolved_.job, wanted.shards) + " on " +
                            lanes_text(wanted.lanes) + " need " + need_text(choice.wanted_bytes, files(), memory_) +
                            ", and " + memory_.text(files());
    auto& trainer = resolved_.job.trainer;
    if (choice.shape.shards != wanted.shards) {
      trainer.shards = resolved_.written.trainer.shards = choice.shape.shards;
      resolved_.reasons["trainer.shards"] = why;
    }
    if (choice.shape.lanes != wanted.lanes) {
      trainer.lanes = choice.shape.lanes;
      resolved_.reasons["trainer.lanes"] =
          std::to_string(choice.shape.lanes) + " when the run began, because " + why + "; never changes the result";
    }
  }

  // The child of a fork finds the pages of files that its parent has read, but maps only those that it uses itself. So
  // this counts some pages twice.
  int64_t files() const { return own_files_ + most_files_; }

  Resolved& resolved_;
  const spec::Job& job_;
  const data::Dataset& dataset_;
  const FitOptions& options_;
  const Memory& memory_;
  FitProblem problem_;
  std::vector<MemoryTrial> trials_;
  int64_t own_files_ = 0, most_files_ = 0;
  double seconds_ = 0;  // that all trials together may take
};

}  // namespace

bool fit_to_memory(Resolved& resolved, const spec::Job& job, const data::Dataset& dataset, const FitOptions& options) {
  if (job.budget.memory == 0 || dataset.info().train_size == 0) return true;
  const Memory memory = memory_of(job.budget.memory, std::max<int64_t>(1, options.sharers));
  if (needs_little(memory, resolved.job, dataset)) return true;
  return Fitting(resolved, job, dataset, options, memory).decide();
}

}  // namespace sinew::train
