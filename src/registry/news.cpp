#include "registry/news.h"

namespace sinew::registry {

int64_t newest_event(store::Store& store, const store::Subject& subject) {
  int64_t seq = 0;
  while (true) {
    const auto events = store.events({.after = seq, .limit = 1000, .subject = subject});
    if (!events.empty()) seq = events.back().seq;
    if (events.size() < 1000) return seq;
  }
}

}  // namespace sinew::registry
