#include "base/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

namespace sinew {
namespace {

// A pseudoterminal of 90 columns and 30 rows. The destructor restores the environment variables that were changed.
class TerminalOf : public testing::Test {
 protected:
  TerminalOf() {
    for (const char* name : {"TERM", "NO_COLOR", "COLUMNS"}) {
      const char* value = std::getenv(name);
      before_[name] = value == nullptr ? std::nullopt : std::optional<std::string>(value);
      ::unsetenv(name);
    }
    ::setenv("TERM", "xterm-256color", 1);
    master_ = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0) return;
    terminal_ = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
    const winsize size{30, 90, 0, 0};
    ::ioctl(terminal_, TIOCSWINSZ, &size);
  }
  ~TerminalOf() override {
    ::close(terminal_);
    ::close(master_);
    for (const auto& [name, value] : before_) {
      if (value) {
        ::setenv(name.c_str(), value->c_str(), 1);
      } else {
        ::unsetenv(name.c_str());
      }
    }
  }
  void SetUp() override { ASSERT_GE(terminal_, 0); }
  Terminal found() const { return terminal_of(terminal_); }

  std::map<std::string, std::optional<std::string>> before_;
  int master_ = -1, terminal_ = -1;
};

TEST_F(TerminalOf, ATerminalHasASizeAndColor) {
  EXPECT_TRUE(found().moves_cursor);
  EXPECT_TRUE(found().color);
  EXPECT_EQ(found().columns, 90);
  EXPECT_EQ(found().rows, 30);
}

TEST_F(TerminalOf, ADumbOneHasASizeOnly) {
  for (const char* kind : {"dumb", ""}) {
    ::setenv("TERM", kind, 1);
    EXPECT_TRUE(found().present);
    EXPECT_FALSE(found().moves_cursor);
    EXPECT_FALSE(found().color);
    EXPECT_EQ(found().columns, 90) << "a table still has to fit";
  }
  ::unsetenv("TERM");
  EXPECT_FALSE(found().moves_cursor);
}

TEST_F(TerminalOf, NoColorCountsIfItIsNotEmpty) {
  ::setenv("NO_COLOR", "", 1);
  EXPECT_TRUE(found().color);
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(found().color);
  EXPECT_TRUE(found().moves_cursor);
}

TEST_F(TerminalOf, ColumnsComesBeforeTheReportedWidth) {
  ::setenv("COLUMNS", "60", 1);
  EXPECT_EQ(found().columns, 60);
  for (const char* wrong : {"", "0", "-5", "60x", "many", "99999999999"}) {
    ::setenv("COLUMNS", wrong, 1);
    EXPECT_EQ(found().columns, 90) << wrong;
  }
}

TEST_F(TerminalOf, AFileIsNoTerminal) {
  ::setenv("COLUMNS", "60", 1);
  const int file = ::open("/dev/null", O_WRONLY);
  const Terminal terminal = terminal_of(file);
  ::close(file);
  EXPECT_FALSE(terminal.present);
  EXPECT_FALSE(terminal.moves_cursor);
  EXPECT_FALSE(terminal.color);
  EXPECT_EQ(terminal.columns, 0);
}

}  // namespace
}  // namespace sinew
