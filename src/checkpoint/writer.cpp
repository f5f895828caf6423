#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/fenced_disk.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/retention.h"

namespace sinew::checkpoint {
namespace {

// Lowers the thread's CPU and I/O priority, because training and loading of samples come first. It adds 10 to the nice
// value, not 19: beside a busy thread the writer then gets a tenth of a core, which is enough for any state. With 19 it
// would get a sixtieth, and every save would be late. Errors are ignored, because the writer also works at normal
// priority.
void lower_priority() {
  const auto thread = static_cast<id_t>(::syscall(SYS_gettid));
  ::setpriority(PRIO_PROCESS, thread, std::min(19, ::getpriority(PRIO_PROCESS, thread) + 10));
  constexpr int kWhoProcess = 1, kIdleClass = 3, kClassShift = 13;
  ::syscall(SYS_ioprio_set, kWhoProcess, thread, kIdleClass << kClassShift);
}

constexpr ErrorCode kNotReadBack = "CHECKPOINT_NOT_READ_BACK";
constexpr double kLookSeconds = 0.01;  // how often wait() looks, if in_background runs the work

std::string text_of(const Damage& damage) {
  return damage.directory + "/" + damage.file + " " + damage.what;
}

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
  struct Trouble {
    std::string text;
    bool refused = false;  // true: the only trouble is that may_write returned false
    bool damaged = false;  // true: the checkpoint read back damaged
  };

  State(Disk& disk_, WriterOptions options_, Clock& clock_)
      : options(std::move(options_)),
        disk(disk_, options.may_write),
        mirror_disk(disk_, options.may_write),
        clock(clock_),
        retention(disk, options.root),
        mirror_retention(mirror_disk, options.mirror),
        best(options.keep_best) {}

  const WriterOptions options;
  // both use one disk; mirror_disk is for the mirror alone, so that it can be closed separately
  FencedDisk disk, mirror_disk;
  Clock& clock;
  Retention retention, mirror_retention;  // only the writer's thread uses them
  BestSteps best;

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::shared_ptr<const OwnedSnapshot> waiting;
  bool busy = false;  // true: the thread is working (submit checks status.writing instead)
  bool stopping = false, over = false, abandoned = false, best_changed = false;
  WriterStatus status;
  std::thread thread;

  bool idle() const { return !busy && !waiting && !best_changed; }

  void set_trouble(Trouble trouble) {
    const std::lock_guard lock(mutex);
    status.trouble = std::move(trouble.text);
    status.refused = trouble.refused;
    status.damaged = trouble.damaged;
  }

  // Runs one unit of work if this process may write. If that fails, stores the problem in `trouble`, unless an earlier
  // unit of work has already stored one.
  template <typename Work>
  bool attempt(const char* what, Trouble& trouble, Work work) {
    std::string text;
    bool refused = false, damaged = false;
    try {
      disk.check_may_write();
      work();
      return true;
    } catch (const MayNotWrite& error) {
      text = text_with_hint(error);
      refused = true;
    } catch (const Error& error) {
      text = text_with_hint(error);
      damaged = error.code == kNotReadBack;
    } catch (const std::exception& error) {
      text = error.what();
    }
    if (trouble.text.empty()) trouble = {*what == '\0' ? text : std::string(what) + ": " + text, refused, damaged};
    return false;
  }

  void point_best() {
    const std::vector<Step> kept = best.chosen([this](Step step) { return retention.holds(step); });
    if (!kept.empty()) point_link(disk, options.root, "best", kept.front());
  }

  // Saves the snapshot. If the disk or a quota is full, first deletes what would be deleted after the save, and tries
  // again. Otherwise a quota for exactly options.keep checkpoints would refuse every later checkpoint.
  std::string save_in_room(const OwnedSnapshot& owned, double wall_seconds) {
    for (;;) {
      try {
        return save(disk, options.root, borrowed(owned), wall_seconds);
      } catch (const Error& error) {
        if (error.code != ErrorCode("DISK_FULL") || !retention.make_room(best, options.keep, owned.step)) throw;
      }
    }
  }

  // Saves the snapshot, lets go of it, and reads the checkpoint back.
  std::string save_and_verify(std::shared_ptr<const OwnedSnapshot> owned, double wall_seconds) {
    const std::string directory = save_in_room(*owned, wall_seconds);
    owned.reset();  // frees the copy of the state before reading back
    if (const auto summary = verify(disk, directory, true); !summary) {
      throw Error(kNotReadBack, "a checkpoint was written but reads back damaged: " + text_of(summary.error()),
                  "check the device and the memory of this machine; older checkpoints are kept");
    }
    return directory;
  }

  void write(std::shared_ptr<const OwnedSnapshot> owned) {
    const Step step = owned->step;
    const double wall_seconds = clock.wall_seconds(), began = clock.monotonic_seconds();
    Trouble trouble;
    std::string directory;
    bool newest = false;
    const bool saved = attempt("", trouble, [&] { directory = save_and_verify(std::move(owned), wall_seconds); });
    {
      const std::lock_guard lock(mutex);
      // the snapshot's memory is free, so the next snapshot may wait while this one is mirrored
      status.writing.reset();
      newest = saved && (!status.durable || *status.durable <= step);
      if (saved) status.saved = step;
      if (newest) {
        status.durable = step;
        status.durable_wall_seconds = wall_seconds;
      }
    }
    if (saved) {
      finish_saved(directory, step, newest, trouble);
      const std::lock_guard lock(mutex);
      status.save_seconds = clock.monotonic_seconds() - began;
    }
    set_trouble(std::move(trouble));
  }

  // After a step was saved, moves the links, mirrors and deletes. It tries each of these even if an earlier one failed.
  void finish_saved(const std::string& directory, Step step, bool newest, Trouble& trouble) {
    retention.mark_verified(step);
    if (newest)
      attempt("saved, but the link 'last' was not moved", trouble,
              [&] { point_link(disk, options.root, "last", step); });
    attempt("saved, but the link 'best' was not moved", trouble, [&] { point_best(); });
    if (!options.mirror.empty())
      attempt("saved, but not copied to the mirror", trouble, [&] { copy_to_mirror(directory, step); });
    attempt("saved, but old checkpoints were not deleted", trouble, [&] { retention.apply(best, options.keep, step); });
  }

  void copy_to_mirror(const std::string& directory, Step step) {
    mirror(mirror_disk, directory, options.mirror);
    mirror_retention.mark_verified(step);
    {
      const std::lock_guard lock(mutex);
      status.mirrored = step;
    }
    mirror_retention.apply(best, options.keep, step);
  }

  // Writes the waiting snapshot. If there is none, moves the link `best`.
  void work(std::unique_lock<std::mutex>& lock) {
    busy = true;
    best_changed = false;
    std::shared_ptr<const OwnedSnapshot> owned = std::exchange(waiting, nullptr);
    lock.unlock();
    if (owned) {
      write(std::move(owned));
    } else if (Trouble trouble; !attempt("the link 'best' was not moved", trouble, [&] { point_best(); })) {
      set_trouble(std::move(trouble));
    }
    lock.lock();
    busy = false;
    changed.notify_all();
  }

  // Does the waiting work of a Writer that has no thread of its own.
  void work_off() {
    std::unique_lock lock(mutex);
    while (!busy && !idle()) work(lock);
  }

  void run() {
    lower_priority();
    std::unique_lock lock(mutex);
    while (!over) {
      changed.wait(lock, [&] { return stopping || !idle(); });
      over = idle() || abandoned;  // idle here means that the Writer is stopping and all work is done
      if (!over) work(lock);
    }
    changed.notify_all();
  }

  // Asks the thread to finish, and waits for it with a time limit.
  void shut_down(std::unique_lock<std::mutex>& lock) {
    stopping = true;
    changed.notify_all();
    const auto ends = [&] {
      return changed.wait_for(lock, std::chrono::duration<double>(std::max(options.shutdown_seconds, 0.0)),
                              [&] { return over; });
    };
    if (ends()) return;
    mirror_disk.close();
    if (ends()) return;
    disk.close();
    abandoned = true;
  }
};

Writer::Writer(Disk& disk, WriterOptions options, Clock& clock)
    : state_(std::make_shared<State>(disk, std::move(options), clock)) {
  if (!state_->options.in_background) state_->thread = std::thread([state = state_] { state->run(); });
}

Writer::~Writer() {
  if (!state_->thread.joinable()) {
    state_->mirror_disk.close();
    state_->disk.close();
    return;
  }
  std::unique_lock lock(state_->mutex);
  state_->shut_down(lock);
  const bool over = state_->over;
  lock.unlock();
  over ? state_->thread.join() : state_->thread.detach();
}

bool Writer::ready() const {
  const std::lock_guard lock(state_->mutex);
  return !state_->status.writing;
}

bool Writer::submit(std::shared_ptr<const OwnedSnapshot> snapshot) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->status.writing) {
      ++state_->status.skipped;
      return false;
    }
    state_->status.writing = snapshot->step;
    state_->waiting = std::move(snapshot);
  }
  start_work();
  return true;
}

void Writer::set_best(std::vector<Step> best) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->best.set(std::move(best));
    state_->best_changed = true;
  }
  start_work();
}

void Writer::start_work() {
  if (!state_->options.in_background) return state_->changed.notify_all();
  state_->options.in_background([state = state_] { state->work_off(); });
}

WriterStatus Writer::status() const {
  const std::lock_guard lock(state_->mutex);
  return state_->status;
}

bool Writer::wait(double timeout_seconds) {
  const auto idle = [&] {
    const std::lock_guard lock(state_->mutex);
    return state_->idle();
  };
  if (state_->options.in_background) {
    const double end = state_->clock.monotonic_seconds() + timeout_seconds;
    while (!idle() && state_->clock.monotonic_seconds() < end) state_->clock.sleep_seconds(kLookSeconds);
    return idle();
  }
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, std::chrono::duration<double>(std::max(timeout_seconds, 0.0)),
                                  [&] { return state_->idle(); });
}

void Writer::abandon_mirror() {
  state_->mirror_disk.close();
}

}  // namespace sinew::checkpoint
