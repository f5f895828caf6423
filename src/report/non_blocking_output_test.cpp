#include "report/non_blocking_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

namespace sinew::report {
namespace {

constexpr double kPatienceSeconds = 0.05;

// The two ends of a stream. An alarm ends the test if a write blocks for ever.
struct Ends {
  Ends() { ::alarm(120); }
  ~Ends() {
    ::alarm(0);
    for (const int descriptor : {reader, writer}) {
      if (descriptor >= 0) ::close(descriptor);
    }
  }
  // Returns everything that has arrived so far.
  std::string taken() const {
    std::string text;
    char piece[4096];
    for (pollfd ready{reader, POLLIN, 0}; ::poll(&ready, 1, 50) > 0;) {
      const ssize_t got = ::read(reader, piece, sizeof piece);
      if (got <= 0) break;
      text.append(piece, static_cast<size_t>(got));
    }
    std::erase(text, '\r');
    return text;
  }
  int reader = -1, writer = -1;
};

void make_pipe(Ends& ends) {
  int both[2];
  ASSERT_EQ(::pipe(both), 0);
  ends.reader = both[0];
  ends.writer = both[1];
}

void make_sockets(Ends& ends) {
  int both[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, both), 0);
  ends.reader = both[0];
  ends.writer = both[1];
}

void make_terminal(Ends& ends) {
  ends.reader = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (ends.reader < 0 || ::grantpt(ends.reader) != 0 || ::unlockpt(ends.reader) != 0) return;
  ends.writer = ::open(::ptsname(ends.reader), O_RDWR | O_NOCTTY);
}

// Writes lines while nobody reads, and then reads. At most one of the lines that arrive may be incomplete. The newest
// line must arrive.
void expect_never_held_up(const Ends& ends) {
  NonBlockingOutput stream(ends.writer, kPatienceSeconds);
  const std::string line = std::string(999, 'x') + "\n";
  for (int i = 0; i < 3000; ++i) stream.write(line);
  EXPECT_EQ(::fcntl(ends.writer, F_GETFL) & O_NONBLOCK, 0) << "the stream is others', too";
  const std::string before = ends.taken();
  EXPECT_FALSE(before.empty());
  EXPECT_LT(before.size(), 3000 * line.size());
  stream.write("again\n");
  stream.write("and again\n");
  const bool torn = !before.ends_with("\n");
  EXPECT_EQ(ends.taken(), std::string(torn ? "\n" : "") + "again\nand again\n");
  stream.write(line);
  EXPECT_EQ(ends.taken(), line);
}

TEST(NonBlockingOutput, DoesNotBlockOnAPipeThatNobodyReads) {
  Ends ends;
  ASSERT_NO_FATAL_FAILURE(make_pipe(ends));
  expect_never_held_up(ends);
}

TEST(NonBlockingOutput, DoesNotBlockOnASocketThatNobodyReads) {
  Ends ends;
  ASSERT_NO_FATAL_FAILURE(make_sockets(ends));
  expect_never_held_up(ends);
}

TEST(NonBlockingOutput, DoesNotBlockOnATerminalThatNobodyReads) {
  Ends ends;
  make_terminal(ends);
  ASSERT_GE(ends.writer, 0);
  expect_never_held_up(ends);
}

TEST(NonBlockingOutput, ContinuesAtTheEndOfAFile) {
  char path[] = "/tmp/sinew-output-XXXXXX";
  const int file = ::mkstemp(path);
  ASSERT_GE(file, 0);
  ::unlink(path);
  ASSERT_EQ(::write(file, "before\n", 7), 7);
  NonBlockingOutput(file).write("after\n");
  char text[32] = {};
  EXPECT_EQ(::pread(file, text, sizeof text, 0), 13);
  EXPECT_EQ(std::string(text), "before\nafter\n");
  ::close(file);
}

TEST(NonBlockingOutput, DropsOutputOfAClosedStreamAndContinues) {
  Ends ends;
  ASSERT_NO_FATAL_FAILURE(make_pipe(ends));
  auto* const usual = std::signal(SIGPIPE, SIG_IGN);
  NonBlockingOutput stream(ends.writer, kPatienceSeconds);
  ::close(std::exchange(ends.reader, -1));
  for (int i = 0; i < 1000; ++i) stream.write("nobody\n");
  std::signal(SIGPIPE, usual);
}

}  // namespace
}  // namespace sinew::report
