// Tests that a member that becomes the leader writes exactly the records that are missing from the files, each once.
#include "loop/leader_reporter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/disk.h"
#include "base/error.h"
#include "base/faulty_disk.h"
#include "base/hand_clock.h"
#include "loop/members_stub.h"

namespace sinew::loop {
namespace {

// A member. The test decides whether it leads and whether it may write.
class TestMembership final : public MembersStub {
 public:
  bool is_leader() const override { return leads; }
  bool may_write() const override { return writes; }
  bool has_run_directory() const override { return !own_directory; }
  bool leads = false, writes = false, own_directory = false;
};

struct TestMember {
  static inline int64_t ids = 0;
  TestMembership membership;
  HandClock clock;
  WriteFence disk;
  LeaderReporter reporter;
  explicit TestMember(const std::string& folder, bool leads = false, int64_t begins_at = 0)
      : membership(membership_of(leads)),
        disk(system_disk(), folder, ++ids),
        reporter(options_in(folder, begins_at), {}, &membership, disk, clock) {}
  static TestMembership membership_of(bool leads) {
    TestMembership membership;
    membership.leads = membership.writes = leads;
    return membership;
  }
  static report::ReporterOptions options_in(const std::string& folder, int64_t begins_at) {
    report::ReporterOptions options;
    options.directory = folder;
    options.ledger = true;
    options.resumed_at = Step(begins_at);
    options.output = options.errors = [](std::string_view) {};
    return options;
  }
  void step(int64_t number, double seconds) {
    clock.seconds = clock.seconds + seconds;
    reporter.ledger(Step(number), Digest{static_cast<uint64_t>(number), 7});
    if (number % 10 == 0)
      reporter.metrics(Step(number), number * 4, {{"train/loss", 1.0 / static_cast<double>(number)}});
    reporter.end_step();
  }
};

std::vector<int64_t> steps_in(const std::string& path) {
  std::vector<int64_t> steps;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) steps.push_back(std::stoll(line.substr(line.find(':') + 1)));
  return steps;
}

std::string new_folder(const std::string& name) {
  const std::string folder = testing::TempDir() + "reporter_" + name;
  system_disk().remove_all(folder);
  system_disk().make_directories(folder);
  return folder;
}

void expect_every_step(const std::string& folder, int64_t last) {
  std::vector<int64_t> all, tenths;
  for (int64_t step = 1; step <= last; ++step) {
    all.push_back(step);
    if (step % 10 == 0) tenths.push_back(step);
  }
  EXPECT_EQ(steps_in(folder + "/ledger.jsonl"), all);
  EXPECT_EQ(steps_in(folder + "/metrics.jsonl"), tenths);
}

TEST(LeaderReporter, HasUnwrittenRecordsUntilTheyAreInTheFiles) {
  const std::string folder = new_folder("waits");
  TestMember leader(folder, true);
  leader.step(1, 0.1);
  EXPECT_FALSE(leader.reporter.has_unwritten());
  leader.membership.writes = false;
  leader.step(2, 0.1);
  EXPECT_TRUE(leader.reporter.has_unwritten());
  leader.membership.writes = true;
  EXPECT_TRUE(leader.reporter.has_unwritten()) << "they still do";
  leader.reporter.flush();
  EXPECT_FALSE(leader.reporter.has_unwritten());
  EXPECT_EQ(steps_in(folder + "/ledger.jsonl").size(), 2U);
}

// One file that cannot be written must not stop all checkpoints.
TEST(LeaderReporter, RecordsThatWaitForTheDiskDoNotCount) {
  const std::string folder = new_folder("unwritable");
  system_disk().make_directories(folder + "/ledger.jsonl");
  TestMember leader(folder, true);
  leader.step(10, 0.1);
  EXPECT_FALSE(leader.reporter.has_unwritten());
  EXPECT_EQ(steps_in(folder + "/metrics.jsonl").size(), 1U);
}

TEST(LeaderReporter, SaysWhyItCannotTakeOverAndWhatToTry) {
  FaultyDisk disk;
  disk.make_directories("run");
  const TestMembership members = TestMember::membership_of(true);
  HandClock clock;
  WriteFence fence(disk, "run", 1);
  disk.fail_at(1, EIO);
  LeaderReporter reporter(TestMember::options_in("run", 0), {}, &members, fence, clock);
  for (const char* part : {"injected failure", "a hint"})
    EXPECT_NE(reporter.trouble().find(part), std::string::npos) << reporter.trouble();
  reporter.flush();
  EXPECT_EQ(reporter.trouble(), "");
}

// The coordinator is dead, so the leader may not write. Then the leader dies too, and another member takes over.
TEST(LeaderReporter, TheNextLeaderAddsWhatTheLastOneDidNotWrite) {
  const std::string folder = new_folder("takes_over");
  TestMember leader(folder, true), successor(folder);
  int64_t step = 0;
  const auto both = [&](int64_t until) {
    while (step < until) {
      ++step;
      leader.step(step, 0.02);
      successor.step(step, 0.02);
    }
  };
  both(200);
  EXPECT_EQ(steps_in(folder + "/ledger.jsonl").size(), 200U);
  leader.membership.writes = false;
  both(3000);  // 56 s
  EXPECT_EQ(steps_in(folder + "/ledger.jsonl").size(), 200U);
  successor.membership.leads = true;
  successor.step(++step, 0.02);  // the member is the leader but must not write yet
  successor.membership.writes = true;
  successor.step(++step, 0.02);
  expect_every_step(folder, step);
}

// The leader's process is suspended after it has checked its lease, and another member takes over. When the old leader
// continues, it still writes, but not into the run's files.
TEST(LeaderReporter, ALeaderThatWakesUpLateDoublesNoLine) {
  const std::string folder = new_folder("late");
  TestMember leader(folder, true), successor(folder);
  for (int64_t step = 1; step <= 20; ++step) {
    leader.step(step, 0.1);
    successor.step(step, 0.1);
  }
  successor.membership.leads = successor.membership.writes = true;
  successor.step(21, 0.1);
  for (int64_t step = 21; step <= 40; ++step) leader.step(step, 0.1);
  for (int64_t step = 22; step <= 30; ++step) successor.step(step, 0.1);
  expect_every_step(folder, 30);
  EXPECT_THROW(leader.disk.check(), WriterReplaced);
  // The old leader cannot open the files again, either.
  EXPECT_THROW(LeaderReporter(TestMember::options_in(folder, 0), {}, &leader.membership, leader.disk, leader.clock),
               WriterReplaced);
  expect_every_step(folder, 30);
}

// A new leader loses its lease while it opens the files. When it has a lease again, it begins again; no line is missing
// or written twice.
TEST(LeaderReporter, ALeaderWhoseLeaseEndsWhileItOpensTheFilesBeginsAgain) {
  class Leaving final : public MembersStub {
   public:
    bool is_leader() const override { return leads; }
    bool may_write() const override { return leads && (may-- > 0 || comes_back); }
    bool leads = false, comes_back = false;
    mutable int may = 0;
  };
  for (int may = 0; may < 12; ++may) {
    const std::string folder = new_folder("leaving");
    HandClock clock;
    {
      TestMember leader(folder, true);
      for (int64_t step = 1; step <= 20; ++step) leader.step(step, 0.1);
    }
    Leaving members;
    WriteFence disk(system_disk(), folder, ++TestMember::ids);
    LeaderReporter successor(TestMember::options_in(folder, 0), {}, &members, disk, clock);
    const auto step = [&](int64_t number) {
      successor.ledger(Step(number), Digest{static_cast<uint64_t>(number), 7});
      if (number % 10 == 0)
        successor.metrics(Step(number), number * 4, {{"train/loss", 1.0 / static_cast<double>(number)}});
      successor.end_step();
    };
    for (int64_t number = 11; number <= 20; ++number) step(number);
    members.leads = true;
    members.may = may;
    step(21);
    EXPECT_EQ(successor.has_unwritten(), steps_in(folder + "/ledger.jsonl").size() < 21) << may;
    members.comes_back = true;
    for (int64_t number = 22; number <= 25; ++number) step(number);
    expect_every_step(folder, 25);
  }
}

// The first leader of a resumed run dies before it may write.
TEST(LeaderReporter, TheNextLeaderDropsLaterStepsOfAnEarlierAttempt) {
  const std::string folder = new_folder("life_before");
  {
    TestMember before(folder, true);
    for (int64_t step = 1; step <= 45; ++step) before.step(step, 0.1);
  }
  TestMember successor(folder, false, 20), late(folder, false, 23);
  for (int64_t step = 21; step <= 23; ++step) successor.step(step, 0.1);
  successor.membership.leads = successor.membership.writes = true;
  for (int64_t step = 24; step <= 30; ++step) successor.step(step, 0.1);
  expect_every_step(folder, 30);
  for (int64_t step = 24; step <= 29; ++step) late.step(step, 0.1);
  late.membership.leads = late.membership.writes = true;
  late.reporter.flush();
  EXPECT_EQ(steps_in(folder + "/ledger.jsonl").back(), 29) << "it makes step 30 itself";
  late.step(30, 0.1);
  expect_every_step(folder, 30);
}

// The leader must not write, and no other member computes. A joiner takes the leader's state; then the leader dies.
TEST(LeaderReporter, AJoinerAddsWhatTheDonorOfItsStateHadNotWritten) {
  const std::string folder = new_folder("joiner");
  TestMember leader(folder, true);
  for (int64_t step = 1; step <= 15; ++step) leader.step(step, 0.1);
  EXPECT_EQ(leader.reporter.records(), "") << "everything is written";
  leader.membership.writes = false;
  for (int64_t step = 16; step <= 25; ++step) leader.step(step, 0.1);
  TestMember joiner(folder, false, 25);
  joiner.reporter.adopt(leader.reporter.records());
  TestMember second(folder, false, 25);
  second.reporter.adopt(joiner.reporter.records());
  for (int64_t step = 26; step <= 30; ++step) second.step(step, 0.1);
  second.membership.leads = second.membership.writes = true;
  second.reporter.flush();
  expect_every_step(folder, 30);
}

// A worker that joined by a URL leads for a while, because the others died. It writes into a directory of its own.
TEST(LeaderReporter, AJoinerAddsWhatALeaderWithADirectoryOfItsOwnWrote) {
  const std::string folder = new_folder("of_the_run"), own = new_folder("own");
  TestMember leader(folder, true), guest(own);
  guest.membership.own_directory = true;
  for (int64_t step = 1; step <= 15; ++step) {
    leader.step(step, 0.1);
    guest.step(step, 0.1);
  }
  guest.membership.leads = guest.membership.writes = true;
  guest.reporter.say(report::Level::info, "event", "a message");
  for (int64_t step = 16; step <= 25; ++step) guest.step(step, 0.1);
  EXPECT_FALSE(guest.reporter.has_unwritten());
  TestMember joiner(folder, false, 25);
  joiner.reporter.adopt(guest.reporter.records());
  joiner.membership.leads = joiner.membership.writes = true;
  for (int64_t step = 26; step <= 30; ++step) joiner.step(step, 0.1);
  expect_every_step(folder, 30);
}

TEST(LeaderReporter, RecordsKeepEveryBitAndOtherTextIsRefused) {
  const std::string folder = new_folder("bits");
  TestMember member(folder);
  member.reporter.metrics(Step(1), 4, {{"a", 0.1}, {"b", std::nan("")}, {"c", -HUGE_VAL}});
  member.reporter.ledger(Step(1), Digest{1, 2});
  TestMember joiner(folder);
  joiner.reporter.adopt(member.reporter.records());
  EXPECT_EQ(joiner.reporter.records(), member.reporter.records());
  EXPECT_NE(member.reporter.records().find("nan"), std::string::npos);
  for (const char* text : {"[", "[1]", "[[1]]", "[[1,2,3]]", "[[1,\"x\"]]"})
    EXPECT_THROW(joiner.reporter.adopt(text), Error) << text;
}

}  // namespace
}  // namespace sinew::loop
