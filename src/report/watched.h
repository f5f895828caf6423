// One of the two streams a person or a log collector watches, by its descriptor. Nothing that is written here waits
// long: who trains, and who listens for signals, does not depend on who watches.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string_view>

namespace sinew::report {

class Watched {
 public:
  explicit Watched(int descriptor, double patience_seconds = 5);
  ~Watched();
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  // What nobody takes within the patience (a pager that waits, a terminal that is held or gone) is let go, and from
  // then on at once, until everything of a text is taken again.
  void write(std::string_view text);

 private:
  size_t written(std::string_view text);
  ssize_t put(std::string_view piece) const;

  int descriptor_, own_ = -1;  // own_: the same stream, opened once more so that it does not block here alone
  bool socket_ = false;
  double patience_seconds_;
  bool stalled_ = false;
  bool torn_ = false;  // the newest line was let go of in its middle
};

}  // namespace sinew::report
