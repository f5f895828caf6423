// Plays the story of one seed: a run of one to eight workers under a supervisor, and the faults that disturb it. If
// nobody leads the run any more, a person resumes it.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "supervise/chaos_plan.h"
#include "supervisor.h"
#include "worker.h"

namespace sinew::sim {

// A fault or request that is not an event of `sinew chaos`, which cannot cut cables or crash a machine.
struct Trouble {
  enum class Kind {
    cut_links,
    cut_coordinator,
    reset_link,
    all_workers_die,
    machine_dies,
    request,
    lose_supervisor,     // it dies with its coordinator and perhaps some workers; the other workers live
    strand_coordinator,  // the supervisor dies; its coordinator is suspended, and continues later
    pause_supervisor,    // both are suspended, and continue later
    lose_lock,           // the same, and meanwhile the file system gives the lock of the run to others
  };
  double at = 0;
  Kind kind = Kind::request;
};

// The faults of a story. without_changes: all but changes of memory and lies. all: all but lies. changes: only changes
// of memory and deaths of workers. lies: only wrong results of workers and deaths of workers. leaders: those of
// without_changes, less often, and losses of the supervisor with its coordinator. two_leaders: the disk is
// slow for all files, leaders are suspended in the middle of their work on it for longer than their lease, and workers
// die.
enum class Faults { without_changes, all, changes, lies, leaders, two_leaders };

class Story {
 public:
  explicit Story(uint64_t seed, Faults faults = Faults::without_changes);
  void play();
  // Returns what went wrong, or nullopt if nothing did.
  const std::optional<std::string>& complaint() const { return scene_.judge.complaint(); }
  const std::vector<std::string>& log() const { return scene_.world.log(); }
  Judge::Tally tally() const { return scene_.judge.tally(); }

 private:
  void happens(const supervise::ChaosEvent& event);
  void happens(const Trouble& trouble);
  double disturb();  // plans all disturbances; returns the time of the last one in seconds from now
  void cut_links();
  void reset_link();
  void machine_dies();
  void kill_coordinator();
  void lose(Trouble::Kind kind);
  void look_as_a_person();
  void request();
  void begin_supervision();
  void check_the_end();
  std::vector<nlohmann::json> lines_of(const char* name);
  Worker* running() const;
  void write_slowly(const std::string& path);
  void judge_lease(const std::string& path);
  void judge_rename(const std::string& from, const std::string& to);
  void judge_write(const std::vector<std::string>& names);
  void perhaps_stop();
  std::vector<Worker*> living() const;
  Worker* anyone();

  const uint64_t seed_;
  const Faults faults_;
  Scene scene_;
  int64_t begins_with_;
  std::optional<uint64_t> calls_until_stop_;  // set if the leader is to be suspended
  RunOfStory run_;
  std::vector<std::unique_ptr<Supervisor>> supervisors_;  // all but the last one are dead
};

}  // namespace sinew::sim
