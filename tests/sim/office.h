// The coordinator as a simulated process. It serves the real CoordinatorState over simulated calls, as
// cluster::Coordinator serves it over HTTP.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "cluster/coordinator_state.h"
#include "http/http.h"
#include "world.h"

namespace sinew::sim {

using Answer = std::function<void(std::optional<http::Response>)>;  // gets nullopt if the call failed

// What the run directory says about the run's coordinators: coordinator.json, view.json and the lock.
struct RunFiles {
  std::optional<cluster::View> last_view;
  int64_t coordinators = 0;          // how many have begun; the newest has the term coordinators - 1
  std::optional<int64_t> exit_code;  // the run's exit code, once it has ended
  const Process* lock_holder = nullptr;
  double lock_free_at = 0;  // a file system may keep the lock of a dead machine for a while
  bool lock_is_free(double now) const {
    return (lock_holder == nullptr || !lock_holder->alive()) && now >= lock_free_at;
  }
};

class Office {
 public:
  // `files` tells whether another coordinator has taken over.
  Office(World& world, int64_t pid, const cluster::CoordinatorOptions& options, const RunFiles& files);

  const int64_t pid;
  const Process process;
  void handle(const std::string& method, const std::string& target, const std::string& body, Answer answer);
  std::optional<int64_t> over() const { return coordinator_.over(world_.now()); }
  bool superseded() const { return coordinator_.superseded_by().has_value(); }
  void die();  // makes the waiting calls fail

 private:
  struct Waiting {
    cluster::UpdatesPoll poll;
    Answer answer;
    double until = 0;
  };
  cluster::Moment moment() const { return {world_.now(), world_.wall_seconds()}; }
  cluster::Reply reply(const std::string& method, const std::string& path, const std::string& body);
  void tick();
  void settle();

  World& world_;
  const RunFiles& files_;
  const int64_t term_;
  cluster::CoordinatorState coordinator_;
  double next_look_ = 0;
  std::list<Waiting> waiting_;
};

// Delivers calls to the coordinator. A process that calls again uses its old connection, until a call fails. Then it
// looks where the current coordinator is.
class Post {
 public:
  explicit Post(World& world) : world_(world) {}

  std::shared_ptr<Office> office;  // the one that coordinator.json names; null while none listens
  // Blocks all messages between this process and the coordinator.
  void cut(int64_t pid, double seconds);
  void call(int64_t pid, const Process& from, const std::string& method, const std::string& target,
            const std::string& body, double timeout_seconds, Answer answer);
  // Calls this coordinator, whatever coordinator.json says.
  void call_at(const std::shared_ptr<Office>& there, int64_t pid, const Process& from, const std::string& method,
               const std::string& target, const std::string& body, double timeout_seconds, Answer answer);

 private:
  double latency();

  World& world_;
  std::multiset<int64_t> cuts_;
  std::map<std::pair<int64_t, std::string>, std::shared_ptr<Office>> connections_;  // by process and method
};

}  // namespace sinew::sim
