// One story for one seed: a run of one to eight workers under its supervisor, and the faults that happen to them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "supervise/chaos_plan.h"
#include "supervise/supervision.h"
#include "worker.h"

namespace sinew::sim {

// Faults besides those of `sinew chaos`, which cannot cut cables or lose a machine.
struct Trouble {
  enum class Kind { cut_links, cut_coordinator, reset_link, all_workers_die, machine_dies, request };
  double at = 0;
  Kind kind = Kind::request;
};

class Story {
 public:
  explicit Story(uint64_t seed);
  void play();
  // What is wrong with the story; empty: nothing.
  const std::optional<std::string>& complaint() const { return scene_.judge.complaint(); }
  const std::vector<std::string>& log() const { return scene_.world.log(); }
  Judge::Tally tally() const { return scene_.judge.tally(); }

 private:
  struct Lost {
    int64_t pid;
    std::string why;
  };

  // -- story.cpp: the faults
  void happens(const supervise::ChaosEvent& event);
  void happens(const Trouble& trouble);
  void cut_links();
  void reset_link();
  void machine_dies();
  void request();
  void check_the_end();
  std::vector<Worker*> living() const;
  Worker* anyone();

  // -- supervisor.cpp: start and end of processes
  void begin_supervision(int64_t wanted);
  void supervise();
  void reap();
  void talk();
  void post(const std::string& path, const std::string& body, Answer answer);
  void act(const supervise::Action& action);
  void start_coordinator();
  void end_coordinator(ProcessEnd end, std::optional<int64_t> finished);
  void send(int64_t pid, int signal);

  const uint64_t seed_;
  Scene scene_;
  int64_t begins_with_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Process>> supervisors_;  // the last one is alive
  supervise::Supervision state_;
  std::vector<Lost> lost_;
  double polled_ = 0;
  bool polling_ = false;
  std::optional<cluster::View> last_view_;  // as view.json, from coordinator to coordinator
  int64_t pids_ = 100, coordinators_ = 0, started_ = 0, wanted_ = 0;
};

}  // namespace sinew::sim
