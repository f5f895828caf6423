#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "base/check.h"
#include "checkpoint/names.h"
#include "checkpoint/publish.h"
#include "checkpoint/turn_disk.h"

namespace sinew::checkpoint {
namespace {

// Lowers the thread's CPU and I/O priority, because training and loading of samples come first. We add 10 to the nice
// value, not 19: beside a busy thread the writer then gets a tenth of a core, which is enough for any state; a sixtieth
// would make every save late. We ignore errors, because the writer also works at normal priority.
void be_modest() {
  const auto thread = static_cast<id_t>(::syscall(SYS_gettid));
  ::setpriority(PRIO_PROCESS, thread, std::min(19, ::getpriority(PRIO_PROCESS, thread) + 10));
  constexpr int kWhoProcess = 1, kIdleClass = 3, kClassShift = 13;
  ::syscall(SYS_ioprio_set, kWhoProcess, thread, kIdleClass << kClassShift);
}

std::string told(const Error& error) {
  return error.hint.empty() ? std::string(error.what()) : std::string(error.what()) + " (try: " + error.hint + ")";
}

std::string told(const Damage& damage) {
  return damage.directory + "/" + damage.file + " " + damage.what;
}

using IsThere = std::function<bool(Step)>;
using BestOf = std::function<std::vector<Step>(const IsThere&)>;  // chooses the best steps to keep among those on disk

// Decides which steps of one root to keep. It remembers which steps are intact.
class Shelf {
 public:
  Shelf(Disk& disk, std::string root) : disk_(disk), root_(std::move(root)) {}

  void vouch(Step step) {
    intact_.insert(step);
    bad_.erase(step);
  }
  bool holds(Step step) { return disk_.exists(join(root_, step_name(step))); }

  // Deletes the steps that are no longer kept, after `verified` was read back. Verifies unknown steps once. Damaged
  // steps neither count as kept nor are deleted.
  void tidy(const BestOf& best_of, int64_t keep, Step verified) {
    std::vector<Step> present;
    for (const std::string& directory : list(disk_, root_)) {
      const Step step = *parse_step_name(last_part(directory));
      if (!intact_.contains(step) && !bad_.contains(step)) (verify(disk_, directory) ? intact_ : bad_).insert(step);
      if (intact_.contains(step)) present.push_back(step);
    }
    const std::vector<Step> best = best_of([&](Step step) {
      return step <= verified && std::find(present.begin(), present.end(), step) != present.end();
    });
    for (const Step step : to_delete(present, best, keep, verified)) {
      withdraw(disk_, root_, step);
      intact_.erase(step);
    }
  }

 private:
  Disk& disk_;
  std::string root_;
  std::set<Step> intact_, bad_;
};

Snapshot borrowed(const OwnedSnapshot& owned) {
  Snapshot snapshot{owned.step, {}, owned.state_json, owned.digest};
  for (const auto& [part, tensors] : owned.parts) {
    auto& borrowed_tensors = snapshot.parts[part];
    for (const auto& [entry, buffer] : tensors) {
      borrowed_tensors.push_back({entry.name, entry.dtype, entry.shape, {buffer.data(), buffer.size()}});
    }
  }
  return snapshot;
}

}  // namespace

struct Writer::State {
  State(Disk& disk_, WriterOptions options_, Clock& clock_)
      : options(std::move(options_)),
        disk(disk_, options.may_write),
        far(disk_, options.may_write),
        clock(clock_),
        here(disk, options.root),
        there(far, options.mirror) {}

  const WriterOptions options;
  TurnDisk disk, far;  // both wrap the same disk; `far` is used only for the mirror, so that it can be closed alone
  Clock& clock;
  Shelf here, there;  // of the root and of the mirror; only the writer's thread uses them

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::optional<OwnedSnapshot> waiting;
  bool busy = false;  // the thread is working; submit does not look at this but at status.writing
  bool stopping = false, over = false, left = false, best_changed = false;
  std::vector<Step> best, best_before;  // the steps listed by the last set_best and by earlier ones, newest first
  WriterStatus status;
  std::thread thread;
  static constexpr size_t kRemembered = 64;
  const BestOf best_of = [this](const IsThere& is_there) { return kept_best(is_there); };

  bool idle() const { return !busy && !waiting && !best_changed; }

  // Returns the best steps to keep, newest first. A listed step that is not on disk takes no place from another one.
  std::vector<Step> kept_best(const IsThere& is_there) const {
    std::vector<Step> candidates;
    size_t most = 0;
    {
      const std::lock_guard lock(mutex);
      candidates = best;
      candidates.insert(candidates.end(), best_before.begin(), best_before.end());
      most = std::min(best.size(), static_cast<size_t>(std::max<int64_t>(options.keep_best, 0)));
    }
    std::vector<Step> kept;
    for (const Step step : candidates) {
      if (kept.size() < most && is_there(step)) kept.push_back(step);
    }
    return kept;
  }

  void list_best(std::vector<Step> steps) {
    std::sort(steps.begin(), steps.end(), std::greater<>());
    best.insert(best.end(), best_before.begin(), best_before.end());
    best_before.clear();
    for (const Step step : best) {
      const auto known = [&](const std::vector<Step>& list) {
        return std::find(list.begin(), list.end(), step) != list.end();
      };
      if (!known(steps) && !known(best_before) && best_before.size() < kRemembered) best_before.push_back(step);
    }
    best = std::move(steps);
    best_changed = true;
  }

  void set_trouble(std::string text) {
    const std::lock_guard lock(mutex);
    status.trouble = std::move(text);
  }

  // Runs one piece of work if this process may write. Stores what went wrong in `trouble`, unless an earlier piece of
  // work already did.
  template <typename Work>
  bool attempt(const char* what, std::string& trouble, Work work) {
    std::string text;
    try {
      disk.ask();
      work();
      return true;
    } catch (const Error& error) {
      text = told(error);
    } catch (const std::exception& error) {
      text = error.what();
    }
    if (trouble.empty()) trouble = *what == '\0' ? text : std::string(what) + ": " + text;
    return false;
  }

  void point_best() {
    const std::vector<Step> kept = kept_best([this](Step step) { return here.holds(step); });
    if (!kept.empty()) point(disk, options.root, "best", kept.front());
  }

  // Saves the snapshot, frees its memory and reads the checkpoint back.
  std::string save_and_verify(OwnedSnapshot owned, double wall_seconds) {
    const std::string directory = save(disk, options.root, borrowed(owned), wall_seconds);
    owned = OwnedSnapshot();  // frees the copy of the state before reading back
    if (const auto summary = verify(disk, directory, true); !summary) {
      throw Error("a checkpoint was written but does not read back: " + told(summary.error()),
                  "check the device; older checkpoints are kept");
    }
    return directory;
  }

  void write(OwnedSnapshot owned) {
    const Step step = owned.step;
    const double wall_seconds = clock.wall_seconds();
    std::string trouble, directory;
    bool newest = false;
    const bool saved = attempt("", trouble, [&] { directory = save_and_verify(std::move(owned), wall_seconds); });
    {
      const std::lock_guard lock(mutex);
      status.writing.reset();  // its memory is free, so the next snapshot may wait while this one is mirrored
      newest = saved && (!status.durable || *status.durable <= step);
      if (newest) {
        status.durable = step;
        status.durable_wall_seconds = wall_seconds;
      }
    }
    if (saved) settle(directory, step, newest, trouble);
    set_trouble(std::move(trouble));
  }

  // Points the links, mirrors and deletes after a step was saved. Each is tried even if an earlier one failed.
  void settle(const std::string& directory, Step step, bool newest, std::string& trouble) {
    here.vouch(step);
    if (newest)
      attempt("saved, but not pointed at by 'last'", trouble, [&] { point(disk, options.root, "last", step); });
    attempt("saved, but not pointed at by 'best'", trouble, [&] { point_best(); });
    if (!options.mirror.empty())
      attempt("saved, but not to the mirror", trouble, [&] { copy_to_mirror(directory, step); });
    attempt("saved, but old ones were not deleted", trouble, [&] { here.tidy(best_of, options.keep, step); });
  }

  void copy_to_mirror(const std::string& directory, Step step) {
    mirror(far, directory, options.mirror);
    there.vouch(step);
    {
      const std::lock_guard lock(mutex);
      status.mirrored = step;
    }
    there.tidy(best_of, options.keep, step);
  }

  // Writes the waiting snapshot, or points `best` if there is none.
  void work(std::unique_lock<std::mutex>& lock) {
    busy = true;
    best_changed = false;
    std::optional<OwnedSnapshot> owned = std::exchange(waiting, std::nullopt);
    lock.unlock();
    if (owned) {
      write(std::move(*owned));
    } else if (std::string trouble; !attempt("'best' was not pointed", trouble, [&] { point_best(); })) {
      set_trouble(std::move(trouble));
    }
    lock.lock();
    busy = false;
    changed.notify_all();
  }

  void run() {
    be_modest();
    std::unique_lock lock(mutex);
    while (!over) {
      changed.wait(lock, [&] { return stopping || !idle(); });
      over = idle() || left;  // idle here means that the Writer is stopping and all work is done
      if (!over) work(lock);
    }
    changed.notify_all();
  }

  // Asks the thread to finish and waits for it, with a time limit.
  void leave(std::unique_lock<std::mutex>& lock) {
    stopping = true;
    changed.notify_all();
    const auto ends = [&] {
      return changed.wait_for(lock, std::chrono::duration<double>(std::max(options.leave_seconds, 0.0)),
                              [&] { return over; });
    };
    if (ends()) return;
    far.close();
    if (ends()) return;
    disk.close();
    left = true;
  }
};

Writer::Writer(Disk& disk, WriterOptions options, Clock& clock)
    : state_(std::make_shared<State>(disk, std::move(options), clock)) {
  if (state_->options.thread) state_->thread = std::thread([state = state_] { state->run(); });
}

Writer::~Writer() {
  if (!state_->thread.joinable()) return;
  std::unique_lock lock(state_->mutex);
  state_->leave(lock);
  const bool over = state_->over;
  lock.unlock();
  over ? state_->thread.join() : state_->thread.detach();
}

bool Writer::ready() const {
  const std::lock_guard lock(state_->mutex);
  return !state_->status.writing;
}

bool Writer::submit(OwnedSnapshot snapshot) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->status.writing) {
      ++state_->status.skipped;
      return false;
    }
    state_->status.writing = snapshot.step;
    state_->waiting = std::move(snapshot);
  }
  state_->changed.notify_all();
  return true;
}

void Writer::set_best(std::vector<Step> best) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->list_best(std::move(best));
  }
  state_->changed.notify_all();
}

WriterStatus Writer::status() const {
  const std::lock_guard lock(state_->mutex);
  return state_->status;
}

bool Writer::wait(double timeout_seconds) {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, std::chrono::duration<double>(std::max(timeout_seconds, 0.0)),
                                  [&] { return state_->idle(); });
}

void Writer::leave_mirror() {
  state_->far.close();
}

bool Writer::work() {
  std::unique_lock lock(state_->mutex);
  SINEW_CHECK(!state_->thread.joinable());
  if (state_->idle()) return false;
  state_->work(lock);
  return true;
}

}  // namespace sinew::checkpoint
