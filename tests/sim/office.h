// The coordinator as a simulated process. It serves the real CoordinatorState over simulated calls, as
// cluster::Coordinator serves it over HTTP.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "cluster/coordinator_state.h"
#include "http/http.h"
#include "world.h"

namespace sinew::sim {

using Answer = std::function<void(std::optional<http::Response>)>;  // gets nullopt if the call failed

class Office {
 public:
  Office(World& world, int64_t pid, const cluster::CoordinatorOptions& options);

  const int64_t pid;
  const Process process;
  void handle(const std::string& method, const std::string& target, const std::string& body, Answer answer);
  std::optional<int64_t> over() const { return coordinator_.over(world_.now()); }
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
  cluster::CoordinatorState coordinator_;
  std::list<Waiting> waiting_;
};

// Delivers calls to the current coordinator.
class Post {
 public:
  explicit Post(World& world) : world_(world) {}

  std::shared_ptr<Office> office;  // null while no coordinator listens
  // Blocks all messages between this process and the coordinator.
  void cut(int64_t pid, double seconds);
  void call(int64_t pid, const Process& from, const std::string& method, const std::string& target,
            const std::string& body, double timeout_seconds, Answer answer);

 private:
  double latency();

  World& world_;
  std::multiset<int64_t> cuts_;
};

}  // namespace sinew::sim
