// Part of loop.h: implements Members over a group of group/.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "loop/members.h"

namespace sinew::group {
class Membership;
}

namespace sinew::loop {

// Every call may throw group::Fenced. The member, and whatever `speed` uses, must outlive this object.
class GroupMembers : public Members {
 public:
  // `speed` returns how many shards this worker computes per second, or 0 while that is not known.
  GroupMembers(group::Membership& member, std::function<double()> speed, Clock& clock, bool has_run_directory = true);

  bool is_leader() const override;
  bool has_peers() const override;
  int64_t computing() const override;
  bool is_alone() const override;
  bool may_write() const override;
  bool has_run_directory() const override { return has_run_directory_; }
  std::optional<checkpoint::Loaded> take_state() override;
  void begin(Step step, Digest origin) override;
  void boundary(const State& state, const std::function<checkpoint::OwnedSnapshot()>& take) override;
  std::vector<ControlEntry> requests() override;
  void report(std::optional<Step> durable, const std::string& facts_json) override;
  void leave() override;
  [[noreturn]] void dissolve(const std::string& why) override;
  GoingBack going_back() const override;
  void check_membership() const override;
  std::optional<std::string> unled(const std::string& run_directory) const override;
  void finished(int exit_code) override;
  std::optional<int> wait_for_end() override;

  // The exit code of a worker whose membership has ended: the run's exit code if the run is over, kResumable if
  // this worker had announced that it leaves, else kRejoin.
  int exit_code_if_fenced() const;

 private:
  void mark_taken(int64_t number);

  group::Membership& member_;
  std::function<double()> speed_;
  Clock& clock_;
  const bool has_run_directory_;
  int64_t collective_ = 0;
  // the highest number of a request that the last requests() returned (0: none), and of one that counts as taken
  int64_t given_ = 0, taken_ = 0;
  std::optional<uint64_t> history_;
  double reported_at_ = 0;
  bool leaving_ = false;
};

}  // namespace sinew::loop
