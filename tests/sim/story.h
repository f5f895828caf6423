// One seed, one story: a run of one to eight workers under its supervisor, and what happens to them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "supervise/chaos_plan.h"
#include "supervise/supervision.h"
#include "worker.h"

namespace sinew::sim {

// What happens besides the plan of `sinew chaos`, which has no hand on cables and no machine to lose.
struct Trouble {
  enum class Kind { cut_links, cut_coordinator, reset_link, all_workers_die, machine_dies, request };
  double at = 0;
  Kind kind = Kind::request;
};

class Story {
 public:
  explicit Story(uint64_t seed);
  void play();
  // Why the story is wrong, if it is.
  const std::optional<std::string>& complaint() const { return scene_.judge.complaint(); }
  const std::vector<std::string>& log() const { return scene_.world.log(); }
  Judge::Tally tally() const { return scene_.judge.tally(); }

 private:
  struct Lost {
    int64_t pid;
    std::string why;
  };

  // -- story.cpp: what happens
  void happens(const supervise::ChaosEvent& event);
  void happens(const Trouble& trouble);
  void cut_links();
  void reset_link();
  void machine_dies();
  void request();
  std::vector<Worker*> living() const;
  Worker* anyone();

  // -- supervisor.cpp: who starts and ends processes
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
  std::vector<std::unique_ptr<Process>> supervisors_;  // the last one lives
  supervise::Supervision state_;
  std::vector<Lost> lost_;
  double polled_ = 0;
  bool polling_ = false;
  std::optional<cluster::View> last_view_;  // the file that coordinators of one machine hand on
  int64_t pids_ = 100, coordinators_ = 0, started_ = 0, wanted_ = 0;
};

}  // namespace sinew::sim
