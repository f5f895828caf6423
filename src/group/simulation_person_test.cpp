// Implements Person of simulation.h, a member of the simulated group. It does what distribute/ does, without tensors.
#include <gtest/gtest.h>

#include "group/simulation.h"

namespace sinew::group::simulation {
namespace {

void pause(RandomStream& random) {
  const uint64_t kind = random.below(20);
  if (kind == 0) std::this_thread::sleep_for(std::chrono::microseconds(random.below(400)));
  if (kind < 6) std::this_thread::yield();
}

}  // namespace

Person::Person(Town& town, MemberId id_given, uint64_t seed, int lanes)
    : id(id_given), town_(town), random_(random_key({seed, static_cast<uint64_t>(id.value), 3})), lanes_(lanes) {
  link::Events events;
  events.on_frame = [this](MemberId from, link::Frame frame) { group_->on_frame(from, std::move(frame)); };
  events.on_lost = [](MemberId, const std::string&) {};
  links_ = town.world_.join(std::move(events));
  address_ = links_->address();
  GroupOptions options;
  options.merge = merge;
  options.patience_seconds = 60;
  options.piece_floats = 2048;
  options.on_wrong = [this](MemberId wrong, const std::string& why) { town_.hear_of_wrong(wrong, why); };
  group_ = std::make_unique<Group>(id, *links_, options, system_clock());
  links_->set_identity(id);
}

Person::~Person() {
  end("the test is over");
  close();
}

void Person::close() {
  if (views_.joinable()) views_.join();
  if (life_.joinable()) life_.join();
  links_.reset();
}

void Person::adopt_from_now_on() {
  views_ = std::thread([this] { follow_views(); });
  life_ = std::thread([this] { live(); });
}

void Person::end(const std::string& why) {
  asked_to_end = ended_ = true;
  group_->fence(why);
  town_.changed_.notify_all();
}

std::string Person::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

int64_t Person::delivered(int64_t from_collective) const {
  const std::lock_guard lock(mutex_);
  int64_t sum = 0;
  for (const auto& [collective, count] : delivered_) sum += collective >= from_collective ? count : 0;
  return sum;
}

std::map<int64_t, std::string> Person::control_messages() const {
  const std::lock_guard lock(mutex_);
  return control_messages_;
}

std::optional<int64_t> Person::last_collective() const {
  const std::lock_guard lock(mutex_);
  if (delivered_.empty()) return std::nullopt;
  return delivered_.rbegin()->first;
}

// Receives views at random times, and may miss some of them.
void Person::follow_views() {
  RandomStream random(random_key({town_.script_.seed, static_cast<uint64_t>(id.value), 4}));
  Generation known;
  while (!town_.stopping_ && !over_ && !ended_) {
    cluster::View view;
    {
      std::unique_lock lock(town_.mutex_);
      town_.changed_.wait_for(lock, std::chrono::milliseconds(5), [&] { return town_.view_.generation > known; });
      if (town_.view_.generation <= known) continue;
    }
    if (town_.script_.slow_views && random.below(2) == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(random.below(2000)));
    {
      const std::lock_guard lock(town_.mutex_);
      view = town_.view_;
    }
    known = view.generation;
    group_->adopt(view);
  }
}

void Person::live() {
  try {
    if (!start()) return;
    collectives();
    while (!town_.stopping_ && !ended_) {  // other members may still need its results
      serve_joiners();
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    return;
  } catch (const Fenced& ended) {
    const std::lock_guard lock(mutex_);
    why_ = ended.what();
  } catch (const Error& error) {
    const std::lock_guard lock(mutex_);
    why_ = std::string("Error: ") + error.what();
  }
  over_ = true;
}

// Begins with the first view. A joiner begins with its donor's snapshot.
bool Person::start() {
  while (!town_.stopping_) {
    const cluster::View view = group_->view();
    const cluster::ViewMember* view_member = view.find(id);
    if (asked_to_end) throw Fenced("asked to end");
    if (view_member != nullptr && !view_member->joining) {
      state_ = town_.states_.front();
      group_->start_at(0, {0, state_});
      return true;
    }
    if (view_member != nullptr) {
      const std::lock_guard lock(town_.mutex_);
      if (const auto& snapshot = town_.asked_.at(id)) {
        state_ = snapshot->state;
        reached = snapshot->collective;
        group_->start_at(snapshot->collective, {snapshot->collective, state_}, snapshot->history);
        return true;
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return false;
}

void Person::serve_joiners() {
  const cluster::View view = group_->view();
  const std::lock_guard lock(town_.mutex_);
  for (auto& [joiner, snapshot] : town_.asked_) {
    const cluster::ViewMember* view_member = view.find(joiner);
    if (snapshot || view_member == nullptr || !view_member->joining || view_member->donor != id) continue;
    snapshot = Snapshot{group_->collective(), state_, group_->history()};
  }
}

// Runs the collectives. A joiner asks to compute at a random time after it has replayed all results.
void Person::collectives() {
  uint64_t replays = random_.below(5);
  if (random_.below(3) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(random_.below(20)));
  while (reached < town_.job_.collectives() && !town_.stopping_) {
    serve_joiners();
    const int64_t collective = group_->collective();
    const CollectiveShape& shape = town_.job_.shape(collective);
    const cluster::View view = group_->view();
    const cluster::ViewMember* view_member = view.find(id);
    const bool computes = view_member != nullptr && !view_member->joining;
    if (!computes && !group_->ahead() && replays-- == 0) caught_up = true;
    group_->begin(shape.shards, shape.lengths,
                  "collective " + std::to_string(collective) + " by " + std::to_string(id.value), std::nullopt,
                  audit_of(town_.script_.seed, Step(collective), shape.shards, town_.script_.audit));
    std::vector<std::jthread> lanes;  // their destructors join them, also when an exception is thrown
    for (int lane_index = 1; lane_index < lanes_; ++lane_index) {
      lanes.emplace_back([this, collective, random = RandomStream(RandomKey{random_.bits64()})] {
        lane(collective, state_, random, false);
      });
    }
    lane(collective, state_, RandomStream(RandomKey{random_.bits64()}), true);
    lanes.clear();
    auto rows = blank(shape.lengths);
    std::vector<float*> out;
    for (auto& row : rows) out.push_back(row.data());
    const Reduced reduced = group_->finish(out);
    const auto wrong = difference(town_.expected_[static_cast<size_t>(collective)], rows, reduced);
    EXPECT_EQ(wrong, "") << "seed " << town_.script_.seed << ", collective " << collective << ", member " << id;
    state_ = Job::next_state(state_, rows, reduced);
    {
      const std::lock_guard lock(mutex_);
      control_messages_[collective] = reduced.control_message;
    }
    if (computes) established = true;
    reached = collective + 1;
    pause(random_);
  }
}

std::optional<Leaf> Person::computed(int64_t collective, int64_t shard, uint64_t state) {
  auto leaf = town_.job_.leaf(collective, shard, state);
  if (!lies.exchange(false)) return leaf;
  lied = true;
  if (!leaf) leaf.emplace();
  leaf->small += "a lie,";
  return leaf;
}

// Computes shards. Ignores an exception of another lane, because the step thread's call throws it, too.
void Person::lane(int64_t collective, uint64_t state, RandomStream random, bool steps) {
  try {
    while (const auto shard = group_->next_shard()) {
      auto leaf = computed(collective, shard->shard.value, state);
      pause(random);
      if (shard->audit) {
        group_->deliver_audit(*shard, leaf);
        continue;
      }
      {
        const std::lock_guard lock(mutex_);
        // counted before deliver(): if the member dies in deliver(), others may still have the result
        ++delivered_[collective];
      }
      group_->deliver(*shard, std::move(leaf));
      ++town_.delivered_;
    }
  } catch (const std::exception&) {
    if (steps) throw;
  }
}

}  // namespace sinew::group::simulation
