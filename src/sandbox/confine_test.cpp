#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <thread>

#include "base/expected_error.h"
#include "sandbox/confined_child.h"

namespace sinew::sandbox {
namespace {

namespace fs = std::filesystem;

void put(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

int opened(const std::string& path, int flags) {
  return ::open(path.c_str(), flags, 0644);
}

TEST(Confine, WritesOnlyBelowTheRunDirectory) {
  const Scratch folder;
  put(folder / "data", "12345");
  const std::string said = confined({.run_directory = folder.run()}, [&] {
    const std::string data = folder / "data", run = folder.run();
    return Outcomes()
        .add("write", opened(data, O_WRONLY))
        .add("append", opened(data, O_WRONLY | O_APPEND))
        .add("truncate-read", opened(data, O_RDONLY | O_TRUNC))
        .add("truncate", ::truncate(data.c_str(), 0))
        .add("create", opened(folder / "new", O_CREAT | O_WRONLY))
        .add("remove", ::unlink(data.c_str()))
        .add("rename", ::rename(data.c_str(), (run + "/data").c_str()))
        .add("folder", ::mkdir((folder / "new").c_str(), 0755))
        .add("temporary", opened("/tmp/sinew-no-such-file", O_CREAT | O_WRONLY))
        .text();
  });
  EXPECT_EQ(said,
            "write=EACCES append=EACCES truncate-read=EPERM truncate=EPERM create=EACCES remove=EACCES rename=EACCES "
            "folder=EACCES temporary=EACCES");
  EXPECT_EQ(fs::file_size(folder / "data"), 5U);
}

TEST(Confine, TheRunDirectoryCanBeWrittenAndTheRestRead) {
  const Scratch folder;
  put(folder / "data", "12345");
  const std::string said = confined({.run_directory = folder.run()}, [&] {
    const std::string run = folder.run(), links = run + "/checkpoints";
    char byte = 0;
    Outcomes all;
    const int file = opened(run + "/new", O_CREAT | O_RDWR);
    all.add("create", file)
        .add("write", ::write(file, "abc", 3))
        .add("cut", ::ftruncate(file, 1))
        .add("sync", ::fsync(file));
    all.add("rename", ::rename((run + "/new").c_str(), (run + "/file").c_str()));
    all.add("remove", ::unlink((run + "/file").c_str()));
    all.add("inside", opened(run + "/model/model.json", O_CREAT | O_WRONLY));
    all.add("step", ::mkdir((links + "/.saving").c_str(), 0755));
    all.add("publish", ::rename((links + "/.saving").c_str(), (links + "/step-1").c_str()));
    const std::string writers = run + "/.writers";  // where a writer prepares files and folders
    all.add("writer", ::mkdir((writers + "/1").c_str(), 0755))
        .add("prepare", opened(writers + "/1/report", O_CREAT | O_WRONLY))
        .add("place", ::rename((writers + "/1/report").c_str(), (run + "/report.json").c_str()))
        .add("take", ::rename((run + "/report.json").c_str(), (writers + "/1/gone").c_str()))
        .add("prepare folder", ::mkdir((writers + "/1/step").c_str(), 0755))
        .add("place folder", ::rename((writers + "/1/step").c_str(), (links + "/step-2").c_str()))
        .add("take folder", ::rename((links + "/step-2").c_str(), (writers + "/1/step").c_str()))
        .add("take over", ::rename((writers + "/1").c_str(), (writers + "/.gone").c_str()));
    all.add("link", ::symlink("step-1", (links + "/last").c_str())).add("drop", ::rmdir((links + "/step-1").c_str()));
    all.add("read", ::read(opened(folder / "data", O_RDONLY), &byte, 1)).add("nothing", opened("/dev/null", O_WRONLY));
    return all.text();
  });
  EXPECT_EQ(said,
            "create=ok write=ok cut=ok sync=ok rename=ok remove=ok inside=ok step=ok publish=ok writer=ok "
            "prepare=ok "
            "place=ok take=ok prepare folder=ok place folder=ok take folder=ok take over=ok link=ok drop=ok "
            "read=ok nothing=ok");
}

// What unconfined processes trust: the mark stays, and no name in the run directory leads out of it.
TEST(Confine, TheMarkStaysAndNothingLeadsOut) {
  const Scratch folder;
  fs::create_directory(folder.run() + "/other");
  const std::string said = confined({.run_directory = folder.run()}, [&] {
    const std::string run = folder.run(), mark = run + "/" + kMark, other = run + "/other",
                      links = run + "/checkpoints";
    ::symlink("/etc", (links + "/out").c_str());
    ::mkdir((links + "/folder").c_str(), 0755);
    ::symlink("/etc", (links + "/folder/out").c_str());
    return Outcomes()
        .add("folder", ::mkdir((run + "/new").c_str(), 0755))
        .add("inside", ::mkdir((run + "/model/new").c_str(), 0755))
        .add("carry folder", ::rename((links + "/folder").c_str(), (run + "/new").c_str()))
        .add("rmdir", ::rmdir(mark.c_str()))
        .add("rename", ::rename(mark.c_str(), (run + "/gone").c_str()))
        .add("replace", ::rename(other.c_str(), mark.c_str()))
        .add("exchange", ::syscall(SYS_renameat2, AT_FDCWD, mark.c_str(), AT_FDCWD, other.c_str(), 2))
        .add("move", ::rename(run.c_str(), (folder / "moved").c_str()))
        .add("links", ::rename(links.c_str(), (run + "/gone").c_str()))
        .add("symlink", ::symlink("/etc/passwd", (run + "/metrics.jsonl").c_str()))
        .add("carry", ::rename((links + "/out").c_str(), (run + "/out").c_str()))
        .add("hide", ::rename(mark.c_str(), (run + "/.writers/gone").c_str()))
        .add("writers", ::rename((run + "/.writers").c_str(), (run + "/gone").c_str()))
        .add("hard", ::link("/etc/passwd", (run + "/passwd").c_str()))
        .add("pipe", ::mkfifo((run + "/pipe").c_str(), 0644))
        .add("mode", ::chmod(run.c_str(), 0777))
        .add("attribute", ::setxattr(run.c_str(), "user.x", "y", 1, 0))
        .text();
  });
  EXPECT_EQ(said,
            "folder=EACCES inside=EACCES carry folder=EACCES rmdir=EACCES rename=EACCES replace=EACCES exchange=EPERM "
            "move=EACCES links=EACCES symlink=EACCES carry=EACCES "
            "hide=EACCES writers=EACCES hard=EPERM pipe=EPERM mode=EPERM attribute=EPERM");
  EXPECT_TRUE(fs::is_directory(folder.run() + "/" + kMark));
}

// A lock of a file that another process uses would hold up that process.
TEST(Confine, ItLocksNoFile) {
  const Scratch folder;
  put(folder / "lock", "");
  const std::string said = confined({.run_directory = folder.run()}, [&] {
    const int file = opened(folder / "lock", O_RDONLY);
    struct flock whole {};
    whole.l_type = F_RDLCK;
    return Outcomes()
        .add("flock", ::flock(file, LOCK_SH | LOCK_NB))
        .add("record", ::fcntl(file, F_SETLK, &whole))
        .add("wait", ::fcntl(file, F_SETLKW, &whole))
        .add("open file", ::fcntl(file, F_OFD_SETLK, &whole))
        .add("flags", ::fcntl(file, F_SETFL, O_NONBLOCK))
        .add("signals", ::fcntl(file, F_SETFL, O_ASYNC))
        .text();
  });
  EXPECT_EQ(said, "flock=EPERM record=EPERM wait=EPERM open file=EPERM flags=ok signals=EPERM");
}

TEST(Confine, WithoutARunDirectoryNothingCanBeWritten) {
  const Scratch folder;
  EXPECT_EQ(confined({}, [&] { return outcome(opened(folder.run() + "/new", O_CREAT | O_WRONLY)); }), "EACCES");
  EXPECT_FALSE(fs::exists(folder.run() + "/" + kMark));
}

TEST(Confine, ThereIsNoNetwork) {
  const std::string said = confined({}, [] {
    int pair[2];
    return Outcomes()
        .add("tcp", ::socket(AF_INET, SOCK_STREAM, 0))
        .add("tcp6", ::socket(AF_INET6, SOCK_STREAM, 0))
        .add("udp", ::socket(AF_INET, SOCK_DGRAM, 0))
        .add("unix", ::socket(AF_UNIX, SOCK_STREAM, 0))
        .add("netlink", ::socket(AF_NETLINK, SOCK_RAW, 0))
        .add("pair", ::socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        .text();
  });
  EXPECT_EQ(said, "tcp=EPERM tcp6=EPERM udp=EPERM unix=EPERM netlink=EPERM pair=EPERM");
}

TEST(Confine, ItStartsThreadsButNoProcesses) {
  const std::string said = confined({}, [] {
    char program[] = "/bin/true";
    char* const words[] = {program, nullptr};
    int sum = 0;
    std::thread([&] { sum = 7; }).join();
    return Outcomes()
        .add("thread", sum == 7 ? 0 : -1)
        .add("fork", ::fork())
        .add("plain", ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr))
        .add("execve", ::execve(program, words, nullptr))
        .add("unshare", ::unshare(CLONE_NEWUSER))
        .add("clone3", ::syscall(SYS_clone3, nullptr, 0))
        .add("bpf", ::syscall(SYS_bpf, 0, nullptr, 0))
        .add("uring", ::syscall(SYS_io_uring_setup, 1, nullptr))
        .add("memfd", ::memfd_create("x", 0))
        .text();
  });
  EXPECT_EQ(
      said,
      "thread=ok fork=EPERM plain=EPERM execve=EPERM unshare=EPERM clone3=ENOSYS bpf=EPERM uring=EPERM memfd=EPERM");
}

TEST(Confine, ItReachesNoOtherProcess) {
  const std::string said = confined({}, [] {
    const pid_t parent = ::getppid();
    char byte = 0;
    const iovec here{&byte, 1}, there{&byte, 1};
    ::signal(SIGUSR1, SIG_IGN);
    return Outcomes()
        .add("kill", ::kill(parent, SIGWINCH))
        .add("group", ::kill(0, SIGWINCH))
        .add("all", ::kill(-1, SIGWINCH))
        .add("tgkill", ::syscall(SYS_tgkill, parent, parent, SIGWINCH))
        .add("ptrace", ::ptrace(PTRACE_ATTACH, parent, nullptr, nullptr))
        .add("read", ::process_vm_readv(parent, &here, 1, &there, 1, 0))
        .add("memory", opened("/proc/" + std::to_string(parent) + "/mem", O_RDONLY))
        .add("pidfd", ::syscall(SYS_pidfd_open, parent, 0))
        .add("owner", ::fcntl(0, F_SETOWN, parent))
        .add("type", ::ioctl(0, TIOCSTI, "x"))
        .add("limit", ::prlimit(parent, RLIMIT_CPU, nullptr, nullptr))
        .add("tracer", ::prctl(PR_SET_DUMPABLE, 0))
        .add("itself", ::raise(SIGUSR1))
        .text();
  });
  EXPECT_EQ(
      said,
      "kill=EPERM group=EPERM all=EPERM tgkill=EPERM ptrace=EPERM read=EPERM memory=EACCES pidfd=EPERM owner=EPERM "
      "type=EPERM limit=EPERM tracer=EPERM itself=ok");
}

TEST(Confine, MemoryIsLimited) {
  constexpr uint64_t kLimit = uint64_t{256} << 20;
  const std::string said = confined({.memory_bytes = kLimit}, [] {
    const auto map = [](size_t bytes, int flags) {
      void* place = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
      return place == MAP_FAILED ? -1L : 0L;
    };
    return Outcomes()
        .add("small", map(kLimit / 4, MAP_PRIVATE | MAP_ANONYMOUS))
        .add("large", map(kLimit, MAP_PRIVATE | MAP_ANONYMOUS))
        .add("shared", map(4096, MAP_SHARED | MAP_ANONYMOUS))
        .text();
  });
  EXPECT_EQ(said, "small=ok large=ENOMEM shared=EPERM");
}

#if defined(__x86_64__)
// A 32-bit call has other numbers: 5 is open.
TEST(Confine, CallsOfAnotherArchitectureEndTheProcess) {
  const std::string said = confined({}, [] {
    long result = 0;
    asm volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory");  // getpid
    return std::to_string(result);
  });
  EXPECT_EQ(said, "signal " + std::to_string(SIGSYS));
  EXPECT_EQ(confined({}, [] { return outcome(::syscall(0x40000000 | SYS_getpid)); }), "EPERM");  // x32
}
#endif

TEST(Confine, AProcessWithThreadsIsNotConfined) {
  const std::string said = in_child([] {
    std::thread([] { ::pause(); }).detach();
    confine({});
    return std::string("confined");
  });
  EXPECT_NE(said.find("1 threads"), said.npos) << said;
}

TEST(Confine, AMarkThatIsAFileIsRefused) {
  const Scratch folder;
  put(folder.run() + "/" + kMark, "");
  EXPECT_NE(confined({.run_directory = folder.run()}, [] { return std::string("x"); }).find("cannot create"),
            std::string::npos);
}

// The user may have moved checkpoints/ to another disk. The code of a model must not choose where it may write.
TEST(Confine, ALinkInPlaceOfTheCheckpointsIsRefused) {
  const Scratch folder;
  fs::create_symlink("/etc", folder.run() + "/checkpoints");
  EXPECT_NE(confined({.run_directory = folder.run()}, [] { return std::string("x"); }).find("checkpoints"),
            std::string::npos);
}

TEST(Protection, WhatIsMissingIsNamed) {
  EXPECT_NO_THROW(check_complete({true, 2}));
  for (const int version : {0, 1})
    EXPECT_ERROR(error_of([=] { check_complete({true, version}); }), "SANDBOX_UNAVAILABLE", "no Landlock");
  EXPECT_ERROR(error_of([] { check_complete({false, 3}); }), "SANDBOX_UNAVAILABLE", "no seccomp");
  EXPECT_ERROR(error_of([] { check_complete({false, 0}); }), "SANDBOX_UNAVAILABLE", "no seccomp and no Landlock");
}

TEST(Protection, TheSentenceSaysWhatIsAllowed) {
  const std::string alone = to_sentence({true, 3}, "runs/x/1", false, {}, uint64_t{8} << 30);
  EXPECT_EQ(alone,
            "sandbox: seccomp, Landlock (version 3); writes: only runs/x/1; network: none; no new processes; memory: "
            "8.0 GiB; "
            "it may read what you can read");
  EXPECT_NE(to_sentence({true, 3}, "", true, {"10.0.0.2"}, 1).find("on this machine, and 10.0.0.2"), std::string::npos);
}

TEST(Strangers, AreConfinedRunsAndRegistries) {
  const Scratch folder;
  fs::create_directories(folder / "run/model");
  EXPECT_FALSE(is_untrusted(folder / "run/model/model.pt"));
  EXPECT_FALSE(is_untrusted(""));
  fs::create_directory(folder.run() + "/" + kMark);
  EXPECT_TRUE(is_untrusted(folder / "run/model/model.pt"));
  EXPECT_TRUE(is_untrusted(folder.run()));
  EXPECT_FALSE(is_untrusted(folder / "elsewhere"));
  EXPECT_TRUE(is_untrusted(folder / "runs/.sinew/artifacts/ab/cd"));
}

}  // namespace
}  // namespace sinew::sandbox
