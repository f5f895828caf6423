// What every lane of a worker does right now, written where it outlives the worker.
//
// The worker (worker/) writes, its supervisor (cli/) reads: after a death, to tell which shard was in flight, and in
// life, to tell who holds up a run. A slate is a page of memory that both map: a note is a few stores into a cache line
// of the lane's own, and it stands there however the worker dies. It is no file of the run directory: the kernel writes
// a mapped file back now and then, and a slow disk would hold up the lane that notes something meanwhile. It is a help
// and never a reason to fail: where there can be no slate nothing is noted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sinew {

struct Work {
  // recording: what a step leaves behind, in files and for other processes, before the next one begins.
  enum class Kind : int64_t { nothing, computing, evaluating, reducing, updating, recording };
  Kind kind = Kind::nothing;
  int64_t step = 0;                         // steps committed so far
  int64_t shard = 0;                        // computing: the shard; evaluating: the piece
  int64_t epoch = 0, first = 0, count = 0;  // computing, evaluating: the samples, as places in the epoch's order
  bool operator==(const Work&) const = default;
};

// "step 412, shard 3 (samples 96 to 127 in the order of epoch 2)".
std::string to_string(const Work& work);

// What stands on a slate.
struct Noted {
  int lane = 0;
  int64_t number = 0;  // of the lane's notes so far: the same work begun anew is another note
  Work work;
  bool operator==(const Noted&) const = default;
};

struct SlateLine;

// For a child to write on.
class ChildSlate {
 public:
  ChildSlate();
  ~ChildSlate();
  ChildSlate(ChildSlate&& other) noexcept;
  ChildSlate& operator=(ChildSlate&&) = delete;

  std::string path() const;         // what the child opens, as long as this process lives; empty: there can be no slate
  std::vector<Noted> read() const;  // lanes that noted something, those that do nothing now included

 private:
  int file_ = -1;
  SlateLine* lines_ = nullptr;
};

// The child's own hold of it.
class Slate {
 public:
  explicit Slate(const std::string& path);  // empty, or no slate: nothing is noted
  ~Slate();
  Slate(const Slate&) = delete;
  Slate& operator=(const Slate&) = delete;

  void note(int lane, const Work& work);  // any thread, one at a time for each lane

 private:
  SlateLine* lines_ = nullptr;
};

}  // namespace sinew
