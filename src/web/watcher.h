// Inside web/: waits for new events. While any client waits, one thread polls the store ten times a second for all of
// them together.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "store/store.h"

namespace sinew::web {

// Returns the next events that fit into one response: fewer than `limit` if they are long.
std::vector<store::Event> next_events(store::Store& store, store::EventQuery query);

class Watcher {
 public:
  // Receives the events, or no events if the time is over or the server ends.
  using Callback = std::function<void(std::vector<store::Event> events)>;

  Watcher(store::Store& store, Clock& clock);
  ~Watcher();  // calls every waiting callback without events
  // Calls `callback` once, on this thread or the watcher's: with the next events as soon as there are any, or without
  // events after `seconds`.
  void wait(store::EventQuery query, double seconds, Callback callback);
  size_t waiting();

 private:
  struct Waiter {
    store::EventQuery query;
    double until;
    Callback callback;
    int64_t checked = -1;  // no event up to this number matches the query
  };
  void run();
  void check(std::list<Waiter>& waiters);
  void find_newest();

  store::Store& store_;
  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Waiter> waiting_;
  bool ending_ = false;
  int64_t newest_ = 0;  // number of the newest event; used only by thread_
  std::thread thread_;
};

}  // namespace sinew::web
