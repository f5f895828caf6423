#include "sandbox/landlock.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace sinew::sandbox {
namespace {

// The kernel's interface, because the headers of the machine that compiles may be older than the kernel that runs.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr uint32_t kAskVersion = 1;
constexpr int kPathBeneath = 1;

struct Ruleset {
  uint64_t files, network, scopes;
};
struct __attribute__((packed)) PathBeneath {
  uint64_t access;
  int32_t directory;
};

constexpr unsigned long long bit(int number) {
  return 1ULL << number;
}
constexpr auto kWriteFile = bit(1), kRemoveFolder = bit(4), kRemoveFile = bit(5), kMakeFolder = bit(7),
               kMakeFile = bit(8), kMakeLink = bit(12), kTruncate = bit(14);
constexpr auto kMakeOthers = bit(6) | bit(9) | bit(10) | bit(11);  // devices, sockets, pipes
constexpr auto kMoveBetween = bit(13), kControlDevice = bit(15);
constexpr auto kTcp = bit(0) | bit(1);     // bind, connect
constexpr auto kScopes = bit(0) | bit(1);  // abstract sockets and signals of other processes

[[noreturn]] void fail_with(const std::string& what) {
  throw Error("SANDBOX_UNAVAILABLE", "Landlock " + what + ": " + std::strerror(errno),
              "use another kernel or file system, or --no-sandbox if you trust the model like a program that you run");
}

}  // namespace

int landlock_version() {
  const long version = ::syscall(kCreateRuleset, nullptr, 0, kAskVersion);
  return version < 0 ? 0 : static_cast<int>(version);
}

WriteRules::WriteRules() {
  const int version = landlock_version();
  known_ = kWriteFile | kRemoveFolder | kRemoveFile | kMakeFolder | kMakeFile | kMakeLink | kMakeOthers;
  if (version >= 2) known_ |= kMoveBetween;
  if (version >= 3) known_ |= kTruncate;
  if (version >= 5) known_ |= kControlDevice;
  const Ruleset ruleset{known_, version >= 4 ? kTcp : 0, version >= 6 ? kScopes : 0};
  const size_t size = version >= 6 ? sizeof(Ruleset) : version >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
  rules_ = static_cast<int>(::syscall(kCreateRuleset, &ruleset, size, 0));
  if (rules_ < 0) fail_with("makes no rules");
}

WriteRules::~WriteRules() {
  ::close(rules_);
}

void WriteRules::allow_files(const std::string& directory) {
  allow(directory, O_DIRECTORY, kWriteFile | kTruncate | kRemoveFile | kMakeFile | kMoveBetween);
}

// O_NOFOLLOW: a symbolic link must not lead the permission to another directory.
void WriteRules::allow_all(const std::string& directory) {
  allow(directory, O_DIRECTORY | O_NOFOLLOW,
        kWriteFile | kTruncate | kRemoveFile | kMakeFile | kMakeFolder | kRemoveFolder | kMakeLink | kMoveBetween);
}

void WriteRules::allow_file(const std::string& path) {
  allow(path, 0, kWriteFile | kTruncate);
}

void WriteRules::allow(const std::string& path, int flags, unsigned long long access) {
  const int place = ::open(path.c_str(), O_PATH | O_CLOEXEC | flags);
  if (place < 0) fail_with("cannot open " + path);
  const PathBeneath rule{access & known_, place};
  const long result = ::syscall(kAddRule, rules_, kPathBeneath, &rule, 0);
  ::close(place);
  if (result != 0) fail_with("cannot allow writes in " + path);
}

void WriteRules::restrict_self() const {
  if (::syscall(kRestrictSelf, rules_, 0) != 0) fail_with("cannot be used");
}

}  // namespace sinew::sandbox
