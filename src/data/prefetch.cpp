#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <list>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include "base/check.h"
#include "base/clock.h"
#include "data/data.h"
#include "data/loader_threads.h"

namespace sinew::data {
namespace {

struct Entry {
  enum class Stage { waiting, loading, ready };
  ShardRequest request;
  int64_t bytes = 0;  // memory of its batch; reserved as soon as the loading begins
  Stage stage = Stage::waiting;
  bool claimed = false;    // true: a caller of take() waits for this entry
  bool cancelled = false;  // true: the entry was cleared while a thread was loading it; that thread discards it
  Batch batch;
  std::exception_ptr failure;
};

// Lowers the priority of the calling thread, so that lanes run first. On Linux the nice value belongs to the thread.
void lower_priority() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 10);
}

}  // namespace

// `entries` are in the order in which they were announced. `mutex` guards all fields. A loading thread stores a batch
// in its entry only when the batch is complete.
struct Prefetcher::State {
  using Entries = std::list<Entry>;

  const Dataset& dataset;
  const uint64_t seed;
  const int64_t limit;
  std::mutex mutex;
  std::condition_variable work, done;
  Entries entries;
  std::multimap<ShardRequest, Entries::iterator> by_request;  // the entries that take() may still claim
  Entries::iterator next = entries.end();                     // the first waiting entry
  int64_t reserved = 0;                                       // bytes of the loading and the ready batches
  double waited = 0;
  LoadUse use;
  bool stop = false;
  std::vector<std::thread> threads;
  LoaderThreads wanted;  // the threads after the first wanted.threads() of them rest
  const double window_seconds;
  double window_began = system_clock().monotonic_seconds(), window_waited = 0;
  LoadUse use_at_window;

  State(const Dataset& data, uint64_t key, int64_t bytes, int64_t first_threads, const Tuning& tuning)
      : dataset(data),
        seed(key),
        limit(bytes),
        wanted(first_threads, std::max(first_threads, tuning.most_threads)),
        window_seconds(tuning.window_seconds) {}

  void add_threads() {
    for (auto index = static_cast<int64_t>(threads.size()); index < wanted.threads(); ++index)
      threads.emplace_back([this, index] { run(index); });
  }

  // Called with `mutex`.
  void tune(double now) {
    if (now < window_began + window_seconds) return;
    wanted.after({now - window_began, waited - window_waited, between(use_at_window, use)});
    window_began = now;
    window_waited = waited;
    use_at_window = use;
    try {
      add_threads();
    } catch (...) {  // the machine has no thread or no memory left; fewer threads will do
    }
    work.notify_all();
  }

  int64_t bytes_of(const ShardRequest& request) const {
    const DataInfo& info = dataset.info();
    const bool numbers = info.task == Task::regression;
    const auto row =
        element_count(info.input_shape) * static_cast<int64_t>(size_of(info.input_dtype)) +
        element_count(info.target_shape) * static_cast<int64_t>(numbers ? sizeof(float) : sizeof(int64_t)) +
        static_cast<int64_t>(sizeof(int64_t));
    return row * request.count;
  }

  // Called without `mutex`.
  Batch load(const ShardRequest& request) {
    LoadUse taken;
    LoadWatch watch(taken, dataset.in_memory() ? LoadWatch::Work::never_waits : LoadWatch::Work::may_wait);
    Batch batch = load_samples(request);
    taken += batch.use;
    taken.samples += batch.count();
    watch.rest(LoadStage::copy);
    const std::lock_guard lock(mutex);
    use += taken;
    return batch;
  }

  Batch load_samples(const ShardRequest& request) const {
    std::vector<int64_t> samples(static_cast<size_t>(request.count));
    std::iota(samples.begin(), samples.end(), request.first);
    if (request.split == Split::train) {
      const Permutation order = epoch_order(seed, request.epoch, dataset.size(Split::train));
      for (int64_t& sample : samples) sample = order[sample];
    }
    return dataset.load(request.split, samples,
                        {seed, request.epoch, request.split == Split::train && !request.evaluation});
  }

  // Removes an entry from `entries` and `by_request`. If `next` points to it, moves `next` to the following waiting
  // entry.
  void erase(Entries::iterator entry) {
    const auto [first, last] = by_request.equal_range(entry->request);
    for (auto it = first; it != last; ++it) {
      if (it->second == entry) {
        by_request.erase(it);
        break;
      }
    }
    if (next == entry) skip_to_waiting(std::next(entry));
    if (entry->stage != Entry::Stage::waiting) reserved -= entry->bytes;
    entries.erase(entry);
  }

  void skip_to_waiting(Entries::iterator from) {
    while (from != entries.end() && from->stage != Entry::Stage::waiting) ++from;
    next = from;
  }

  bool can_load() const { return next != entries.end() && reserved + next->bytes <= limit; }

  // Called with `mutex`. Waking a thread takes longer than a small step, so threads that have nothing to load are not
  // woken.
  void wake_loaders() {
    if (can_load()) work.notify_all();
  }

  void end_threads() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    work.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  void run(int64_t index) {
    lower_priority();
    std::unique_lock lock(mutex);
    while (true) {
      work.wait(lock, [&] { return stop || (index < wanted.threads() && can_load()); });
      if (stop) return;
      const auto entry = next;
      entry->stage = Entry::Stage::loading;
      reserved += entry->bytes;
      skip_to_waiting(std::next(entry));
      const ShardRequest request = entry->request;
      lock.unlock();
      Batch batch;
      std::exception_ptr failure;
      try {
        batch = load(request);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      if (entry->cancelled) {
        erase(entry);
        work.notify_all();
        done.notify_all();
        continue;
      }
      entry->batch = std::move(batch);
      entry->failure = failure;
      entry->stage = Entry::Stage::ready;
      done.notify_all();
    }
  }
};

Prefetcher::Prefetcher(const Dataset& dataset, uint64_t seed, int64_t threads, int64_t bytes)
    : Prefetcher(dataset, seed, threads, bytes, Tuning()) {}

Prefetcher::Prefetcher(const Dataset& dataset, uint64_t seed, int64_t threads, int64_t bytes, const Tuning& tuning)
    : state_(std::make_unique<State>(dataset, seed, bytes, threads, tuning)) {
  SINEW_CHECK(threads >= 0 && bytes >= 0, threads, bytes);
  try {
    state_->add_threads();
  } catch (...) {  // the machine has no thread left
    state_->end_threads();
    throw;
  }
}

Prefetcher::~Prefetcher() {
  state_->end_threads();
}

void Prefetcher::prefetch(const std::vector<ShardRequest>& requests) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (state.threads.empty()) return;
  for (const ShardRequest& request : requests) {
    const int64_t bytes = state.bytes_of(request);
    if (request.count == 0 || bytes > state.limit) continue;  // take() itself loads a shard that is too large
    const auto entry = state.entries.insert(state.entries.end(), Entry{});
    entry->request = request;
    entry->bytes = bytes;
    state.by_request.emplace(request, entry);
    if (state.next == state.entries.end()) state.next = entry;
  }
  state.work.notify_all();
}

void Prefetcher::clear() {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  for (auto entry = state.entries.begin(); entry != state.entries.end();) {
    const auto current = entry++;
    if (current->claimed) continue;
    if (current->stage == Entry::Stage::loading) {
      current->cancelled = true;
    } else {
      state.erase(current);
    }
  }
  state.by_request.clear();  // the claimed entries are in `entries`, but no longer in this index
  state.work.notify_all();
}

Batch Prefetcher::take(const ShardRequest& request) {
  State& state = *state_;
  const double began = system_clock().monotonic_seconds();
  struct Waited {  // adds the time, even if take() throws
    State& state;
    double began;
    ~Waited() {
      const double now = system_clock().monotonic_seconds();
      const std::lock_guard lock(state.mutex);
      state.waited += now - began;
      state.tune(now);
    }
  } waited{state, began};

  std::unique_lock lock(state.mutex);
  const auto found = state.by_request.lower_bound(request);
  if (found == state.by_request.end() || found->first != request || found->second->stage == Entry::Stage::waiting) {
    if (found != state.by_request.end() && found->first == request) state.erase(found->second);
    state.wake_loaders();
    lock.unlock();
    return state.load(request);
  }
  const auto entry = found->second;
  state.by_request.erase(found);
  entry->claimed = true;
  state.done.wait(lock, [&] { return entry->stage == Entry::Stage::ready; });
  Batch batch = std::move(entry->batch);
  const std::exception_ptr failure = entry->failure;
  state.erase(entry);
  state.wake_loaders();
  lock.unlock();
  if (failure) std::rethrow_exception(failure);
  return batch;
}

bool Prefetcher::wait_for(const std::vector<ShardRequest>& requests, double seconds) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  const auto is_loaded = [&](const ShardRequest& request) {
    const auto found = state.by_request.find(request);
    return found == state.by_request.end() || found->second->stage == Entry::Stage::ready;
  };
  const auto is_loading = [](const Entry& entry) { return entry.stage == Entry::Stage::loading; };
  const auto loaded = [&] { return std::ranges::all_of(requests, is_loaded); };
  // if no memory is left, no thread loads the rest before somebody takes a shard
  const auto stuck = [&] { return !state.can_load() && std::ranges::none_of(state.entries, is_loading); };
  state.done.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return loaded() || stuck(); });
  return loaded();
}

void Prefetcher::use_threads(int64_t threads) {
  State& state = *state_;
  SINEW_CHECK(threads >= 1, threads);
  const std::lock_guard lock(state.mutex);
  if (state.threads.empty()) return;
  state.wanted = LoaderThreads(threads, threads);
  try {
    state.add_threads();
  } catch (...) {  // the machine has no thread left; those that began load
  }
  state.work.notify_all();
}

double Prefetcher::waited_seconds() const {
  const std::lock_guard lock(state_->mutex);
  return state_->waited;
}

LoadUse Prefetcher::use() const {
  const std::lock_guard lock(state_->mutex);
  LoadUse use = state_->use;
  use.threads = std::min(state_->wanted.threads(), static_cast<int64_t>(state_->threads.size()));
  return use;
}

}  // namespace sinew::data
