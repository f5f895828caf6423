// Part of loop.h: Members is the group of workers that train one run, as one of these workers sees it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/going_back.h"
#include "checkpoint/checkpoint.h"
#include "loop/state.h"

namespace sinew::loop {

// Only the step thread makes these calls, unless a comment says otherwise. Each call may throw an error that ends this
// worker's membership; the code that implements the group defines these errors.
class Members {
 public:
  virtual ~Members() = default;
  // Returns whether this member is the leader, which writes the run's files and decides what enters the control log.
  // The leader changes only when it dies.
  virtual bool is_leader() const = 0;
  virtual bool has_peers() const = 0;              // whether another member computes too
  virtual int64_t computing() const { return 1; }  // members that compute, this one included
  virtual bool is_alone() const = 0;               // whether no other member computes or is about to compute
  virtual bool may_write() const = 0;              // any thread; true only while no other member can be the leader
  // Returns whether this member works in the run's directory. One that joined by a URL has a directory of its own.
  virtual bool has_run_directory() const { return true; }
  // Returns the state to begin from, or nullopt if all members begin from the newest checkpoint or from step 0. Blocks
  // for a bounded time.
  virtual std::optional<checkpoint::Loaded> take_state() = 0;
  // Starts the collectives from this member's state, which is at `step` and has the digest `origin`.
  virtual void begin(Step step, Digest origin) = 0;
  // Called at each step boundary. `take` makes one copy of the state, if a joiner waits for one.
  virtual void boundary(const State& state, const std::function<checkpoint::OwnedSnapshot()>& take) = 0;
  // Returns users' requests, with their numbers, except those that the state's control log had at the last boundary.
  // Only the leader calls it.
  virtual std::vector<ControlEntry> requests() = 0;
  // Publishes the leader's status for users. Only the leader calls it.
  virtual void report(std::optional<Step> durable, const std::string& facts_json) = 0;
  // Announces that this worker wants to leave. Its work moves to the other members, or to joiners once they compute.
  virtual void leave() = 0;
  // Ends the group, because its work since the newest checkpoint cannot be trusted. Every member then begins again from
  // that checkpoint. Throws the error that ends this worker's membership.
  [[noreturn]] virtual void dissolve(const std::string& why) = 0;
  // Returns how often the run went back to a checkpoint before this group began. All members have the same answer.
  virtual GoingBack going_back() const = 0;
  virtual void check_membership() const = 0;  // throws if the others have continued without this worker
  // Returns nullopt while a coordinator leads the run, and if one has fenced this worker. Otherwise returns "" if this
  // worker is one of the last members that computed, or why it is perhaps not one of them: then it must not write.
  virtual std::optional<std::string> unled(const std::string& run_directory) const = 0;
  // Called by the leader when everything is written: ends the run for all members.
  virtual void finished(int exit_code) = 0;
  // Called at the end of training by a member that is not the leader. Returns the exit code that the leader announced,
  // or nullopt if the leader died and this member is now the leader. Blocks as long as the leader lives.
  virtual std::optional<int> wait_for_end() = 0;
};

}  // namespace sinew::loop
