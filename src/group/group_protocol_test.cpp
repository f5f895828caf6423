// One member against scripted frames: what it sends, what it takes, what ends its life.
#include <gtest/gtest.h>

#include <thread>

#include "group/group.h"
#include "group/group_frames.h"

namespace sinew::group {
namespace {

// Writes down what is sent.
class PaperLinks final : public link::Links {
 public:
  std::string address() const override { return "paper"; }
  void set_identity(MemberId) override {}
  void connect(const std::vector<link::Peer>& peers) override {
    const std::lock_guard lock(mutex_);
    peers_ = peers;
  }
  void send(MemberId to, link::Frame frame) override {
    const std::lock_guard lock(mutex_);
    sent_.emplace_back(to, std::move(frame));
  }
  size_t queued_bytes(MemberId to) const override {
    const std::lock_guard lock(mutex_);
    return to == stuck ? queued_ : 0;
  }

  // What is sent to it from now on stays where it is.
  MemberId stuck;
  void wait_for_it(size_t bytes) {
    const std::lock_guard lock(mutex_);
    queued_ = bytes;
  }

  // What was sent to a member since the last call.
  std::vector<link::Frame> to(MemberId member) {
    const std::lock_guard lock(mutex_);
    std::vector<link::Frame> found;
    for (const auto& [to, frame] : sent_) {
      if (to == member) found.push_back(frame);
    }
    std::erase_if(sent_, [&](const auto& one) { return one.first == member; });
    return found;
  }
  size_t peers() const {
    const std::lock_guard lock(mutex_);
    return peers_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<link::Peer> peers_;
  std::vector<std::pair<MemberId, link::Frame>> sent_;
  size_t queued_ = 0;
};

constexpr MemberId kOne{1}, kTwo{2}, kThree{3};

GroupOptions options() {
  GroupOptions options;
  options.merge = [](std::string_view left, std::string_view right) { return std::string(left) + std::string(right); };
  options.patience_seconds = 60;
  options.early_bytes = 4000;
  options.joiner_bytes = 4000;
  return options;
}

cluster::View view_of(int64_t generation, const std::vector<MemberId>& computing,
                      const std::vector<MemberId>& joining = {}) {
  cluster::View view;
  view.generation = Generation(generation);
  view.fresh = generation == 1;
  for (const MemberId id : computing)
    view.seats.push_back({.id = id, .address = "paper", .share = 1, .joining = false, .donor = {}});
  for (const MemberId id : joining) {
    view.seats.push_back({.id = id, .address = "paper", .share = 1, .joining = true, .donor = computing[0]});
  }
  return view;
}

link::Frame frame(Kind kind, int64_t generation, int64_t round, const link::Bytes& bytes, int64_t part = 0) {
  return {static_cast<uint16_t>(kind), Generation(generation), round, part, std::make_shared<const link::Bytes>(bytes)};
}

link::Frame here(int64_t generation, int64_t round, bool joining = false, std::optional<Origin> origin = std::nullopt) {
  Here here;
  here.round = round;
  here.joining = joining;
  here.origin = origin;
  return frame(Kind::here, generation, round, encode(here));
}

// The end of a round without rows.
link::Frame root(int64_t generation, int64_t round, const std::string& note, uint64_t before, size_t small = 1) {
  SmallRoot root;
  root.shape = Shape(2, {}).digest;
  root.before = before;
  root.root.any = true;
  root.root.small = std::string(small, 's');
  root.root.note = note;
  return frame(Kind::root_small, generation, round, encode(root));
}

std::string why_out(Group& group) {
  try {
    group.next_shard();
    return "not out";
  } catch (const PutOut& ended) {
    return ended.what();
  }
}

// Member 2, computing beside member 1, in round 0 of two shards without rows; it has delivered its own.
struct Beside {
  PaperLinks links;
  Group group;
  explicit Beside(std::vector<MemberId> joining = {}, GroupOptions given = options())
      : group(kTwo, links, std::move(given), system_clock()) {
    group.adopt(view_of(1, {kOne, kTwo}, std::move(joining)));
    group.start_at(0, {0, 77});
    group.on_frame(kOne, here(1, 0, false, Origin{0, 77}));
    begin("two");
    while (group.expects(0, 2) || group.expects(1, 2)) {
      const auto shard = group.next_shard();
      group.deliver(*shard, Leaf{{}, "x", nullptr});
      break;
    }
  }
  void begin(const std::string& note) { group.begin(2, {}, note); }
};

TEST(GroupProtocol, ARootOfAViewThatIsOverIsNotTaken) {
  Beside two;
  two.group.adopt(view_of(2, {kOne, kTwo}));
  two.group.on_frame(kOne, root(1, 0, "old", 0));
  two.group.on_frame(kOne, here(2, 0));
  two.group.on_frame(kOne, root(2, 0, "new", 0));
  EXPECT_EQ(two.group.next_shard(), std::nullopt);
  EXPECT_EQ(two.group.finish({}).note, "new");
  EXPECT_EQ(two.group.history(), history_after(0, "new"));
}

TEST(GroupProtocol, FramesOfAViewNotHeardOfYetAreKeptForIt) {
  Beside two;
  two.group.on_frame(kOne, here(3, 1));
  two.group.on_frame(kOne, root(3, 0, "handed over", 0));
  two.group.on_frame(kOne, root(2, 0, "skipped", 0));
  two.group.adopt(view_of(3, {kOne, kTwo}));
  EXPECT_EQ(two.group.next_shard(), std::nullopt);
  EXPECT_EQ(two.group.finish({}).note, "handed over");
}

TEST(GroupProtocol, WhoHasARootHandsItToWhoLacksItWhileItIsKept) {
  Beside two({kThree});
  uint64_t history = 0;
  for (int64_t round = 0; round < 30; ++round) {
    if (round > 0) two.begin("two");
    two.group.on_frame(kOne, root(1, round, "n", history));
    history = history_after(history, "n");
    while (const auto shard = two.group.next_shard()) two.group.deliver(*shard, std::nullopt);
    two.group.finish({});
  }
  two.group.adopt(view_of(2, {kOne, kTwo}, {kThree}));
  two.links.to(kOne);
  two.links.to(kThree);
  two.group.on_frame(kOne, here(2, 29));
  const auto to_one = two.links.to(kOne);
  ASSERT_EQ(to_one.size(), 1U);
  EXPECT_EQ(to_one[0].kind, static_cast<uint16_t>(Kind::root_small));
  EXPECT_EQ(to_one[0].round, 29);
  EXPECT_EQ(to_one[0].generation, Generation(2));
  two.group.on_frame(kThree, here(2, 20, true));  // older ones are kept while somebody joins
  EXPECT_EQ(two.links.to(kThree).size(), 10U);
  two.group.adopt(view_of(3, {kOne, kTwo}, {kThree}));
  two.group.on_frame(kOne, here(3, 30));
  two.links.to(kThree);
  two.group.on_frame(kThree, here(3, 3, true));
  const auto to_three = two.links.to(kThree);
  ASSERT_EQ(to_three.size(), 1U);
  EXPECT_EQ(to_three[0].kind, static_cast<uint16_t>(Kind::gone));
}

TEST(GroupProtocol, WhoIsTooFarBehindLeaves) {
  Beside two;
  two.group.on_frame(kOne, {static_cast<uint16_t>(Kind::gone), Generation(1), 0, 0, nullptr});
  EXPECT_EQ(why_out(two.group), "member 2 is too far behind: nobody has the root of round 0 any more");
}

TEST(GroupProtocol, AJoinerWhoseDonorFollowedAnotherNoteLeaves) {
  for (const bool right : {true, false}) {
    PaperLinks links;
    Group three(kThree, links, options(), system_clock());
    three.adopt(view_of(4, {kOne, kTwo}, {kThree}));
    three.on_frame(kOne, here(4, 5));
    three.on_frame(kTwo, here(4, 5));
    three.on_frame(kOne, root(4, 5, "n", 99));
    three.start_at(6, {6, 0}, right ? history_after(99, "n") : 98);
    three.begin(2, {}, "");
    three.on_frame(kOne, root(4, 6, "n", history_after(99, "n")));
    if (right) {
      EXPECT_EQ(three.next_shard(), std::nullopt);
    } else {
      EXPECT_EQ(why_out(three), "member 3 followed a round that the group made anew");
    }
  }
}

TEST(GroupProtocol, AJoinerWithAStateThatIsTooOldLeaves) {
  PaperLinks links;
  Group three(kThree, links, options(), system_clock());
  three.adopt(view_of(4, {kOne, kTwo}, {kThree}));
  three.on_frame(kOne, here(4, 5));
  three.on_frame(kTwo, here(4, 4));
  EXPECT_THROW(three.start_at(4, {4, 0}, 1), PutOut);
}

TEST(GroupProtocol, WhatIsKeptForLaterIsBounded) {
  Beside two;
  for (int i = 0; i < 100; ++i) two.group.on_frame(kOne, root(9, i, "n", 0, 100));
  EXPECT_NE(why_out(two.group).find("does not fit"), std::string::npos);
  PaperLinks links;
  Group three(kThree, links, options(), system_clock());
  three.adopt(view_of(4, {kOne}, {kThree}));
  three.on_frame(kOne, here(4, 0));
  for (int i = 0; i < 100; ++i) three.on_frame(kOne, root(4, i, "", 0, 100));
  EXPECT_THROW(three.start_at(0, {}), PutOut);
}

TEST(GroupProtocol, ABadFrameEndsThisLifeWithAReason) {
  const link::Bytes garbage(37, std::byte{0x5A});
  for (const Kind kind : {Kind::here, Kind::root_piece, Kind::root_small}) {
    Beside two;
    two.group.adopt(view_of(2, {kOne, kTwo}));
    two.group.on_frame(kOne, frame(kind, 2, 0, garbage));
    EXPECT_TRUE(why_out(two.group).starts_with("member 1 sent ")) << why_out(two.group);
  }
  for (const uint16_t kind : {1, 2, 3, 4, 5}) {
    Beside two;
    two.group.adopt(view_of(2, {kOne, kTwo}));
    two.group.on_frame(kOne, {kind, Generation(2), 0, 0, nullptr});
    EXPECT_TRUE(why_out(two.group).starts_with("member 1 sent ")) << kind;
  }
}

TEST(GroupProtocol, StrangersAndUnknownKindsAreIgnored) {
  Beside two;
  two.group.on_frame(kThree, root(1, 0, "a stranger's", 0));
  two.group.on_frame(kOne, {30, Generation(1), 0, 0, nullptr});
  two.group.on_frame(kOne, root(1, 0, "right", 0));
  EXPECT_EQ(two.group.next_shard(), std::nullopt);
  EXPECT_EQ(two.group.finish({}).note, "right");
}

TEST(GroupProtocol, DifferentOriginsAreAnErrorThatNamesTheMembers) {
  PaperLinks links;
  Group two(kTwo, links, options(), system_clock());
  two.adopt(view_of(1, {kOne, kTwo}));
  two.on_frame(kOne, here(1, 0, false, Origin{0, 5}));
  try {
    two.start_at(0, {0, 6});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "member 1 and member 2 begin with different states");
    EXPECT_FALSE(error.hint.empty());
  }
}

TEST(GroupProtocol, PatienceEndsWithWhoIsSilent) {
  PaperLinks links;
  auto short_patience = options();
  short_patience.patience_seconds = 0.05;
  std::vector<MemberId> lost;
  short_patience.on_lost = [&](MemberId member, const std::string&) { lost.push_back(member); };
  Group two(kTwo, links, short_patience, system_clock());
  two.adopt(view_of(1, {kOne, kTwo}));
  two.start_at(0, {0, 6});
  two.begin(2, {}, "");
  const std::string why = why_out(two);
  EXPECT_NE(why.find("where these members are: 1"), std::string::npos) << why;
  EXPECT_EQ(lost, std::vector{kOne});
}

// Who has sent its part waits like the others.
TEST(GroupProtocol, PatienceNamesWhoHasNotSentItsPart) {
  PaperLinks links;
  auto short_patience = options();
  short_patience.patience_seconds = 0.05;
  std::vector<MemberId> lost;
  short_patience.on_lost = [&](MemberId member, const std::string&) { lost.push_back(member); };
  Group one(kOne, links, short_patience, system_clock());
  one.adopt(view_of(1, {kOne, kTwo, kThree}));
  one.start_at(0, {0, 6});
  for (const MemberId other : {kTwo, kThree}) one.on_frame(other, here(1, 0, false, Origin{0, 6}));
  one.begin(3, {}, "");
  one.deliver(*one.next_shard(), std::nullopt);
  one.on_frame(kTwo, frame(Kind::small, 1, 0, encode(SmallSums{Shape(3, {}).digest, {}, {"x"}})));
  EXPECT_THROW(one.next_shard(), PutOut);
  EXPECT_EQ(lost, std::vector{kThree});
}

// A round in which members exchange nothing but the word that they get on: an evaluation after short steps.
TEST(GroupProtocol, ALongRoundIsWaitedForWhileAnotherGetsOn) {
  constexpr double kPatience = 1;
  link::MemoryNetwork network;
  struct Side {
    std::unique_ptr<link::Links> links;
    std::unique_ptr<Group> group;
  };
  Side sides[2];
  cluster::View view = view_of(1, {kOne, kTwo});
  for (int64_t i = 0; i < 2; ++i) {
    Side& side = sides[i];
    side.links = network.join({[&side](MemberId from, link::Frame one) { side.group->on_frame(from, std::move(one)); },
                               [](MemberId, const std::string&) {}});
    view.seats[static_cast<size_t>(i)].address = side.links->address();
    auto given = options();
    given.patience_seconds = kPatience;
    side.group = std::make_unique<Group>(MemberId(i + 1), *side.links, given, system_clock());
    side.links->set_identity(MemberId(i + 1));
  }
  const auto live = [&](Group& group, double seconds_a_shard) {
    group.adopt(view);
    group.start_at(0, {0, 6});
    for (const int64_t shards : {2, 2, 2, 200}) {
      group.begin(shards, {}, "");
      while (const auto shard = group.next_shard()) {
        if (shards > 2) system_clock().sleep_seconds(seconds_a_shard);
        group.deliver(*shard, Leaf{{}, "x", nullptr});
      }
      group.finish({});
    }
  };
  std::thread slow([&] { EXPECT_NO_THROW(live(*sides[1].group, 5 * kPatience / 100)); });
  EXPECT_NO_THROW(live(*sides[0].group, 0));
  slow.join();
  for (Side& side : sides) side.links.reset();
}

TEST(GroupProtocol, WhoComputesTellsAllNowAndThen) {
  Beside two({kThree});
  for (const MemberId other : {kOne, kThree}) {
    int told = 0;
    for (const link::Frame& sent : two.links.to(other)) told += sent.kind == static_cast<uint16_t>(Kind::progress);
    EXPECT_EQ(told, 1);
  }
}

// The group's roots would fill the memory of those who send them.
TEST(GroupProtocol, AJoinerThatTakesTooLittleIsReportedAndSentNoMore) {
  auto bounded = options();
  bounded.queue_bytes = 1000;
  bounded.handover_bytes = 1000;
  std::vector<std::pair<MemberId, std::string>> lost;
  bounded.on_lost = [&](MemberId member, const std::string& why) { lost.emplace_back(member, why); };
  PaperLinks links;
  links.stuck = kThree;
  Group one(kOne, links, bounded, system_clock());
  one.adopt(view_of(1, {kOne}, {kThree}));
  one.start_at(0, {0, 6});
  const auto round = [&] {
    one.begin(1, {}, "");
    while (const auto shard = one.next_shard()) one.deliver(*shard, Leaf{{}, "x", nullptr});
    one.finish({});
  };
  round();
  EXPECT_FALSE(links.to(kThree).empty());
  links.wait_for_it(2500);
  for (int i = 0; i < 5; ++i) round();
  EXPECT_TRUE(links.to(kThree).empty());
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].first, kThree);
  EXPECT_NE(lost[0].second.find("too slowly"), std::string::npos);
  links.wait_for_it(0);
  one.adopt(view_of(2, {kOne}, {kThree}));  // it may stay: it gets another chance
  round();
  EXPECT_FALSE(links.to(kThree).empty());
}

// One piece of a root of so many floats, and its end.
std::vector<link::Frame> large_root(int64_t generation, int64_t round, int64_t floats, uint64_t before) {
  const Shape shape(2, {floats});
  const BlockHead head{shape.digest, 0, floats, 1, 1};
  const BlockDraft draft = draft_block(head, row_parts(shape, 0, floats), {true});
  std::fill_n(draft.values[0], floats, 1.0F);
  const SmallRoot small{shape.digest, 1, before, {{true}, true, "s", "n"}};
  return {frame(Kind::root_piece, generation, round, *draft.bytes),
          frame(Kind::root_small, generation, round, encode(small))};
}

TEST(GroupProtocol, AModelLargerThanTheBoundsIsJoined) {
  PaperLinks links;
  Group three(kThree, links, options(), system_clock());
  three.adopt(view_of(4, {kOne, kTwo}, {kThree}));
  three.on_frame(kOne, here(4, 5));
  three.on_frame(kTwo, here(4, 5));
  uint64_t history = 99;
  for (int64_t round = 5; round < 8; ++round) {
    for (const link::Frame& one : large_root(4, round, 5000, history)) three.on_frame(kOne, one);
    history = history_after(history, "n");
  }
  three.start_at(6, {6, 0}, history_after(99, "n"));
  std::vector<float> row(5000);
  for (int64_t round = 6; round < 8; ++round) {
    three.begin(2, {5000}, "");
    EXPECT_EQ(three.next_shard(), std::nullopt);
    three.finish({row.data()});
  }
  EXPECT_EQ(row.back(), 1.0F);
}

TEST(GroupProtocol, SumsOfALargeRoundWaitForWhoHearsOfTheViewLate) {
  Beside two;
  two.group.on_frame(kOne, root(1, 0, "n", 0));
  EXPECT_EQ(two.group.next_shard(), std::nullopt);
  two.group.finish({});
  two.group.begin(2, {5000}, "");
  for (const link::Frame& one : large_root(2, 1, 5000, history_after(0, "n"))) two.group.on_frame(kOne, one);
  EXPECT_NO_THROW(two.group.turn());
  two.group.adopt(view_of(2, {kOne, kTwo}));
  two.group.on_frame(kOne, here(2, 2));
  std::vector<float> row(5000);
  EXPECT_EQ(two.group.next_shard(), std::nullopt);
  two.group.finish({row.data()});
  EXPECT_EQ(row.front(), 1.0F);
}

// A member that waits for another's long shard is not to give up on it.
TEST(GroupProtocol, PatienceGrowsWithTheUsualRound) {
  constexpr double kRound = 0.02;
  auto short_patience = options();
  short_patience.patience_seconds = kRound;  // ten times that in the first round
  Beside two({}, short_patience);
  system_clock().sleep_seconds(kRound);
  two.group.on_frame(kOne, root(1, 0, "", 0));
  EXPECT_EQ(two.group.next_shard(), std::nullopt);
  two.group.finish({});
  two.begin("");
  const double began = system_clock().monotonic_seconds();
  EXPECT_THROW(while (const auto shard = two.group.next_shard()) two.group.deliver(*shard, std::nullopt), PutOut);
  EXPECT_GE(system_clock().monotonic_seconds() - began, 40 * kRound);
}

TEST(GroupProtocol, PutOutWakesWhoWaits) {
  Beside two;
  std::string why;
  std::thread lane([&] { why = why_out(two.group); });
  two.group.put_out("enough");
  lane.join();
  EXPECT_EQ(why, "enough");
  EXPECT_THROW(two.begin(""), PutOut);
  EXPECT_THROW(two.group.finish({}), PutOut);
}

TEST(GroupProtocol, AViewWithoutThisMemberEndsItsLife) {
  Beside two;
  auto view = view_of(2, {kOne});
  view.why = "member 2 was silent";
  two.group.adopt(view);
  EXPECT_EQ(why_out(two.group), "member 2 is not in the group any more: member 2 was silent");
}

TEST(GroupProtocol, AnErrorOfTheMergeReachesEveryLane) {
  PaperLinks links;
  auto failing = options();
  failing.merge = [](std::string_view, std::string_view) -> std::string { throw Error("buffers differ", "hint"); };
  Group one(kOne, links, failing, system_clock());
  one.adopt(view_of(1, {kOne}));
  one.start_at(0, {0, 6});
  one.begin(2, {}, "");
  for (int i = 0; i < 2; ++i) one.deliver(*one.next_shard(), Leaf{{}, "x", nullptr});
  EXPECT_THROW(one.next_shard(), Error);
  EXPECT_THROW(one.next_shard(), Error);
}

TEST(GroupProtocol, MembersWithOtherRowsAreNamed) {
  PaperLinks links;
  Group one(kOne, links, options(), system_clock());
  one.adopt(view_of(1, {kOne, kTwo}));
  one.start_at(0, {0, 6});
  one.on_frame(kTwo, here(1, 0, false, Origin{0, 6}));
  one.begin(2, {}, "");
  one.deliver(*one.next_shard(), std::nullopt);
  SmallSums sums{Shape(2, {3}).digest, {true}, {"x"}};
  one.on_frame(kTwo, frame(Kind::small, 1, 0, encode(sums)));
  try {
    one.next_shard();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("member 2 takes round 0"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace sinew::group
