// Represents one leader of a study: a session that starts trials. Several processes may lead one study at the same
// time.
//
// While it lives, each leader holds its own lock below DIR/.sinew/processes. It holds the study's lock (DIR/.lock) only
// while it reads what others recorded, decides, and records. When a process dies, the kernel releases both locks. So
// nothing waits for a dead leader, and another leader takes over its trials. If the leaders run on several machines,
// the directory must be on a file system whose locks hold across machines, such as NFS.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/disk.h"
#include "rundir/rundir.h"

namespace sinew::study {

class StudyLeader {
 public:
  // A leader needs the study's lock for an instant only. A leader that holds it this long is suspended or hangs.
  static constexpr double kLockSeconds = 60;

  // Makes this leader visible to the others. Throws Error if another leader does not release the study's lock.
  StudyLeader(Disk& disk, std::string directory, Clock& clock);
  ~StudyLeader();
  StudyLeader(const StudyLeader&) = delete;
  StudyLeader& operator=(const StudyLeader&) = delete;

  const std::string& name() const { return name_; }  // unique: no other leader ever has this name
  // Takes the study's lock. Returns nullopt if another leader holds it.
  std::optional<rundir::RunLock> try_lock() const;
  // Waits for the study's lock. Throws Error after kLockSeconds.
  rundir::RunLock lock() const;
  // Returns whether the leader of this name has died and none of its processes locks the trial's run directory any
  // more. The information about the leader may be a second old.
  bool abandoned(const std::string& leader, const std::string& run_directory);

 private:
  struct Seen {
    double at = 0;
    bool alive = false;
  };
  void remove_dead_leaders() const;

  Disk& disk_;
  std::string directory_;
  Clock& clock_;
  std::string name_;
  std::optional<rundir::RunLock> alive_;
  std::map<std::string, Seen> seen_;
};

}  // namespace sinew::study
