#include "base/machine.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/system/system_error.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <system_error>

#include "base/cgroup.h"
#include "base/proc.h"

namespace sinew {
namespace {

// A worker of a small group has about 40 open files, a supervisor four for each of its workers.
constexpr rlim_t kLeastFiles = 64, kUsualFiles = 1024;
// The kernels of libtorch keep arrays of some hundred KiB on the stack.
constexpr rlim_t kLeastStack = 1 << 20, kUsualStack = 8 << 20;
constexpr rlim_t kLeastAddressSpace = rlim_t{600} << 20;  // libtorch and the smallest training

// Returns the limit, after an attempt to raise its soft value to `wanted`. A process cannot raise the hard value.
rlim_t raised(__rlimit_resource_t resource, rlim_t wanted) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return RLIM_INFINITY;
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;  // RLIM_INFINITY is the largest value
  rlimit more = limit;
  more.rlim_cur = std::min(wanted, limit.rlim_max);
  return ::setrlimit(resource, &more) == 0 ? more.rlim_cur : limit.rlim_cur;
}

// "1024", or "unlimited".
std::string value_of(__rlimit_resource_t resource, rlim_t unit = 1) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "unlimited";
  return std::to_string(limit.rlim_cur / unit);
}

void need_files() {
  const rlim_t files = raised(RLIMIT_NOFILE, kUsualFiles);
  if (files >= kLeastFiles) return;
  throw UsageError("LIMIT_TOO_LOW",
                   "this process may open only " + std::to_string(files) + " files, and sinew needs at least " +
                       std::to_string(kLeastFiles),
                   "raise the limit first: ulimit -n " + std::to_string(kUsualFiles));
}

// Raises the limit of the stack. Also raises the default stack size of new threads: the C library took it from the
// limit that held when this program began, so raising the limit does not change it.
void need_stack() {
  const rlim_t stack = raised(RLIMIT_STACK, kUsualStack);
  if (stack < kLeastStack) {
    throw UsageError("LIMIT_TOO_LOW",
                     "the stack of this process may have only " + std::to_string(stack >> 10) +
                         " KiB, and sinew needs at least " + std::to_string(kLeastStack >> 10),
                     "raise the limit first: ulimit -s " + std::to_string(kUsualStack >> 10));
  }
  pthread_attr_t attributes;
  if (::pthread_getattr_default_np(&attributes) != 0) return;
  size_t size = 0;
  if (::pthread_attr_getstacksize(&attributes, &size) == 0 && size < kUsualStack &&
      ::pthread_attr_setstacksize(&attributes, kUsualStack) == 0)
    ::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);
}

void need_proc() {
  if (::access("/proc/self/exe", F_OK) == 0) return;
  throw UsageError("PROC_NOT_MOUNTED", "/proc is not mounted here, and sinew finds its programs and processes in it",
                   "mount it first: mount -t proc proc /proc");
}

}  // namespace

void open_standard_streams() {
  int descriptor = 0;
  do descriptor = ::open("/dev/null", O_RDWR);
  while (descriptor >= 0 && descriptor <= STDERR_FILENO);
  if (descriptor > STDERR_FILENO) ::close(descriptor);
}

void begin_program() {
  need_files();
  need_stack();
  need_proc();
}

void check_working_directory() {
  char path[1];
  if (::getcwd(path, sizeof path) != nullptr || errno != ENOENT) return;  // ERANGE: the path is longer than the buffer
  throw UsageError("WORKING_DIRECTORY_REMOVED", "the working directory of this process has been removed",
                   "change to a directory that exists: cd DIR");
}

void check_address_space() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= kLeastAddressSpace) return;
  throw UsageError(
      "LIMIT_TOO_LOW",
      "this process may use only " + std::to_string(limit.rlim_cur >> 10) +
          " KiB of address space, and sinew-worker needs at least " + std::to_string(kLeastAddressSpace >> 10),
      "raise the limit first: ulimit -v unlimited; resources of a container or a cgroup limit memory better");
}

uint64_t machine_memory() {
  const std::string facts = kernel_text("/proc/meminfo");
  const size_t at = facts.find("MemTotal:");
  const uint64_t machine = at == facts.npos ? 0 : std::strtoull(facts.c_str() + at + 9, nullptr, 10) << 10;
  const uint64_t container = cgroup_memory();
  return container > 0 ? std::min(machine, container) : machine;
}

void allow_open_files(uint64_t files) {
  raised(RLIMIT_NOFILE, files);
}

std::string hint_of_limit(int code) {
  switch (code) {
    case EMFILE:
      return "this process may open " + value_of(RLIMIT_NOFILE) +
             " files: raise the limit (ulimit -n), or use fewer "
             "workers";
    case ENFILE: return "the machine has no free file descriptor: end other programs, or raise fs.file-max";
    case EAGAIN:
      return "this user may have " + value_of(RLIMIT_NPROC) +
             " processes and threads: raise the limit (ulimit -u, or "
             "pids.max of a container), or end other programs";
    case ENOMEM:
      return "free memory, or raise its limit (ulimit -v: " + value_of(RLIMIT_AS, 1024) +
             " KiB), or use fewer workers "
             "and trainer.lanes=1";
    default: return "see the limits with: ulimit -a";
  }
}

std::optional<Error> shortage_of(const std::exception& error) {
  // libtorch reports a failed allocation as an exception of its own.
  const bool torch = std::string_view(error.what()).find("can't allocate memory") != std::string_view::npos;
  if (torch || dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return Error("OUT_OF_MEMORY", "there is not enough memory", hint_of_limit(ENOMEM));
  int code = 0;
  if (const auto* failed = dynamic_cast<const std::system_error*>(&error)) {
    const auto& category = failed->code().category();
    if (category == std::system_category() || category == std::generic_category()) code = failed->code().value();
  } else if (const auto* of_boost = dynamic_cast<const boost::system::system_error*>(&error)) {
    if (of_boost->code().category() == boost::system::system_category()) code = of_boost->code().value();
  }
  if (code == EAGAIN) {
    return Error("THREAD_NOT_STARTED", std::string("cannot start a thread: ") + std::strerror(code),
                 hint_of_limit(EAGAIN) + "; a limit of memory (ulimit -v) counts the stacks of threads");
  }
  if (code == EMFILE || code == ENFILE)
    return Error("LIMIT_TOO_LOW", std::string("cannot open another file: ") + std::strerror(code), hint_of_limit(code));
  if (code == ENOMEM) return Error("OUT_OF_MEMORY", "there is not enough memory", hint_of_limit(ENOMEM));
  return std::nullopt;
}

}  // namespace sinew
