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

namespace sinew::cluster {

struct CoordinatorOptions {
  ClusterOptions cluster;
  std::string secret;             // of the run; every call except /healthz carries it or a join token made with it
  bool tls = false;               // HTTPS; a client trusts only the key that the secret gives
  std::set<std::string> revoked;  // ids of the join tokens that were revoked
  std::string run_directory, job;
  std::string listen = "127.0.0.1";
  uint16_t port = 0;
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
  // The run's exit code, once the leader reported it and every member has received it or is silent.
  std::optional<int64_t> over() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// ---- the coordinator of a run directory ----------------------------------------------------------------------------

struct RunCoordinatorOptions {
  std::string run_directory, job;
  int64_t workers = 1;  // the wanted number of workers
  int64_t minimum = 1;  // the number of members needed to begin
  std::string listen = "127.0.0.1";
  uint16_t port = 0;  // 0: any free port
  bool tls = false;
  std::function<void(const std::string& line)> log = nullptr;  // its actions and decisions, as sentences
};

// Returns why this member may have been left behind by the group that trains in this run directory, or "" if it is one
// of those that computed last: by view.json, which each coordinator writes before a member receives a view, and which
// each attempt removes before it begins. In a directory in which no coordinator ever ran, a worker that joined by a URL
// is alone.
std::string why_not_last(const std::string& run_directory, MemberId me);

// Runs a coordinator for a run directory until the run is over or `stop` brings a request. Returns the run's exit code,
// or 128 + the number of the signal. Reads the coordinator.json and view.json that a predecessor left, uses the
// predecessor's secret, and writes both files. A damaged coordinator.json is moved aside, and the secret is new. Throws
// Error when it cannot begin.
int run_coordinator(const RunCoordinatorOptions& options, SignalSource& stop, Clock& clock);

}  // namespace sinew::cluster
