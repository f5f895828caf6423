// Tests what a program does on a machine that gives it too little. Each case changes its process, so it runs in a
// child.
#include "base/machine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "base/expected_error.h"

namespace sinew {
namespace {

bool holds_in_a_child(const std::function<bool()>& check) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(check() ? 0 : 1);
  int status = -1;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void limit_to(__rlimit_resource_t resource, rlim_t soft, rlim_t hard) {
  const rlimit limit{soft, hard};
  ::setrlimit(resource, &limit);
}

rlim_t soft_limit(__rlimit_resource_t resource) {
  rlimit limit{};
  ::getrlimit(resource, &limit);
  return limit.rlim_cur;
}

TEST(Machine, ClosedStandardStreamsBecomeDevNull) {
  for (const int closed : {0b001, 0b010, 0b100, 0b111}) {
    EXPECT_TRUE(holds_in_a_child([&] {
      for (int stream = 0; stream < 3; ++stream) {
        if ((closed >> stream & 1) != 0) ::close(stream);
      }
      open_standard_streams();
      struct stat facts {
      }, null{};
      ::stat("/dev/null", &null);
      bool good = true;
      for (int stream = 0; stream < 3; ++stream) {
        good = good && ::fstat(stream, &facts) == 0;
        if ((closed >> stream & 1) != 0) good = good && facts.st_rdev == null.st_rdev;
      }
      const int next = ::open("/", O_RDONLY);
      return good && next > 2;
    })) << closed;
  }
}

TEST(Machine, SoftLimitsAreRaised) {
  EXPECT_TRUE(holds_in_a_child([] {
    limit_to(RLIMIT_NOFILE, 16, 2000);
    limit_to(RLIMIT_STACK, 256 << 10, RLIM_INFINITY);
    begin_program();
    pthread_attr_t attributes;
    size_t stack = 0;
    ::pthread_getattr_default_np(&attributes);
    ::pthread_attr_getstacksize(&attributes, &stack);
    return soft_limit(RLIMIT_NOFILE) == 1024 && soft_limit(RLIMIT_STACK) == 8 << 20 && stack >= 8 << 20;
  }));
}

TEST(Machine, HighLimitsStayAsTheyAre) {
  EXPECT_TRUE(holds_in_a_child([] {
    limit_to(RLIMIT_NOFILE, 1500, 2000);
    limit_to(RLIMIT_STACK, 16 << 20, 16 << 20);
    begin_program();
    allow_open_files(1200);
    const bool kept = soft_limit(RLIMIT_NOFILE) == 1500 && soft_limit(RLIMIT_STACK) == 16 << 20;
    allow_open_files(5000);
    return kept && soft_limit(RLIMIT_NOFILE) == 2000;
  }));
}

TEST(Machine, HardLimitsThatAreTooLowAreNamed) {
  const auto refusal = [](__rlimit_resource_t resource, rlim_t limit, const std::string& value) {
    return holds_in_a_child([&] {
      limit_to(resource, limit, limit);
      try {
        begin_program();
      } catch (const UsageError& error) {
        return error.code == ErrorCode("LIMIT_TOO_LOW") && std::string(error.what()).find(value) != std::string::npos &&
               error.hint.find("ulimit -") != std::string::npos;
      }
      return false;
    });
  };
  EXPECT_TRUE(refusal(RLIMIT_NOFILE, 16, "16 files"));
  EXPECT_TRUE(refusal(RLIMIT_NOFILE, 8, "8 files"));
  EXPECT_TRUE(refusal(RLIMIT_STACK, 256 << 10, "256 KiB"));
}

TEST(Machine, TooLittleAddressSpaceForAWorkerIsNamed) {
  check_address_space();
  EXPECT_TRUE(holds_in_a_child([] {
    limit_to(RLIMIT_AS, rlim_t{400'000} << 10, RLIM_INFINITY);
    return code_of([] { check_address_space(); }) == "LIMIT_TOO_LOW";
  }));
}

TEST(Machine, ARemovedWorkingDirectoryIsNamed) {
  EXPECT_TRUE(holds_in_a_child([] {
    check_working_directory();
    char path[] = "/tmp/removed-XXXXXX";
    if (::mkdtemp(path) == nullptr || ::chdir(path) != 0 || ::rmdir(path) != 0) return false;
    return code_of([] { check_working_directory(); }) == "WORKING_DIRECTORY_REMOVED";
  }));
}

TEST(Machine, ShortagesAreToldFromOtherFailures) {
  const auto code_for = [](const std::exception& error) {
    const auto shortage = shortage_of(error);
    return shortage ? std::string(shortage->code.text()) : "";
  };
  const auto failed = [](int code) { return std::system_error(code, std::generic_category()); };
  EXPECT_EQ(code_for(std::bad_alloc()), "OUT_OF_MEMORY");
  EXPECT_EQ(code_for(std::runtime_error("DefaultCPUAllocator: can't allocate memory")), "OUT_OF_MEMORY");
  EXPECT_EQ(code_for(failed(EAGAIN)), "THREAD_NOT_STARTED");
  EXPECT_EQ(code_for(failed(EMFILE)), "LIMIT_TOO_LOW");
  EXPECT_EQ(code_for(std::system_error(ENOMEM, std::system_category())), "OUT_OF_MEMORY");
  EXPECT_EQ(code_for(failed(EPERM)), "");
  EXPECT_EQ(code_for(std::runtime_error("a bug")), "");
}

}  // namespace
}  // namespace sinew
