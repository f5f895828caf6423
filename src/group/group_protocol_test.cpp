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
  size_t queued_bytes(MemberId) const override { return 0; }

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
  Group two(kTwo, links, short_patience, system_clock());
  two.adopt(view_of(1, {kOne, kTwo}));
  two.start_at(0, {0, 6});
  two.begin(2, {}, "");
  try {
    two.next_shard();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("where these members are: 1"), std::string::npos) << error.what();
  }
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
  EXPECT_THROW(while (const auto shard = two.group.next_shard()) two.group.deliver(*shard, std::nullopt), Error);
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
