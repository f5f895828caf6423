// Implements a member: it passes views, requests and frames from the coordinator and the links to the group.
//
// Threads: those of the client (views, requests), those of the links (frames, losses), the step thread (boundary,
// receive_state), and one that sends snapshots. One mutex guards what they share. No thread holds the mutex while it
// calls code outside group/.
#include <atomic>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <thread>

#include "group/group.h"
#include "group/role.h"
#include "group/state_transfer.h"

namespace sinew::group {
namespace {

constexpr double kStateSeconds = 300;             // how long a joiner waits for its state
constexpr size_t kQueuedBytes = size_t{8} << 20;  // the most bytes of a snapshot that wait in a link's queue

}  // namespace

struct Member::State {
  State(MemberOptions given, Clock& the_clock) : options(std::move(given)), clock(the_clock) {}
  ~State();

  struct Parcel {
    std::shared_ptr<const checkpoint::OwnedSnapshot> snapshot;
    int64_t collective = 0;
    uint64_t history = 0;
    std::vector<MemberId> joiners;
  };
  // The transfer of a snapshot to one joiner.
  struct Delivery {
    std::shared_ptr<const checkpoint::OwnedSnapshot> snapshot;
    StateSender frames;
    MemberId joiner;
  };
  enum class Handed { something, nothing, all };

  void join();
  void on_view(const cluster::View& view);
  void act_on(const cluster::View& view);
  void on_fenced(const std::string& why);
  void on_frame(MemberId from, link::Frame frame);
  void on_lost(MemberId peer, const std::string& why);
  void on_wrong(MemberId peer, const std::string& why);
  void send_parcels();
  Handed hand_to(Delivery& delivery);
  bool still_joins(MemberId joiner);

  MemberOptions options;
  Clock& clock;
  std::unique_ptr<link::Links> links;
  std::unique_ptr<Group> group;
  std::unique_ptr<cluster::Client> client;
  cluster::Client* line = nullptr;  // points to the client, even while the client's destructor runs
  MemberId me;
  Signature certificate{};  // of the key of this member's links

  std::mutex adopting;   // held while a view is adopted, so that views are adopted one at a time
  std::mutex reporting;  // held by the links' threads while they report losses through `line`
  bool may_report = false;
  std::mutex mutex;
  std::condition_variable changed;
  bool ready = false;                   // true once group and client exist
  std::optional<cluster::View> newest;  // the newest view that came; perhaps it is not adopted yet
  std::optional<Role> role;             // set once this member has an id
  std::string out;
  std::optional<int64_t> finished;
  std::vector<cluster::ControlRequest> requests;
  StateReceiver received;
  std::deque<Parcel> parcels;
  bool closing = false;
  std::atomic<bool> leader{false}, joining{false}, state_wanted{false};
  std::thread sender;
};

void Member::State::join() {
  options.link.credentials.certificate = [this](MemberId) { return certificate; };
  links = link::tcp_links(options.link, {[this](MemberId from, link::Frame frame) { on_frame(from, std::move(frame)); },
                                         [this](MemberId peer, const std::string& why) { on_lost(peer, why); }});
  cluster::ClientOptions wanted = options.client;
  wanted.address = links->address();
  wanted.key = options.link.credentials.key.public_key();
  cluster::ClientEvents events;
  events.on_view = [this](const cluster::View& newer) { on_view(newer); };
  events.on_fenced = [this](const std::string& why) { on_fenced(why); };
  events.on_requests = [this](const std::vector<cluster::ControlRequest>& list) {
    const std::lock_guard lock(mutex);
    requests = list;
  };
  events.on_finished = [this](int64_t code) {
    {
      const std::lock_guard lock(mutex);
      finished = code;
    }
    on_fenced("the run is over");
  };
  auto made = std::make_unique<cluster::Client>(wanted, std::move(events), clock);
  me = made->id();
  certificate = made->certificate();
  links->set_identity(me);
  const std::lock_guard one_at_a_time(adopting);
  GroupOptions of_group = options.group;
  of_group.on_wrong = [this](MemberId peer, const std::string& why) { on_wrong(peer, why); };
  of_group.on_lost = [this](MemberId peer, const std::string& why) { on_lost(peer, why); };
  group = std::make_unique<Group>(me, *links, of_group, clock);
  client = std::move(made);
  line = client.get();
  {
    const std::lock_guard lock(reporting);
    may_report = true;
  }
  std::optional<cluster::View> first;
  std::string already_out;
  {
    const std::lock_guard lock(mutex);
    ready = true;
    role.emplace(me);
    first = newest;
    already_out = out;
  }
  if (first) act_on(*first);
  if (!already_out.empty()) group->fence(already_out);
  sender = std::thread([this] { send_parcels(); });
}

void Member::State::on_view(const cluster::View& newer) {
  const std::lock_guard one_at_a_time(adopting);
  {
    const std::lock_guard lock(mutex);
    if (newest && newest->generation >= newer.generation) return;
    newest = newer;
    if (!ready) return;  // join() adopts it
  }
  act_on(newer);
}

// The caller holds `adopting`.
void Member::State::act_on(const cluster::View& newer) {
  group->adopt(newer);
  {
    const std::lock_guard lock(mutex);
    role->take(newer);
    leader = role->is_leader();
    joining = role->joining();
    state_wanted = role->owes_state();
  }
  changed.notify_all();
  line->report([&](cluster::MemberReport& report) { role->report_view(report); });
}

void Member::State::on_fenced(const std::string& why) {
  bool tell_group = false;
  {
    const std::lock_guard lock(mutex);
    if (out.empty()) out = why;
    tell_group = ready;
  }
  if (tell_group) group->fence(why);
  changed.notify_all();
}

void Member::State::on_frame(MemberId from, link::Frame frame) {
  if (frame.kind < kStateBegin) return group->on_frame(from, std::move(frame));
  std::string trouble;
  {
    const std::lock_guard lock(mutex);
    trouble = received.take(frame);
  }
  if (!trouble.empty()) on_fenced("member " + std::to_string(from.value) + " sent " + trouble);
  changed.notify_all();
}

void Member::State::on_lost(MemberId peer, const std::string& why) {
  const std::lock_guard lock(reporting);
  if (may_report) line->report([&](cluster::MemberReport& report) { report.lost.emplace_back(peer, why); });
}

void Member::State::on_wrong(MemberId peer, const std::string& why) {
  const std::lock_guard lock(reporting);
  if (may_report) line->report([&](cluster::MemberReport& report) { report.wrong.emplace_back(peer, why); });
}

bool Member::State::still_joins(MemberId joiner) {
  const std::lock_guard lock(mutex);
  return !closing && role->joins(joiner);
}

Member::State::Handed Member::State::hand_to(Delivery& delivery) {
  if (!still_joins(delivery.joiner)) return Handed::all;
  if (links->queued_bytes(delivery.joiner) > kQueuedBytes) return Handed::nothing;
  auto frame = delivery.frames.next();
  if (!frame) return Handed::all;
  links->send(delivery.joiner, std::move(*frame));
  return Handed::something;
}

// Sends one frame to each joiner in turn, so that a slow joiner does not delay the others.
void Member::State::send_parcels() {
  std::list<Delivery> under_way;
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return closing || !parcels.empty() || !under_way.empty(); });
    if (closing) return;
    const auto begun = std::exchange(parcels, {});
    lock.unlock();
    for (const Parcel& parcel : begun) {
      for (const MemberId joiner : parcel.joiners)
        under_way.push_back(
            {parcel.snapshot, StateSender(*parcel.snapshot, parcel.collective, parcel.history), joiner});
    }
    bool handed = false;
    std::erase_if(under_way, [&](Delivery& delivery) {
      const Handed what = hand_to(delivery);
      handed = handed || what == Handed::something;
      return what == Handed::all;
    });
    if (!handed && !under_way.empty()) clock.sleep_seconds(0.001);
    lock.lock();
  }
}

Member::State::~State() {
  {
    const std::lock_guard lock(mutex);
    closing = true;
  }
  changed.notify_all();
  if (sender.joinable()) sender.join();
  {
    const std::lock_guard lock(reporting);
    may_report = false;
  }
  // Each object is destroyed before the objects that it calls: the client calls the group, and the group calls the
  // links.
  client.reset();
  links.reset();
}

Member::Member(MemberOptions options, Clock& clock, double wait_seconds)
    : state_(std::make_unique<State>(std::move(options), clock)) {
  state_->join();
  std::unique_lock lock(state_->mutex);
  const bool in_view = state_->changed.wait_for(lock, std::chrono::duration<double>(wait_seconds),
                                                [&] { return !state_->out.empty() || state_->role->in_view(); });
  Fenced out("no place in the group within " + std::to_string(static_cast<int>(wait_seconds)) + " s");
  if (!state_->out.empty()) out = Fenced(state_->out);
  out.finished = state_->finished;
  if (!state_->out.empty() || !in_view) throw out;
}

Member::~Member() = default;

Group& Member::group() {
  return *state_->group;
}
void Member::report(const std::function<void(cluster::MemberReport&)>& change) {
  state_->client->report(change);
}
bool Member::is_leader() const {
  return state_->leader;
}
bool Member::joining() const {
  return state_->joining;
}
bool Member::leased() const {
  return state_->leader && state_->client->leased();
}

void Member::check() const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->out.empty()) throw Fenced(state_->out);
}

bool Member::unled() const {
  return state_->client->unled();
}

Membership::Received Member::receive_state() {
  std::unique_lock lock(state_->mutex);
  const bool there = state_->changed.wait_for(lock, std::chrono::duration<double>(kStateSeconds),
                                              [&] { return !state_->out.empty() || state_->received.complete(); });
  if (!state_->out.empty()) throw Fenced(state_->out);
  if (!there) throw Fenced("no state came within " + std::to_string(static_cast<int>(kStateSeconds)) + " s");
  return {state_->received.result(), state_->received.collective(), state_->received.history()};
}

void Member::boundary(const std::function<checkpoint::OwnedSnapshot()>& take) {
  if (!state_->state_wanted || !state_->group->may_give_state()) return;
  state_->group->ask_to_compare();
  State::Parcel parcel{
      std::make_shared<checkpoint::OwnedSnapshot>(take()), state_->group->collective(), state_->group->history(), {}};
  {
    const std::lock_guard lock(state_->mutex);
    parcel.joiners = state_->role->serve();
    state_->state_wanted = false;
    state_->parcels.push_back(std::move(parcel));
  }
  state_->changed.notify_all();
}

void Member::maybe_caught_up() {
  if (!state_->joining) return;
  const bool ready = state_->group->compared() && !state_->group->ahead();
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->role->wants_to_compute(ready)) return;
  }
  state_->client->report([](cluster::MemberReport& report) { report.phase = cluster::Member::Phase::caught_up; });
}

std::vector<cluster::ControlRequest> Member::requests() {
  const std::lock_guard lock(state_->mutex);
  return state_->requests;
}

void Member::taken(int64_t number) {
  {
    const std::lock_guard lock(state_->mutex);
    std::erase_if(state_->requests, [&](const auto& request) { return request.number <= number; });
  }
  state_->client->report(
      [&](cluster::MemberReport& report) { report.taken_requests = std::max(report.taken_requests, number); });
}

std::optional<int64_t> Member::finished() const {
  const std::lock_guard lock(state_->mutex);
  return state_->finished;
}

}  // namespace sinew::group
