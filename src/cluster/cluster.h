// Who is here, and who computes what: members, views, shares of the work.
//
// For group/ (a member's side) and cli/ (coordinator, ps, scale). Decisions are pure functions of (now, state, options)
// that say why; the coordinator is a thin shell around them with soft state only: whatever it knows the members tell it
// again, so its death costs nothing but the next change of the view.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "http/http.h"

namespace sinew::cluster {

// ---- views ---------------------------------------------------------------------------------------------------------

// One member's place in a view. A seat that is joining computes nothing yet: it is sent the roots of all rounds from
// this view's first on, and a snapshot of the state by its donor; then it asks to compute.
struct Seat {
  MemberId id;
  std::string address;  // of its links
  double share = 1;     // of the work, relative; 0: none
  bool joining = false;
  MemberId donor;  // of a seat that is joining
  bool operator==(const Seat&) const = default;
};

// The group as all its members see it. The lead (the first seat that computes) writes the run's files and decides what
// goes into the control log.
struct View {
  Generation generation;
  std::vector<Seat> seats;  // by id, ascending
  // Nobody who had the state of an earlier view is here: all begin alike, from the newest checkpoint or from step 0.
  bool fresh = false;
  std::string why;  // a sentence: what changed and for what reason
  bool operator==(const View&) const = default;

  const Seat* find(MemberId id) const;      // null: not here
  std::vector<MemberId> computing() const;  // ascending
  std::optional<MemberId> lead() const;     // the lowest that computes
};
std::string to_json(const View& view);
std::optional<View> view_of_json(const std::string& json);

// ---- who computes what: pure, the same on every member
// ---------------------------------------------------------------

// The owner of every shard of a round. `held[s]`: who already has the result of shard s, if anybody (of those
// computing; it stays with them). The others go to members in proportion to their shares, in contiguous runs cut at
// aligned subtrees where that costs no balance. Every shard has exactly one owner; a member with share 0 gets none
// unless all have 0.
std::vector<MemberId> plan_shards(const View& view, int64_t shards,
                                  const std::vector<std::optional<MemberId>>& held = {});

// Who finishes the tree for which numbers: [begin, end) of a flat row of n floats, in order, without holes; boundaries
// are multiples of 1024 floats; empty slices are left out.
struct Slice {
  MemberId owner;
  int64_t begin = 0, end = 0;
  bool operator==(const Slice&) const = default;
};
std::vector<Slice> plan_slices(const View& view, int64_t n);

// ---- what the coordinator knows and decides
// --------------------------------------------------------------------------

// What a joiner must share with the group: the numbers it would compute. A difference refuses it by name.
struct Identity {
  std::string job;      // digest of the resolved job, of the data and of what a model file holds
  std::string machine;  // CPU model and library versions, in words
  std::string probe;    // digest of one shard's gradients at step 0
  bool operator==(const Identity&) const = default;
};

// What a member tells with every word (see Word); the coordinator keeps the newest.
struct Member {
  MemberId id;
  std::string address, host;
  int64_t pid = 0;
  Identity identity;
  enum class Phase { waiting, joining, caught_up, computing, leaving, finished };
  Phase phase = Phase::waiting;  // caught_up: a joiner that wants to compute; finished: the run ended here
  Generation view;               // newest it acts by; 0: none
  int64_t step = 0, durable_step = -1;
  double speed = 0;   // shards a second of pure computing, smoothed; 0: not measured yet
  std::string facts;  // a JSON object the lead fills for `sinew ps`: progress and the like; may be empty
  double heard = 0;   // monotonic seconds of the coordinator
  double since = 0;   // when this coordinator first heard it
  std::string lost;   // why it is known to be gone; empty: it is not
  // Who says that its link to this member broke. Of two that report each other only one goes.
  struct Report {
    double at = 0;
    std::string why;
  };
  std::map<MemberId, Report> reports;
};

struct ClusterOptions {
  int64_t minimum = 1;           // computing members needed to begin
  int64_t wanted = 1;            // how many the supervisor was asked to keep
  double silence_seconds = 1.0;  // without a word a member is put out
  double gather_seconds = 3.0;   // how long a first view waits for `wanted` before it begins with `minimum`
  double settle_seconds = 1.2;   // how long a coordinator that began anew listens before it decides
  double share_seconds = 2.0;    // shares change at most so often ...
  double share_change = 0.15;    // ... and only if somebody's part of the work moves by more than this part of itself
  // How long the report of a broken link waits for others' and for a word of the one reported, unless most of those who
  // compute say the same. A pulse and more: who lives has spoken by then.
  double report_seconds = 0.4;
};

struct ClusterState {
  double began = 0;                    // when this coordinator began to listen
  std::map<MemberId, Member> members;  // all that were heard and not forgotten
  std::optional<View> view;            // newest known: its own, or the newest that a member told
  std::optional<int64_t> finished;     // exit code of the run, once the lead said it
  double shares_changed = 0;
  double view_made = -1e9;   // by this coordinator; long ago: another one made it
  double listens_until = 0;  // a coordinator that began anew decides nothing before
  double awake = 0;          // it was itself not running until then: nobody's silence counts from before
  Generation at_least;       // no generation at or below this is given
};

struct Decision {
  std::optional<View> view;                           // to be published
  std::vector<std::pair<MemberId, std::string>> out;  // who is put out, each with its reason
  std::string why;                                    // of the view, or why there is none yet
};

// The next view, if there is to be one. Members that are lost, silent or leaving (leaving: once another computes; its
// share is 0 before that, it stays until the view after) go; waiting ones become joining seats with a donor (one that
// computes, the least burdened, not the lead if there is another); caught-up ones compute; shares follow speed. With
// nobody left that has the state, those who wait begin a fresh view once there are `wanted` of them, or `minimum` after
// gather_seconds. The generation is one more than the highest known.
Decision next_view(double now, const ClusterState& state, const ClusterOptions& options);

// Why this member may not join, or empty. Compared with the members that are here; the first sets the measure.
std::string refusal(const Member& joiner, const ClusterState& state);

// ---- the coordinator over HTTP (docs/formats/coordinator.md)
// ---------------------------------------------------------

// A request of a person for the run: becomes an entry of the control log when the lead takes it.
struct ControlRequest {
  int64_t number = 0;
  std::string kind;  // stop | checkpoint | evaluate | learning_rate | batch_size
  double value = 0;
  std::string reason;
  bool operator==(const ControlRequest&) const = default;
};

struct CoordinatorOptions {
  ClusterOptions cluster;
  std::string secret;  // bearer token of every call but /healthz
  bool tls = false;    // HTTPS; who knows the secret trusts it, nobody else
  std::string run_directory, job;
  std::string listen = "127.0.0.1";
  uint16_t port = 0;
  Generation at_least;  // no generation at or below this is given (a successor's guard)
  MemberId first_id;    // no id below this is given
  // The newest view a predecessor gave, where that is known: who computes by it has the state, and no one else. Without
  // it a successor believes the newest view it is told, and the only one to speak may be a member that the group went
  // on without, while those who have the state died with the predecessor.
  std::optional<View> last_view;
  std::function<void(const View& view)> on_view = nullptr;     // each new one, before any member hears of it
  std::function<void(const std::string& line)> log = nullptr;  // each decision as a sentence
};

// Serves until destroyed. Routes: POST /v1/join, /v1/word, /v1/lost, /v1/scale, /v1/control; GET /v1/news (long poll),
// /v1/status, /healthz. A successor must be given at_least and first_id (any number beyond what its predecessors can
// have given, say a million for each): by them it also knows that there are members to listen to first.
class Coordinator {
 public:
  Coordinator(const CoordinatorOptions& options, Clock& clock);
  ~Coordinator();
  std::string url() const;
  void tick();  // decides on what time alone brings; call about every 50 ms
  // The run's exit code, once the lead said it and every member was told (or is silent).
  std::optional<int64_t> over() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// ---- a member's client ----------------------------------------------------------------------------------------------

// What changes on the member's side and travels with the next word. Owned by the Client; change it through `tell`.
struct Told {
  Member::Phase phase = Member::Phase::waiting;
  std::optional<View> view;  // the one it acts by: rebuilds a coordinator that began anew
  int64_t step = 0, durable_step = -1;
  double speed = 0;
  std::string facts;
  std::vector<std::pair<MemberId, std::string>> lost;  // peers whose links broke, with the reason
  std::optional<int64_t> finished;                     // the lead: the run's exit code
  int64_t taken_requests = 0;                          // the lead: highest number it put into the control log
};

struct ClientEvents {                                  // on the client's own thread, one at a time; must return soon
  std::function<void(const View&)> on_view = nullptr;  // each newer one, once
  std::function<void(const std::string& why)> on_out = nullptr;  // put out: this life is over, begin another
  std::function<void(const std::vector<ControlRequest>&)> on_requests = nullptr;  // all not yet taken; to every member
  std::function<void(int64_t exit_code)> on_finished = nullptr;                   // the lead said the run is over
};

struct ClientOptions {
  std::function<std::string()> url = nullptr;  // asked at every new connection: a successor may listen elsewhere
  std::string secret;
  std::string address, host;
  int64_t pid = 0;
  Identity identity;
  double pulse_seconds = 0.25;   // a word at least so often
  double patience_seconds = 60;  // without a coordinator for so long: on_out
};

// A member's line to the coordinator, on threads of its own: words go out at every change and every pulse, views come
// in by long poll. A coordinator that is gone is tried again (its successor is told everything). Events may come before
// the constructor returned, and may call tell(); none comes once the destructor returned, which says what is left to
// say (bounded).
class Client {
 public:
  // Joins: returns the id given. Throws Error when refused (by name, with what differs) or not reached in time.
  Client(const ClientOptions& options, ClientEvents events, Clock& clock);
  ~Client();
  MemberId id() const;
  void tell(const std::function<void(Told&)>& change);  // any thread; sent at once if it changed anything that matters
  // Did the coordinator confirm within `seconds` that this member is in its newest view? What the world may see
  // (checkpoints published or deleted, lines written) is done only while it did.
  bool leased(double seconds = 1.0) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// One call for ps, scale, control, chaos; over https:// only to a server that knows the secret. Throws Error (what the
// coordinator said, or that it is not reached).
std::string call(const std::string& url, const std::string& secret, const std::string& method, const std::string& path,
                 const std::string& body, double timeout_seconds = 5);

}  // namespace sinew::cluster
