// Decides how many threads load samples ahead. Private to data/.
//
// Threads that decode need a core each, and so do the lanes. Threads that wait for a disk or a network need none, and
// how many of them such a source can serve is not known before it is tried. So more threads are tried while the lanes
// wait for samples and the loaders wait for files, and are kept only if more samples come.
#pragma once

#include <cstdint>

#include "base/load_use.h"

namespace sinew::data {

// What happened in a while.
struct LoadWindow {
  double seconds = 0;
  double waited_seconds = 0;  // for which the lanes together waited for samples
  LoadUse use;                // of this while alone
};

class LoaderThreads {
 public:
  // There are `begin` threads at first, and at most `most` (begin or more).
  LoaderThreads(int64_t begin, int64_t most);
  int64_t threads() const { return threads_; }
  void after(const LoadWindow& window);  // changes threads(). Pure: the same windows give the same number

 private:
  int64_t threads_;
  int64_t most_;
  int64_t before_ = 0;      // the threads before the present try; 0: nothing is being tried
  double rate_before_ = 0;  // samples a second with them
  int64_t rest_ = 0;        // windows until the next try
  int64_t next_rest_ = 8;   // after a try that failed; then twice as many
};

}  // namespace sinew::data
