#include "base/slate.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <utility>

namespace sinew {
namespace {

constexpr Work kShard = {Work::Kind::computing, 412, 3, 2, 96, 32};

TEST(Slate, HoldsTheNewestNoteOfEveryLane) {
  const ChildSlate kept;
  Slate slate(kept.path());
  EXPECT_TRUE(kept.read().empty());
  slate.note(0, {Work::Kind::reducing, 411});
  slate.note(0, kShard);
  slate.note(2, {});
  const std::vector<Noted> expected = {{0, 2, kShard}, {2, 1, {}}};
  EXPECT_EQ(kept.read(), expected);
  slate.note(0, kShard);
  EXPECT_EQ(kept.read()[0].number, 3) << "the same work again is another note";
}

TEST(Slate, OutlivesAChildThatIsKilled) {
  ChildSlate first;
  const ChildSlate kept(std::move(first));
  EXPECT_TRUE(first.path().empty());
  const pid_t child = ::fork();
  if (child == 0) {
    Slate slate(kept.path());
    slate.note(1, kShard);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(kept.read(), (std::vector<Noted>{{1, 1, kShard}}));
}

TEST(Slate, WhereThereIsNoneNothingIsNoted) {
  char name[] = "/tmp/slate-XXXXXX";  // a file of another size
  const int file = ::mkstemp(name);
  for (const std::string& none : {std::string(), std::string("/no/such/file"), std::string("/"), std::string(name)}) {
    Slate slate(none);
    slate.note(0, kShard);
  }
  ::close(file);
  ::unlink(name);
}

TEST(Slate, WorkInWords) {
  EXPECT_EQ(to_string(kShard), "step 412, shard 3 (samples 96 to 127 in the order of epoch 2)");
  EXPECT_EQ(to_string(Work{Work::Kind::evaluating, 7, 1, 0, 10, 1}), "evaluation at step 7, piece 1 (sample 10)");
  EXPECT_EQ(to_string(Work{Work::Kind::updating, 7}), "step 7, the update");
}

TEST(Slate, LanesItHasNoRoomForNoteNothing) {
  const ChildSlate kept;
  Slate slate(kept.path());
  for (const int lane : {-1, 256, 1 << 20}) slate.note(lane, kShard);
  EXPECT_TRUE(kept.read().empty());
}

}  // namespace
}  // namespace sinew
