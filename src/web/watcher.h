// Inside web/: waits for new events. One thread polls the store ten times a second for all clients that wait, and only
// while any client waits.
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

// Returns the next events that fit into one response. They may be fewer than `limit` if they are long.
std::vector<store::Event> next_events(store::Store& store, store::EventQuery query);

class Watcher {
 public:
  // Gets the events, or none if the time is over or the server ends.
  using Callback = std::function<void(std::vector<store::Event> events)>;

  Watcher(store::Store& store, Clock& clock);
  ~Watcher();  // calls every callback that still waits, without events
  // Calls `callback` once: with the next events as soon as there are any, or without events after `seconds`. The call
  // comes on the watcher's thread, or on the thread that destroys it.
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
  int64_t newest_ = 0;  // number of the newest event; only thread_ uses it
  std::thread thread_;
};

}  // namespace sinew::web
