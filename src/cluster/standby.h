// A member that stands by: it becomes the run's coordinator if the coordinator and its supervisor are gone for good.
//
// One thread of the member's process asks next_election_step() now and then. If the member is to stand, the thread
// tries to take the lock of the run directory. If it gets the lock, it runs run_coordinator() until the run is over,
// until another coordinator takes over, or until the member ends. Everything that the coordinator needs is in the run
// directory: the secret and the term (coordinator.json), the newest view (view.json), the revoked tokens. Users'
// requests come from the members. The key of the run, with which a coordinator certifies members, is a function of the
// secret.
//
// An elected coordinator starts no workers: only a supervisor does. It ends with the process of its member, and then
// the others elect another one.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "cluster/election.h"

namespace sinew::cluster {

struct StandbyOptions {
  std::string run_directory;         // the run directory, shared with the coordinator
  std::string job;                   // the job's name
  std::string listen = "127.0.0.1";  // where other members reach this process
  std::string advertise;             // see RunCoordinatorOptions
  bool keep_address = true;          // see RunCoordinatorOptions
  ElectionOptions election;
  // Gets what the member does as coordinator, as sentences for the user. Called on the thread of the Standby.
  std::function<void(const std::string&)> say = nullptr;
};

// What a Standby asks its member, on the thread of the Standby.
struct StandbyMember {
  std::function<double()> unled_seconds;  // as in Candidate; asked several times a second
  std::function<Candidate()> candidate;   // same_file_seconds is set by the Standby; asked when the member is unled
};

class Standby {
 public:
  Standby(StandbyOptions options, StandbyMember member, Clock& clock);
  ~Standby();  // ends the coordinator, if this process has one
  // Waits, for a bounded time, until the coordinator of this process has told the end of the run to all members.
  // Returns at once if this process has no coordinator.
  void wait_for_end();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sinew::cluster
