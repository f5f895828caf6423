// Declares the coordinator that serves its calls over HTTP (docs/formats/coordinator.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "base/signals.h"
#include "cluster/cluster_state.h"
#include "cluster/control_request.h"
#include "cluster/election.h"

namespace sinew::cluster {

struct CoordinatorOptions {
  ClusterOptions cluster;
  // the run's secret; every call except /healthz carries it or a join token made with it
  std::string secret;
  bool tls = false;               // HTTPS; a client trusts only the key that the secret gives
  std::set<std::string> revoked;  // ids of the join tokens that were revoked
  std::string run_directory, job;
  int64_t most_workers = kMostWorkers;  // a request for more is refused
  std::string listen = "127.0.0.1";
  uint16_t port = 0;
  int64_t term = 0;  // grows with each coordinator of the run; see election.h
  // If it is above 0, the coordinator decides and answers members only if it was confirmed within this time
  // (confirm()). So a coordinator that did not run for a while, or cannot read the run directory, does nothing before
  // it has looked whether another one has taken over.
  double confirm_seconds = 0;
  Generation at_least;  // generations are above this one (a new coordinator must not repeat those of a dead one)
  MemberId first_id;    // ids are above this one
  // The newest view that an earlier coordinator of this run made, if it is known. Exactly the members that compute by
  // this view have the state. If it is not known, the coordinator takes the newest view that a member reports. That can
  // be wrong: the group may have fenced this member, and the members that have the state may have died together with
  // the earlier coordinator.
  std::optional<View> last_view;
  std::function<void(const View& view)> on_view = nullptr;     // every new view, before a member receives it
  std::function<void(const std::string& line)> log = nullptr;  // every decision as a sentence
};

// Serves HTTP until it is destroyed. Routes: POST /v2/join, /v2/heartbeat, /v2/lost, /v2/scale, /v2/control,
// /v2/revoke; GET /v2/updates (long poll), /v2/status, /healthz. If this coordinator replaces a dead one, at_least and
// first_id must be above all numbers that the earlier coordinators can have given (a million for each is enough). If
// one of them is set, the coordinator listens to the members of its predecessor before it decides.
class Coordinator {
 public:
  Coordinator(const CoordinatorOptions& options, Clock& clock);
  ~Coordinator();
  std::string url() const;
  void tick();  // makes the decisions that the passing of time requires; call it about every 50 ms
  // Tells the coordinator that the run directory still named it as the newest one at `seconds`, a time of the clock.
  void confirm(double seconds);
  // Tells the coordinator that one of this newer term has taken over. From now on, it decides nothing and refuses all
  // calls.
  void supersede(int64_t term);
  // Returns the newer term, once this coordinator was superseded or heard of such a term from a member.
  std::optional<int64_t> superseded_by() const;
  // Returns the run's exit code, once the leader reported it and every member has received it or is silent.
  std::optional<int64_t> over() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// ---- the coordinator of a run directory ----------------------------------------------------------------------------

// A coordinator looks at coordinator.json every kLookAtFileSeconds, and decides nothing if no look has succeeded for
// kConfirmSeconds: each found no file that can be understood. A lease that it granted before lasts for another second.
// If a successor does not know that its predecessor has ended, it first listens to the members for
// kCautiousSettleSeconds. That is longer than both times together, and long enough for a member that still waits for an
// answer of the predecessor. So when the successor makes its first view and grants its first lease, the predecessor no
// longer decides, and its leases have ended. A coordinator whose looks have failed for kBlindSeconds ends: a supervisor
// then starts another one, which may succeed, and an elected one gives back the lock of the directory.
inline constexpr double kLookAtFileSeconds = 0.25, kConfirmSeconds = 1, kCautiousSettleSeconds = 3, kBlindSeconds = 5;

struct RunCoordinatorOptions {
  std::string run_directory, job;
  int64_t workers = 1;          // the wanted number of workers
  int64_t minimum = 1;          // the number of members needed to begin
  int64_t most = kMostWorkers;  // the most workers that a request may ask for
  std::string listen = "127.0.0.1";
  uint16_t port = 0;  // 0: any free port
  bool tls = false;
  // true: a member was elected, and leads as long as it holds the lock of the run directory. If it can, it listens at
  // the address of its predecessor, because workers that joined by a URL know no other address.
  bool elected = false;
  bool keep_address = true;  // false: it cannot listen at a port of its choice
  std::string advertise;     // host name in its url; empty: the address on which it listens
  std::function<void(const std::string& line)> log = nullptr;  // its actions and decisions, as sentences
};

// Returns why the group that trains in this run directory may have continued without this member, or "" if this member
// is one of those that computed last. It finds out from view.json, which each coordinator writes before a member
// receives a view. If no coordinator ever ran in the directory, the member joined by a URL and is alone in it.
std::string why_not_last(const std::string& run_directory, MemberId me);

// Reads coordinator.json and view.json. Throws Error if a later version wrote one of them.
RunRecord read_run_record(const std::string& run_directory);

// Runs a coordinator for a run directory until the run is over or `stop` brings a request. Returns the run's exit code,
// or 128 + the number of the signal. Returns kRejoin if another coordinator took over, as coordinator.json or a member
// says: then this one steps down, and the log says so. Holds the lock of the directory, unless the run's supervisor or
// the caller holds it, so that no member is elected while this coordinator lives. Reads the coordinator.json and
// view.json that a predecessor left, uses the predecessor's secret, and writes both files. A damaged coordinator.json
// is moved aside, and the secret is new. Throws Error when it cannot begin, and COORDINATOR_LEAD_UNKNOWN when it could
// not find out for kBlindSeconds whether it still leads.
int run_coordinator(const RunCoordinatorOptions& options, SignalSource& stop, Clock& clock);

}  // namespace sinew::cluster
