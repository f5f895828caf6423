#include "base/activity_board.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <utility>

namespace sinew {
namespace {

constexpr Work kShard = {Work::Kind::computing, 412, 3, 2, 96, 32};

TEST(ActivityBoard, HoldsTheNewestPostOfEveryLane) {
  const ChildActivityBoard kept;
  ActivityBoard board(kept.path());
  EXPECT_TRUE(kept.read().empty());
  board.post(0, {Work::Kind::reducing, 411});
  board.post(0, kShard);
  board.post(2, {});
  const std::vector<LaneActivity> expected = {{0, 2, kShard}, {2, 1, {}}};
  EXPECT_EQ(kept.read(), expected);
  board.post(0, kShard);
  EXPECT_EQ(kept.read()[0].sequence, 3) << "the same work again is another post";
}

TEST(ActivityBoard, OutlivesAChildThatIsKilled) {
  ChildActivityBoard first;
  const ChildActivityBoard kept(std::move(first));
  EXPECT_TRUE(first.path().empty());
  const pid_t child = ::fork();
  if (child == 0) {
    ActivityBoard board(kept.path());
    board.post(1, kShard);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(kept.read(), (std::vector<LaneActivity>{{1, 1, kShard}}));
}

TEST(ActivityBoard, HoldsTheErrorOfAChildThatHasEnded) {
  const ChildActivityBoard kept;
  EXPECT_EQ(kept.error(), std::nullopt);
  const pid_t child = ::fork();
  if (child == 0) {
    ActivityBoard board(kept.path());
    board.post(0, kShard);
    board.post({"the \x1b[31mdisk is full [DISK_FULL]\nand a second line", std::string(5000, 'x')});
    ::_exit(1);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(kept.error(), (PostedError{"the ?[31mdisk is full [DISK_FULL]", std::string(2047, 'x')}));
  EXPECT_EQ(kept.read(), (std::vector<LaneActivity>{{0, 1, kShard}}));
}

TEST(ActivityBoard, PostsDoNothingWithoutABoard) {
  char name[] = "/tmp/board-XXXXXX";  // an empty file, which is smaller than a board
  const int file = ::mkstemp(name);
  for (const std::string& none : {std::string(), std::string("/no/such/file"), std::string("/"), std::string(name)}) {
    ActivityBoard board(none);
    board.post(0, kShard);
    board.post({"an error", ""});
  }
  ::close(file);
  ::unlink(name);
}

TEST(ActivityBoard, WritesWorkAsText) {
  EXPECT_EQ(to_string(kShard), "step 412, shard 3 (samples 96 to 127 in the order of epoch 2)");
  EXPECT_EQ(to_string(Work{Work::Kind::evaluating, 7, 1, 0, 10, 1}), "evaluation at step 7, piece 1 (sample 10)");
  EXPECT_EQ(to_string(Work{Work::Kind::updating, 7}), "step 7, the update");
}

TEST(ActivityBoard, DropsPostsOfLanesBeyondItsSize) {
  const ChildActivityBoard kept;
  ActivityBoard board(kept.path());
  for (const int lane : {-1, 256, 1 << 20}) board.post(lane, kShard);
  EXPECT_TRUE(kept.read().empty());
}

}  // namespace
}  // namespace sinew
