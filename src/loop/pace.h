// Part of loop.h: how long the parts of a run take, and what follows for its end. Nothing here reads a clock.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

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
  double mean() const;  // 0 if nothing was measured
  // What the next one will rarely exceed: the longest of the newest durations. If there are some, one of them may be
  // longer: a process that was stopped, or a group that waited for a dead member, says nothing about the next one.
  double longest() const;
  // How much the mean may differ from that of another history on the same machine, as a part of it (about 90 %).
  double error() const;
  // The time that `count` further pieces of the work will take together. The history is divided into blocks of equally
  // many pieces; their scatter gives the range, as a prediction interval of Student's t distribution for the mean of
  // further blocks. The newest blocks count as a possible future on their own, because what slows them down may stay.
  // If other programs use the machine, so do the fastest and the slowest ones. The range is wide at first, and narrows
  // as the past grows beside the future. `unseen`: by which part the mean of a long future may differ from all that was
  // seen; above 0.2, because other programs come and go.
  Range of(double count, double unseen) const;

 private:
  struct Block {
    double seconds = 0;
    int64_t count = 0;
  };
  struct Scatter {
    std::vector<double> blocks;                     // the mean duration in each complete block
    double centre = 0, variance = 0, likeness = 1;  // likeness: how many blocks say as much as one independent block
  };
  Scatter scatter() const;
  void merge_blocks();
  std::deque<double> newest_;
  std::deque<Block> blocks_;  // the last one may be incomplete
  int64_t block_size_ = 1;    // pieces of a complete block
  double seconds_ = 0;
  int64_t count_ = 0;
  bool forgot_first_ = false;
};

// The pace of a run: of its steps, each until the next one begins, and of its evaluations, which are not part of steps.
class RunPace {
 public:
  // Steps of another batch size say nothing about those to come, so the steps before them are forgotten.
  void step_begins(double at, int64_t batch_size);
  void leave_out() { began_.reset(); }  // the step under way says nothing about others
  void evaluated(double seconds);       // an evaluation of the validation data that came after a step
  double seconds_of_step() const;       // of a mean step, with its part of the evaluations; 0 if no step was measured
  const Pace& steps() const { return steps_; }
  const Pace& evaluations() const { return evaluations_; }

 private:
  Pace steps_, evaluations_;
  std::optional<double> began_;   // of the step under way
  double evaluated_seconds_ = 0;  // in that step
  int64_t batch_size_ = 0;
};

}  // namespace sinew::loop
