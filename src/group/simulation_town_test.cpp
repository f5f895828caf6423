// Implements Town of simulation.h: the scripted coordinator of the simulation, and the checks at the end.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "group/simulation.h"

namespace sinew::group::simulation {
namespace {

bool is_undecided(const std::string& why) {
  return why.find("it is not known which of them is right") != std::string::npos;
}

}  // namespace

Town::Town(const Script& script, World world)
    : script_(script),
      job_(script.seed, random_shapes(script.seed, script.collectives)),
      world_(std::move(world)),
      random_(random_key({script.seed, 5})) {
  states_.push_back(script.seed);
  for (int64_t collective = 0; collective < job_.collectives(); ++collective) {
    expected_.push_back(job_.expected(collective, states_.back()));
    states_.push_back(Job::next_state(states_.back(), expected_.back().rows, expected_.back().reduced));
  }
  const auto add = [&](int count, void (Town::*action)()) {
    for (int i = 0; i < count; ++i) actions_.emplace_back([this, action] { (this->*action)(); });
  };
  add(script.kills, &Town::kill_some);
  add(script.joins, &Town::add_joiner);
  add(script.shares, &Town::change_shares);
  add(script.leaves, &Town::let_one_go);
  add(script.lies, &Town::let_one_lie);
  for (size_t i = actions_.size(); i > 1; --i) std::swap(actions_[i - 1], actions_[random_.below(i)]);
  int64_t shards = 0;
  for (int64_t collective = 0; collective < job_.collectives(); ++collective) shards += job_.shape(collective).shards;
  while (moments_.size() < actions_.size()) {
    moments_.push_back(static_cast<int64_t>(random_.below(static_cast<uint64_t>(shards))));
    if (moments_.size() < actions_.size() && random_.below(2) == 0)  // the next action follows soon after this one
      moments_.push_back(moments_.back() + static_cast<int64_t>(random_.below(3)));
  }
  std::sort(moments_.begin(), moments_.end());
  std::reverse(moments_.begin(), moments_.end());
}

void Town::Tally::operator+=(const Tally& other) {
  killed += other.killed;
  joined += other.joined;
  admitted += other.admitted;
  gave_up += other.gave_up;
  healed += other.healed;
  recomputed += other.recomputed;
  views += other.views;
  audited += other.audited;
  lied += other.lied;
  named += other.named;
}

Town::~Town() {
  stopping_ = true;
  for (const auto& person : people_) person->end("the test is over");
  people_.clear();
}

void Town::publish(const std::string& why) {
  view_.generation = view_.generation.next();
  view_.why = why;
  changed_.notify_all();
}

void Town::run() {
  for (int64_t i = 0; i < script_.members; ++i) {
    const int lanes = static_cast<int>(1 + random_.below(3));
    people_.push_back(std::make_unique<Person>(*this, MemberId(next_id_++), script_.seed, lanes));
    view_.members.push_back(
        {.id = people_.back()->id, .address = people_.back()->address(), .share = 1, .joining = false, .donor = {}});
  }
  view_.fresh = true;
  publish("all are here");
  for (const auto& person : people_) person->adopt_from_now_on();
  const double began = system_clock().monotonic_seconds();
  while (!all_done()) {
    if (system_clock().monotonic_seconds() - began > 60) {
      ADD_FAILURE() << "seed " << script_.seed << " does not end";
      for (const auto& person : people_) {
        ADD_FAILURE() << "member " << person->id << " reached " << person->reached << " of " << job_.collectives()
                      << " in view " << person->generation() << ' ' << person->why();
      }
      return;
    }
    if (!moments_.empty() && delivered_ >= moments_.back()) {
      moments_.pop_back();
      act();
    }
    if (random_.below(4) == 0) remove_the_dead();
    if (random_.below(4) == 0) seat_those_who_caught_up();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  check();
}

void Town::act() {
  actions_.back()();
  actions_.pop_back();
}

std::vector<Person*> Town::established_computing() {
  std::vector<Person*> found;
  for (const auto& person : people_) {
    const cluster::ViewMember* view_member = view_.find(person->id);
    if (!person->over() && !person->asked_to_end && person->established && !leaving_.contains(person->id) &&
        view_member != nullptr && !view_member->joining) {
      found.push_back(person.get());
    }
  }
  return found;
}

void Town::kill_some() {
  const uint64_t wanted = 1 + random_.below(4) / 3;
  for (uint64_t i = 0; i < wanted; ++i) {
    std::vector<Person*> there;
    for (const auto& person : people_) {
      if (!person->over() && !person->asked_to_end) there.push_back(person.get());
    }
    Person* victim = there[random_.below(3) == 0 ? 0 : random_.below(there.size())];
    const auto established = established_computing();
    const auto others =
        std::count_if(established.begin(), established.end(), [&](Person* one) { return one != victim; });
    if (others == 0) continue;
    if (world_.kill) world_.kill(victim->id);
    victim->end("killed");
    if (!world_.kill) victim->close();
    ++tally_.killed;
  }
}

void Town::add_joiner() {
  const auto donors = established_computing();
  if (donors.empty()) return;
  auto joiner =
      std::make_unique<Person>(*this, MemberId(next_id_++), script_.seed, static_cast<int>(1 + random_.below(3)));
  {
    const std::lock_guard lock(mutex_);
    asked_[joiner->id];
    view_.members.push_back({.id = joiner->id,
                             .address = joiner->address(),
                             .share = 1,
                             .joining = true,
                             .donor = donors[random_.below(donors.size())]->id});
    view_.fresh = false;
    publish("one joins");
  }
  joiner->adopt_from_now_on();
  ++tally_.joined;
  people_.push_back(std::move(joiner));
}

void Town::change_shares() {
  const std::lock_guard lock(mutex_);
  const double shares[] = {0, 0.3, 1, 1, 2.5};
  for (cluster::ViewMember& view_member : view_.members) {
    if (!leaving_.contains(view_member.id)) view_member.share = shares[random_.below(5)];
  }
  view_.fresh = false;
  publish("other shares");
}

void Town::let_one_go() {
  const auto there = established_computing();
  if (there.size() < 2) return;
  const MemberId who = there[random_.below(there.size())]->id;
  const std::lock_guard lock(mutex_);
  leaving_.insert(who);
  for (cluster::ViewMember& view_member : view_.members) {
    if (view_member.id == who) view_member.share = 0;
  }
  view_.fresh = false;
  publish("one will leave");
}

// Makes one member compute a wrong result, unless another one does or did: two wrong members could outvote a right one.
// At least three members must compute, so that a third one can decide.
void Town::let_one_lie() {
  const auto there = established_computing();
  const bool again = std::ranges::any_of(people_, [](const auto& person) { return person->lies || person->lied; });
  if (there.size() < 3 || again) return;
  there[random_.below(there.size())]->lies = true;
}

void Town::hear_of_wrong(MemberId id, const std::string& why) {
  const std::lock_guard lock(mutex_);
  wrong_.insert(id);
  EXPECT_TRUE(why.starts_with("member " + std::to_string(id.value) + " ")) << why;
}

// Removes dead members, leaving members, and joiners whose donor died before it sent the state.
void Town::remove_the_dead() {
  if (dissolve_if_a_lie_ended_it()) return;
  std::set<MemberId> gone, wrong;
  {
    const std::lock_guard lock(mutex_);
    wrong = wrong_;
  }
  const auto stay = established_computing();
  for (const auto& person : people_) {
    const cluster::ViewMember* view_member = view_.find(person->id);
    if (view_member == nullptr) continue;
    if (person->over() || person->asked_to_end || wrong.contains(person->id)) gone.insert(person->id);
    if (leaving_.contains(person->id) && random_.below(8) == 0 && !stay.empty()) gone.insert(person->id);
  }
  std::vector<Person*> orphans;
  for (const auto& person : people_) {
    const cluster::ViewMember* view_member = view_.find(person->id);
    if (view_member == nullptr || !view_member->joining ||
        (view_.find(view_member->donor) != nullptr && !gone.contains(view_member->donor)))
      continue;
    const std::lock_guard lock(mutex_);
    if (!asked_.at(person->id)) orphans.push_back(person.get());
  }
  for (Person* orphan : orphans) gone.insert(orphan->id);
  if (gone.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(view_.members, [&](const cluster::ViewMember& view_member) { return gone.contains(view_member.id); });
    view_.fresh = false;
    publish("some are gone");
  }
  for (const auto& person : people_) {
    const bool may_go = leaving_.contains(person->id) || wrong.contains(person->id);
    if (gone.contains(person->id) && may_go) person->asked_to_end = true;
  }
  for (Person* orphan : orphans) orphan->end("its donor died");
}

void Town::seat_those_who_caught_up() {
  const std::lock_guard lock(mutex_);
  bool changed = false;
  for (const auto& person : people_) {
    for (cluster::ViewMember& view_member : view_.members) {
      if (view_member.id != person->id || !view_member.joining || !person->caught_up || person->over()) continue;
      view_member.joining = false;
      view_member.donor = {};
      changed = true;
      ++tally_.admitted;
    }
  }
  if (!changed) return;
  view_.fresh = false;
  publish("one has caught up");
}

bool Town::all_done() const {
  for (const auto& person : people_) {
    if (!person->over() && !person->asked_to_end && person->reached < job_.collectives()) return false;
  }
  return true;
}

// Returns whether a member ended with an error that calls `liar` wrong.
bool Town::is_called_wrong(const Person& liar) const {
  const std::string name = "Error: member " + std::to_string(liar.id.value) + " (";
  return std::ranges::any_of(people_, [&](const auto& person) {
    const std::string why = person->why();
    return why.starts_with(name) && why.find(" computed a wrong result of ") != std::string::npos;
  });
}

// Returns whether the person ended because of a wrong result that ends the group: the leader computed it, or only two
// members compute, so that no third one can decide.
bool Town::ended_by_lie(const Person& person) const {
  const std::string why = person.why();
  if (!person.over() || !why.starts_with("Error: ")) return false;
  return std::ranges::any_of(
      people_, [&](const auto& other) { return other->lied && (is_undecided(why) || is_called_wrong(*other)); });
}

// In the product, the first member that ends in this way dissolves the group, unless the leader does so.
bool Town::dissolve_if_a_lie_ended_it() {
  if (std::ranges::none_of(people_, [&](const auto& person) { return ended_by_lie(*person); })) return false;
  for (const auto& person : people_) {
    if (person->over()) continue;
    person->asked_to_end = true;
    person->end("the group is dissolved");
  }
  return true;
}

void Town::check() {
  int64_t shards = 0, computed = 0, lost = 0, alive = 0, lied = 0;
  bool group_ended = false, undecided = false;
  for (int64_t collective = 0; collective < job_.collectives(); ++collective) shards += job_.shape(collective).shards;
  std::map<int64_t, std::string> control_messages;
  std::optional<uint64_t> history;
  for (const auto& person : people_) {
    computed += person->delivered(0);
    tally_.healed += person->counts().healed;
    tally_.audited += person->counts().audited;
    if (person->lied) ++lied;
    if (wrong_.contains(person->id) || is_called_wrong(*person)) {
      ++tally_.named;
      EXPECT_TRUE(person->lied) << "seed " << script_.seed << ": member " << person->id << " is blamed and innocent";
    }
    if (person->over() || person->asked_to_end) {
      const auto why = person->why();
      if (ended_by_lie(*person)) {
        group_ended = true;
        undecided = undecided || is_undecided(why);
        continue;
      }
      EXPECT_FALSE(why.starts_with("Error")) << "seed " << script_.seed << ", member " << person->id << ": " << why;
      // It ended by itself, which only a member that never computed may do.
      if (!person->asked_to_end) {
        EXPECT_FALSE(person->established) << "seed " << script_.seed << ", member " << person->id << ": " << why;
        ++tally_.gave_up;
      }
      lost += person->delivered(person->last_collective().value_or(0) - 1);
      continue;
    }
    ++alive;
    for (const auto& [collective, control_message] : person->control_messages()) {
      const auto& agreed = control_messages.emplace(collective, control_message).first->second;
      EXPECT_EQ(control_message, agreed) << "seed " << script_.seed << ", collective " << collective << ", member "
                                         << person->id;
    }
    if (!history) history = person->history();
    EXPECT_EQ(person->history(), *history) << "seed " << script_.seed << ", member " << person->id;
  }
  tally_.recomputed = computed - shards;
  tally_.views = view_.generation.value;
  if (!undecided) tally_.lied += lied;  // if it is undecided, no member can name the wrong one
  // not all work was done; in the product, all members would begin again from a checkpoint
  if (group_ended) return;
  EXPECT_GT(alive, 0) << "seed " << script_.seed;
  EXPECT_GE(computed, shards);
  EXPECT_LE(computed - shards, lost) << "seed " << script_.seed
                                     << ": shards were computed twice while their results lived";
}

}  // namespace sinew::group::simulation
