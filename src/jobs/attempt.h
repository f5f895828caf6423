// One attempt of a command: its processes, their streams and limits. Acts; decides nothing.
#pragma once

#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jobs/cgroup.h"
#include "jobs/conduct.h"
#include "jobs/environment.h"
#include "jobs/guardian.h"
#include "jobs/streams.h"

namespace sinew::jobs {

class Attempt {
 public:
  struct Plan {
    const spec::Job* job = nullptr;
    Seat seat;  // of rank 0
    Limits limits;
    std::vector<int> kept;  // descriptors the watchers hold open
    std::function<void(int64_t rank, bool errors, const Line& line)> visit;
  };
  explicit Attempt(Plan plan);

  std::vector<int> descriptors() const;  // to poll
  // Takes what came: output, and words of the guardian. True once everything of the attempt is gone.
  bool turn();
  // Every rank has ended, or one could not be started: what they left behind is being killed, or has its grace.
  bool only_rest_left() const;
  // A sentence when a rank failed while others run: they wait for it in vain.
  std::string failed_rank() const { return failed_rank_; }
  // A sentence when a limit that no group enforces is overstepped, and the reason to end it for.
  std::optional<std::pair<Cause, std::string>> over_limit() const;

  void terminate() { guarded_->send_all(SIGTERM); }
  void kill();
  // After turn() said so: what is known of its end, its groups removed.
  AttemptFacts finish();
  int64_t lost_bytes() const;

 private:
  void note_end(const GuardianWord& word);
  std::string no_start_text(const GuardianWord& word) const;

  Plan plan_;
  std::vector<RankStream> streams_;
  std::unique_ptr<Guarded> guarded_;
  AttemptFacts facts_;
  std::string failed_rank_;
  int64_t machine_kills_before_ = 0;
  int kills_ = 0, running_ = 0;
  bool gone_ = false;
};

std::string output_path(const std::string& run_directory, int64_t rank, const char* stream);  // stream: "stderr"
int free_port();  // of this machine's loopback, at this moment

}  // namespace sinew::jobs
