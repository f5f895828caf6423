#include "sandbox/filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/error.h"

// This constant is newer than the headers of Debian 12.
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

namespace sinew::sandbox {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;
#endif

constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;
constexpr uint32_t kUnknown = SECCOMP_RET_ERRNO | ENOSYS;  // the caller then uses an older call

// A condition on an argument of a call: its value, masked with `mask`, must be one of `values`. The kernel takes an int
// from the lower half of a register and ignores the upper half, so the filter does the same; `upper` selects the upper
// half, for a pointer.
struct Argument {
  unsigned number;
  std::vector<uint32_t> values;
  uint32_t mask = ~uint32_t{0};
  bool upper = false;
};
using Arguments = std::vector<Argument>;

class Program {
 public:
  Program() {
    load(offsetof(seccomp_data, arch));
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0));
    result(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(seccomp_data, nr));  // no rule has the numbers of x32, which have one more bit
  }

  void rule(long call, uint32_t action) { add(call, {}, action); }
  void allow(std::initializer_list<long> calls) {
    for (const long call : calls) rule(call, SECCOMP_RET_ALLOW);
  }
  // Allows the call if all arguments of one of the alternatives fit.
  void allow_if(long call, const std::vector<Arguments>& alternatives) { add(call, alternatives, SECCOMP_RET_ALLOW); }

  std::vector<sock_filter> finish() {
    result(kRefuse);
    return std::move(code_);
  }

 private:
  void load(size_t offset) { code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset))); }
  void result(uint32_t action) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, action)); }

  void add(long call, const std::vector<Arguments>& alternatives, uint32_t action) {
    const size_t begin = code_.size();
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 0));
    for (const Arguments& arguments : alternatives) alternative(arguments, action);
    result(alternatives.empty() ? action : kRefuse);
    code_[begin].jf = jump(begin, code_.size());
  }

  void alternative(const Arguments& arguments, uint32_t action) {
    std::vector<size_t> failures;
    for (const Argument& argument : arguments) {
      load(offsetof(seccomp_data, args) + argument.number * sizeof(uint64_t) + (argument.upper ? sizeof(uint32_t) : 0));
      code_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, argument.mask));
      std::vector<size_t> fits;
      for (const uint32_t value : argument.values) {
        fits.push_back(code_.size());
        code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 0));
      }
      failures.push_back(code_.size());
      code_.push_back(BPF_STMT(BPF_JMP | BPF_JA, 0));
      for (const size_t at : fits) code_[at].jt = jump(at, code_.size());
    }
    result(action);
    for (const size_t at : failures) code_[at].k = jump(at, code_.size());
  }

  static uint8_t jump(size_t from, size_t to) { return static_cast<uint8_t>(to - from - 1); }

  std::vector<sock_filter> code_;
};

// Calls on files that are open, or whose paths Landlock checks.
void allow_files(Program& program) {
  program.allow({SYS_read,       SYS_write,     SYS_readv,     SYS_writev,    SYS_pread64,
                 SYS_pwrite64,   SYS_preadv,    SYS_pwritev,   SYS_close,     SYS_close_range,
                 SYS_lseek,      SYS_fstat,     SYS_statx,     SYS_faccessat, SYS_readlinkat,
                 SYS_getdents64, SYS_getcwd,    SYS_fsync,     SYS_fdatasync, SYS_sync_file_range,
                 SYS_fallocate,  SYS_ftruncate, SYS_fadvise64, SYS_sendfile,  SYS_copy_file_range,
                 SYS_dup,        SYS_dup3,      SYS_pipe2,     SYS_umask,     SYS_unlinkat,
                 SYS_mkdirat,    SYS_symlinkat, SYS_statfs,    SYS_fstatfs});
#ifdef SYS_newfstatat
  program.allow({SYS_newfstatat});
#endif
#ifdef SYS_faccessat2
  program.allow({SYS_faccessat2});
#endif
#if defined(__x86_64__)
  program.allow({SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_getdents, SYS_dup2, SYS_pipe, SYS_unlink, SYS_rmdir,
                 SYS_mkdir, SYS_symlink, SYS_rename});
#endif
}

// Calls without effect outside of this process: memory, threads, its own signals, time, waiting, facts.
void allow_inside(Program& program) {
  program.allow({SYS_munmap,
                 SYS_mprotect,
                 SYS_mremap,
                 SYS_madvise,
                 SYS_brk,
                 SYS_mincore,
                 SYS_msync,
                 SYS_mlock,
                 SYS_munlock,
                 SYS_membarrier,
                 SYS_futex,
                 SYS_set_robust_list,
                 SYS_set_tid_address,
                 SYS_rseq,
                 SYS_sched_yield,
                 SYS_sched_getaffinity,
                 SYS_sched_getparam,
                 SYS_sched_getscheduler,
                 SYS_get_mempolicy,
                 SYS_getcpu,
                 SYS_exit,
                 SYS_exit_group});
  program.allow({SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigpending, SYS_rt_sigtimedwait,
                 SYS_rt_sigsuspend, SYS_sigaltstack, SYS_restart_syscall});
  program.allow({SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday, SYS_ppoll,
                 SYS_pselect6, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, SYS_eventfd2, SYS_timerfd_create,
                 SYS_timerfd_settime, SYS_timerfd_gettime});
  program.allow({SYS_getpid, SYS_gettid, SYS_getppid, SYS_getpgid, SYS_getsid, SYS_getuid, SYS_geteuid, SYS_getgid,
                 SYS_getegid, SYS_getgroups, SYS_getpriority, SYS_getrusage, SYS_times, SYS_uname, SYS_sysinfo,
                 SYS_getrandom});
#ifdef SYS_epoll_pwait2
  program.allow({SYS_epoll_pwait2});
#endif
#ifdef SYS_futex_waitv
  program.allow({SYS_futex_waitv});
#endif
#if defined(__x86_64__)
  program.allow({SYS_poll, SYS_select, SYS_epoll_create, SYS_epoll_wait, SYS_eventfd, SYS_pause, SYS_time,
                 SYS_arch_prctl, SYS_getrlimit, SYS_getpgrp});
#endif
}

// An old Landlock does not check whether an open for reading truncates the file.
Argument open_mode(unsigned number) {
  return {number,
          {O_RDONLY, O_WRONLY, O_RDWR, O_WRONLY | O_TRUNC, O_RDWR | O_TRUNC},
          static_cast<uint32_t>(O_ACCMODE | O_TRUNC)};
}

void allow_with_arguments(Program& program, pid_t self) {
  const auto me = static_cast<uint32_t>(self);
  program.allow_if(SYS_openat, {{open_mode(2)}});
#ifdef SYS_open
  program.allow_if(SYS_open, {{open_mode(1)}});
#endif
  program.allow_if(SYS_renameat2, {{{4, {0}}}});  // no exchange
#ifdef SYS_renameat
  program.allow({SYS_renameat});
#endif
  // The kernel limits only private memory (RLIMIT_DATA), so the filter allows no shared memory without a file.
  program.allow_if(SYS_mmap, {{{3, {0, MAP_SHARED, MAP_ANONYMOUS}, MAP_SHARED | MAP_ANONYMOUS}}});
  // Allows a new thread, but no new process or namespace. The filter cannot read the flags of clone3, so that call
  // fails with ENOSYS, and libc then calls clone.
  constexpr uint32_t kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                               CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
  program.allow_if(SYS_clone, {{{0, {kThread}}}});
  program.rule(SYS_clone3, kUnknown);
  program.rule(SYS_openat2, kUnknown);
  // Signal 0 only asks whether a process exists.
  program.allow_if(SYS_kill, {{{0, {me}}}, {{1, {0}}}});
  program.allow_if(SYS_tgkill, {{{0, {me}}}});
  program.allow_if(SYS_prlimit64, {{{0, {0, me}}}});
  // Other commands push characters into the terminal (TIOCSTI), make the kernel send signals (F_SETOWN, O_ASYNC), or
  // lock a file that other processes use.
  program.allow_if(SYS_ioctl, {{{1, {TCGETS, TIOCGWINSZ, FIONBIO, FIONREAD, FIOCLEX}}}});
  program.allow_if(SYS_fcntl,
                   {{{1, {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL}}}, {{1, {F_SETFL}}, {2, {0}, O_ASYNC}}});
  // A member of a run stays alive when its supervisor dies (base/process.h), so it may give up its death signal.
  program.allow_if(
      SYS_prctl, {{{0, {PR_SET_NAME, PR_GET_NAME, PR_SET_VMA, PR_GET_DUMPABLE}}}, {{0, {PR_SET_PDEATHSIG}}, {1, {0}}}});
}

void allow_links(Program& program) {
  constexpr auto kKept = ~static_cast<uint32_t>(SOCK_NONBLOCK | SOCK_CLOEXEC);
  program.allow_if(SYS_socket, {{{0, {AF_INET, AF_INET6}}, {1, {SOCK_STREAM}, kKept}, {2, {0, IPPROTO_TCP}}}});
  for (const long call : {SYS_connect, SYS_bind, SYS_listen, SYS_flock}) program.rule(call, SECCOMP_RET_USER_NOTIF);
  program.allow({SYS_accept, SYS_accept4, SYS_shutdown, SYS_getsockname, SYS_getpeername, SYS_getsockopt, SYS_recvfrom,
                 SYS_recvmsg});
  program.allow_if(SYS_setsockopt, {{{1, {SOL_SOCKET, IPPROTO_TCP, IPPROTO_IPV6}}}});
  // With MSG_FASTOPEN, a call that sends also connects.
  const Argument no_address{4, {0}}, nor_above{4, {0}, ~uint32_t{0}, true};
  program.allow_if(SYS_sendto, {{no_address, nor_above, {3, {0}, MSG_FASTOPEN}}});
  program.allow_if(SYS_sendmsg, {{{2, {0}, MSG_FASTOPEN}}});
}

}  // namespace

std::vector<sock_filter> filter_for(pid_t self, bool links) {
  Program program;
  allow_files(program);
  allow_inside(program);
  allow_with_arguments(program, self);
  if (links) allow_links(program);
  return program.finish();
}

bool has_filters() {
  const uint32_t action = SECCOMP_RET_USER_NOTIF;
  return kArchitecture != 0 && ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

int install(const std::vector<sock_filter>& filter, bool links) {
  std::vector<sock_filter> code = filter;  // the kernel's struct has no const
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  const unsigned flags = links ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
  const long result = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  if (result < 0) {
    throw Error("SANDBOX_UNAVAILABLE",
                std::string("the kernel refuses the filter of system calls: ") + std::strerror(errno),
                "use another kernel, or --no-sandbox if you trust the model like a program that you run");
  }
  return links ? static_cast<int>(result) : -1;
}

}  // namespace sinew::sandbox
