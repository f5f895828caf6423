// Runs one attempt of a command: its processes, their output and their limits. This class makes no decisions; it
// carries out those of the state machine.
#pragma once

#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jobs/attempt_state_machine.h"
#include "jobs/cgroup.h"
#include "jobs/rank_context.h"
#include "jobs/reapers.h"
#include "jobs/streams.h"

namespace sinew::jobs {

class Attempt {
 public:
  struct Plan {
    const spec::Job* job = nullptr;
    RankContext context;  // the context of rank 0; the contexts of the other ranks are made from it
    Limits limits;
    std::vector<int> kept;  // descriptors that the reapers keep open
    std::function<void(int64_t rank, bool errors, const Line& line)> visit;
  };
  explicit Attempt(Plan plan);

  std::vector<int> descriptors() const;  // the descriptors to wait for with poll(2)
  // Reads the output and the reaper's events. Returns true once no process of the attempt remains.
  bool turn();
  // Returns true once all ranks have ended, or one could not be started. The reaper then kills the other processes, at
  // once or after the grace.
  bool only_leftovers_remain() const;
  // Returns a sentence if a rank failed while others still run: they would wait for the failed rank forever.
  std::string failed_rank() const { return failed_rank_; }
  // Returns the reason and a sentence if the attempt exceeds a limit that no control group enforces.
  std::optional<std::pair<StopReason, std::string>> over_limit() const;

  void terminate() { processes_->signal_ranks(SIGTERM); }
  void kill();
  // Collects how the attempt ended and removes the control groups. Call it only after turn() has returned true.
  AttemptFacts finish();
  int64_t lost_bytes() const;

 private:
  void handle(const ReaperEvent& event);
  void note_end(const ReaperEvent& event);
  std::string no_start_text(const ReaperEvent& event) const;

  Plan plan_;
  std::vector<RankStream> streams_;
  std::unique_ptr<RankProcesses> processes_;
  AttemptFacts facts_;
  std::string failed_rank_;
  int64_t machine_kills_before_ = 0;
  int kills_ = 0, running_ = 0;
  bool gone_ = false;
};

// stream: for example "stderr"
std::string output_path(const std::string& run_directory, int64_t rank, const char* stream);
int free_port();  // a port that is free on this machine's loopback interface at this moment

}  // namespace sinew::jobs
