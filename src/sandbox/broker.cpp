#include "sandbox/broker.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <set>
#include <utility>

#include "base/error.h"
#include "sandbox/policy.h"

// These system calls are newer than the headers of some systems. Their numbers are the same on all processors.
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

namespace sinew::sandbox {
namespace {

constexpr const char* kLockFile = ".lock";  // docs/formats/run-directory.md

class Owned {
 public:
  explicit Owned(int descriptor = -1) : descriptor_(descriptor) {}
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

bool is_tcp(int socket) {
  const auto option = [socket](int name) {
    int value = -1;
    socklen_t size = sizeof value;
    return ::getsockopt(socket, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
  };
  const int family = option(SO_DOMAIN);
  return (family == AF_INET || family == AF_INET6) && option(SO_TYPE) == SOCK_STREAM &&
         option(SO_PROTOCOL) == IPPROTO_TCP;
}

// The process outside of the sandbox. Its results are those of the system calls: 0 or an errno.
class Outside {
 public:
  Outside(const Links& links, pid_t worker)
      : links_(links),
        here_(surroundings(links.run_directory)),
        worker_(static_cast<int>(::syscall(SYS_pidfd_open, worker, 0))),
        memory_(::open(("/proc/" + std::to_string(worker) + "/mem").c_str(), O_RDONLY | O_CLOEXEC)) {}

  // Returns whether the kernel lets this process duplicate a descriptor of the worker, and read its memory.
  int test(int descriptor) const {
    if (worker_.get() < 0 || memory_.get() < 0) return errno == 0 ? EPERM : errno;
    return Owned(duplicate(descriptor)).get() < 0 ? errno : 0;
  }

  void serve(int listener) {
    while (true) {
      pollfd wait{listener, POLLIN, 0};
      if (::poll(&wait, 1, -1) < 0) continue;
      if ((wait.revents & POLLIN) == 0) return;  // the worker has ended
      seccomp_notif call{};
      if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) continue;  // the calling thread has ended meanwhile
      seccomp_notif_resp answer{};
      answer.id = call.id;
      answer.error = -perform(listener, call);
      ::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
  }

 private:
  int duplicate(int descriptor) const {
    return static_cast<int>(::syscall(SYS_pidfd_getfd, worker_.get(), descriptor, 0));
  }

  // Everything is checked on copies that the worker cannot change: the address, and a duplicate of the descriptor.
  int perform(int listener, const seccomp_notif& call) {
    const auto& [number, unused_architecture, unused_place, arguments] = call.data;
    sockaddr_storage address{};
    size_t size = 0;
    if (number == SYS_connect || number == SYS_bind) {
      size = static_cast<uint32_t>(arguments[2]);
      if (size > sizeof address) return EINVAL;
      const ssize_t got = ::pread(memory_.get(), &address, size, static_cast<off_t>(arguments[1]));
      if (got != static_cast<ssize_t>(size)) return EFAULT;
    }
    // If this id is no longer valid, the thread has ended and the memory may have been that of another process.
    if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &call.id) != 0) return EINTR;
    const Owned socket(duplicate(static_cast<int>(arguments[0])));
    if (socket.get() < 0) return EBADF;
    if (number == SYS_flock) return lock(socket.get(), static_cast<int>(arguments[1]));
    if (!is_tcp(socket.get())) return EACCES;
    if (number == SYS_listen) return begin_listening(socket.get(), static_cast<int>(arguments[1]));
    const auto endpoint = endpoint_of(address, size);
    if (!endpoint) return EACCES;
    const auto* plain = reinterpret_cast<const sockaddr*>(&address);
    const auto length = static_cast<socklen_t>(size);
    if (number == SYS_bind) {
      if (!may_bind(links_, *endpoint))
        return refuse("to listen at", *endpoint, "a worker listens only at " + links_.listen);
      return ::bind(socket.get(), plain, length) == 0 ? 0 : errno;
    }
    // A connect that waits would hold up the connects of other threads.
    if ((::fcntl(socket.get(), F_GETFL) & O_NONBLOCK) == 0) return EOPNOTSUPP;
    if (!may_connect(links_, *endpoint, here_)) {
      return refuse(
          "a connection to", *endpoint,
          "no process of this run listens there; if it is another machine of the run, name it: --sandbox-hosts " +
              endpoint->host);
    }
    return ::connect(socket.get(), plain, length) == 0 ? 0 : errno;
  }

  // Locks the lock file of the run, which an elected member needs. A lock of another file could hold up any process
  // that uses that file. The lock belongs to the open file, so it is also the worker's.
  int lock(int file, int operation) const {
    struct stat given {
    }, own{};
    const std::string path = links_.run_directory + "/" + kLockFile;
    if (::fstat(file, &given) != 0 || ::lstat(path.c_str(), &own) != 0) return errno;
    if (given.st_dev != own.st_dev || given.st_ino != own.st_ino) return EACCES;
    if (operation != LOCK_UN && (operation & LOCK_NB) == 0) return EOPNOTSUPP;  // the broker must not wait
    return ::flock(file, operation) == 0 ? 0 : errno;
  }

  // Listening at a socket without an address would make the kernel choose all addresses of this machine.
  int begin_listening(int socket, int backlog) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return errno;
    const auto endpoint = endpoint_of(address, size);
    if (!endpoint || endpoint->port == 0 || endpoint->host != links_.listen) return EACCES;
    return ::listen(socket, backlog) == 0 ? 0 : errno;
  }

  // Refuses the call, and says so once for each host: otherwise, users could hardly find out why a link is missing.
  int refuse(const char* what, const Endpoint& endpoint, const std::string& why) {
    if (said_.size() < 16 && said_.insert(endpoint.host).second) {
      std::fprintf(stderr, "sinew-worker: the sandbox refuses %s %s port %d: %s\n", what, endpoint.host.c_str(),
                   endpoint.port, why.c_str());
    }
    return EACCES;
  }

  const Links& links_;
  const Surroundings here_;
  const Owned worker_, memory_;
  std::set<std::string> said_;
};

// A message of one byte with room for a descriptor, for sendmsg and recvmsg.
class DescriptorMessage {
 public:
  DescriptorMessage() {
    message_.msg_iov = &piece_;
    message_.msg_iovlen = 1;
    message_.msg_control = control_;
    message_.msg_controllen = sizeof control_;
  }
  DescriptorMessage(const DescriptorMessage&) = delete;
  DescriptorMessage& operator=(const DescriptorMessage&) = delete;

  // Receives a descriptor through the socket. Returns -1 if the other process has ended.
  int receive(int channel) {
    if (::recvmsg(channel, &message_, MSG_CMSG_CLOEXEC) != 1) return -1;
    const cmsghdr* header = CMSG_FIRSTHDR(&message_);
    int descriptor = -1;
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS)
      std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    return descriptor;
  }

  bool send(int channel, int descriptor) {
    cmsghdr* header = CMSG_FIRSTHDR(&message_);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    return ::sendmsg(channel, &message_, MSG_NOSIGNAL) == 1;
  }

 private:
  char byte_ = 0;
  iovec piece_{&byte_, 1};
  alignas(cmsghdr) char control_[CMSG_SPACE(sizeof(int))] = {};
  msghdr message_{};
};

bool answer(int channel, int code) {
  return ::send(channel, &code, sizeof code, MSG_NOSIGNAL) == sizeof code;
}

// The broker ignores signals, because the worker needs links until its orderly end. It ends with the worker.
[[noreturn]] void be_broker(const Links& links, pid_t worker, int channel, int descriptor_of_worker) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != worker) ::_exit(0);
  char ready = 0;
  if (::read(channel, &ready, 1) != 1) ::_exit(0);
  Outside outside(links, worker);
  const int problem = outside.test(descriptor_of_worker);
  if (!answer(channel, problem) || problem != 0) ::_exit(0);
  const int listener = DescriptorMessage().receive(channel);
  if (listener < 0 || !answer(channel, 0)) ::_exit(0);
  ::close(channel);
  outside.serve(listener);
  ::_exit(0);
}

}  // namespace

Broker::Broker(const Links& links) {
  int ends[2];
  const pid_t worker = ::getpid();
  const bool paired = ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0;
  const pid_t broker = paired ? ::fork() : -1;
  if (broker < 0) {
    throw Error("PROCESS_NOT_STARTED",
                std::string("cannot start the process that opens links: ") + std::strerror(errno),
                "raise the limits of processes and open files (ulimit -u, ulimit -n)");
  }
  if (broker == 0) {
    ::close(ends[0]);
    be_broker(links, worker, ends[1], ends[0]);
  }
  ::close(ends[1]);
  channel_ = ends[0];
  ::prctl(PR_SET_PTRACER, broker, 0, 0, 0);  // fails without Yama; then the broker may look at this process anyway
  const char ready = 1;
  if (::write(channel_, &ready, 1) != 1) expect_answer("ended");
  expect_answer("may not duplicate the sockets of a worker");
}

Broker::~Broker() {
  ::close(channel_);
}

void Broker::expect_answer(const char* what) const {
  int code = 0;
  const bool answered = ::read(channel_, &code, sizeof code) == sizeof code;
  if (answered && code == 0) return;
  throw Error("SANDBOX_UNAVAILABLE",
              std::string("the process that opens the links of a confined worker ") + what +
                  (answered ? std::string(": ") + std::strerror(code) : ""),
              "a container may forbid pidfd_getfd: allow it (--cap-add SYS_PTRACE), train with one worker, or use "
              "--no-sandbox if you trust the model like a program that you run");
}

void Broker::serve(int listener) {
  if (!DescriptorMessage().send(channel_, listener)) expect_answer("ended");
  expect_answer("ended");
}

}  // namespace sinew::sandbox
