// How long the parts of a run take, and what follows for its end. All functions are pure: durations are arguments.
// Private to loop/.
#pragma once

#include <cstdint>
#include <deque>

namespace sinew::loop {

// A range that holds the true value with a probability of about 90 %.
struct Range {
  double low = 0, high = 0;
  Range operator+(const Range& other) const { return {low + other.low, high + other.high}; }
};

// The durations of one kind of work, in seconds, in the order in which they were measured.
class Pace {
 public:
  // The first duration is often longer than the others, because memory and caches are new. So it counts only until
  // there is a second one.
  void add(double seconds);
  bool is_measured() const { return count_ > 0; }
  int64_t count() const { return count_; }
  double mean() const;     // 0 if nothing was measured
  double longest() const;  // of the newest durations; the next one rarely takes longer
  // The time that `count` further pieces of the work will take together. The history is divided into blocks of equally
  // many pieces; their scatter gives the range, as a prediction interval of Student's t distribution for the mean of
  // further blocks. The fastest, the slowest and the newest blocks count as possible futures on their own, because the
  // load of a machine may go or stay. The range is wide at first, and narrows as the past grows beside the future.
  Range of(double count) const;

 private:
  struct Block {
    double seconds = 0;
    int64_t count = 0;
  };
  void merge_blocks();
  std::deque<double> newest_;
  std::deque<Block> blocks_;  // the last one may be incomplete
  int64_t block_size_ = 1;    // pieces of a complete block
  double seconds_ = 0;
  int64_t count_ = 0;
  bool forgot_first_ = false;
};

// What a run must still do if it makes one more step than it has to. In seconds, each the longest that is likely.
struct Ahead {
  double step = 0;
  double evaluation_after_step = 0;       // 0 if no evaluation is due then
  double evaluation_after_next_step = 0;  // the same, a step later
  double end = 0;                         // what follows the last step
};
// Returns whether a request to stop, which takes effect after the step that is about to begin, must be made now because
// the next one would come too late.
bool must_stop(double seconds_left, const Ahead& ahead);

}  // namespace sinew::loop
