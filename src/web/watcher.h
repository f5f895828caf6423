// Who waits for news: the store is looked at for all of them together, a few times a second, while there are any.
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

// The next events, as many as one answer may have: fewer than `limit` where they are long.
std::vector<store::Event> next_events(store::Store& store, store::EventQuery query);

class Watcher {
 public:
  // Empty: the time is over, or the server ends.
  using News = std::function<void(std::vector<store::Event> events)>;

  Watcher(store::Store& store, Clock& clock);
  ~Watcher();  // everybody who waits is told that there is nothing
  // Once, on this thread or another: the next events after `after` as soon as there are any, else none.
  void wait(store::EventQuery query, double seconds, News news);
  size_t waiting();

 private:
  struct Waiting {
    store::EventQuery query;
    double until;
    News news;
    int64_t looked = -1;  // there was nothing for it up to this event
  };
  void watch();
  void look(std::list<Waiting>& some);
  void find_newest();

  store::Store& store_;
  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Waiting> waiting_;
  bool ending_ = false;
  int64_t newest_ = 0;  // of the thread alone
  std::thread thread_;
};

}  // namespace sinew::web
