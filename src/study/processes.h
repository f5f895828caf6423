// The processes that work on one study: who is here, and whose turn it is to decide.
//
// Each holds a lock of its own below DIR/.sinew/processes for as long as it lives, and the study's lock (DIR/.lock) for
// the moment in which it reads what the others recorded, decides, and records. The kernel takes both from a process
// that dies, however it dies: nobody waits for a dead one, and a trial that it left is gone on with by another. On
// several machines the directory must be on a file system that locks for all of them (NFS does).
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/disk.h"
#include "checkpoint/checkpoint.h"
#include "rundir/rundir.h"

namespace sinew::study {

class StudyProcess {
 public:
  static constexpr double kTurnSeconds = 60;  // a decision takes one at most: who takes longer is stopped, or stuck
  // Is here from now on. Throws Error when somebody else's turn does not end.
  StudyProcess(Disk& disk, std::string directory, Clock& clock);
  ~StudyProcess();
  StudyProcess(const StudyProcess&) = delete;
  StudyProcess& operator=(const StudyProcess&) = delete;

  const std::string& name() const { return name_; }
  // Until it is destroyed nobody else decides. None: it is another's turn.
  std::optional<rundir::RunLock> turn() const;
  // Waits for it, and throws Error where that takes too long.
  rundir::RunLock next_turn() const;
  // Whether the process of this name is gone, and with it whatever held the trial's run directory. What was found out
  // of a process is believed for a second.
  bool abandoned(const std::string& process, const std::string& run_directory);

 private:
  struct Seen {
    double at = 0;
    bool alive = false;
  };
  void forget_the_dead() const;

  Disk& disk_;
  std::string directory_;
  Clock& clock_;
  std::string name_;
  std::optional<rundir::RunLock> here_;
  std::map<std::string, Seen> seen_;
};

}  // namespace sinew::study
