// An activity board shows what every lane of a worker does right now, and the error with which the worker ended. The
// board outlives the worker.
//
// The worker (worker/) writes the board, and its supervisor (cli/) reads it. While the worker lives, the supervisor
// learns from the board which lane holds up the run; after its death, which shard was in flight. The board is a page of
// memory that both processes map. A post is a few stores into a cache line that belongs to one lane, and the line keeps
// its content however the worker dies. The board is not a file of the run directory: the kernel writes mapped files
// back now and then, and on a slow disk this would block the lane that posts. A missing board never stops a training:
// if the board cannot be created or opened, posts do nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sinew {

struct Work {
  // recording: the worker writes files and sends messages after a step; the next step begins when this is done.
  enum class Kind : int64_t { nothing, computing, evaluating, reducing, updating, recording };
  Kind kind = Kind::nothing;
  int64_t step = 0;   // steps committed so far
  int64_t shard = 0;  // computing: index of the shard; evaluating: index of the evaluation's slice
  // computing, evaluating: the samples are the positions [first, first + count) of this epoch's order.
  int64_t epoch = 0, first = 0, count = 0;
  bool operator==(const Work&) const = default;
};

// "step 412, shard 3 (samples 96 to 127 in the order of epoch 2)".
std::string to_string(const Work& work);

// The newest post of one lane.
struct LaneActivity {
  int lane = 0;
  int64_t sequence = 0;  // the number of posts of this lane so far; it grows even if a post repeats the same work
  Work work;
  bool operator==(const LaneActivity&) const = default;
};

// The error with which a worker ended, as users read it.
struct PostedError {
  std::string what;  // with the error's code, as to_string(Error); the board keeps the first line
  std::string hint;
  bool operator==(const PostedError&) const = default;
};

struct LaneSlot;

// The supervisor's side: creates the memory for one child and reads it.
class ChildActivityBoard {
 public:
  ChildActivityBoard();
  ~ChildActivityBoard();
  ChildActivityBoard(ChildActivityBoard&& other) noexcept;
  ChildActivityBoard& operator=(ChildActivityBoard&&) = delete;

  // The path that the child opens. It is valid while this process lives. Returns "" if the board could not be created.
  std::string path() const;
  // One entry for each lane that has posted, including lanes whose newest post is `nothing`.
  std::vector<LaneActivity> read() const;
  // The error that the child posted last; nullopt if it posted none.
  std::optional<PostedError> error() const;

 private:
  int file_ = -1;
  LaneSlot* lanes_ = nullptr;
};

// The worker's side: writes the board that its supervisor created.
class ActivityBoard {
 public:
  explicit ActivityBoard(const std::string& path);  // posts do nothing if the path is empty or leads to no board
  ~ActivityBoard();
  ActivityBoard(const ActivityBoard&) = delete;
  ActivityBoard& operator=(const ActivityBoard&) = delete;

  void post(int lane, const Work& work);  // any thread, but at most one thread at a time for each lane
  void post(const PostedError& error);    // one thread; a text that is too long is cut off

 private:
  LaneSlot* lanes_ = nullptr;
};

}  // namespace sinew
