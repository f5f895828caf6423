#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <thread>

#include "base/expected_error.h"
#include "sandbox/confined_child.h"
#include "sandbox/policy.h"

namespace sinew::sandbox {
namespace {

sockaddr_in address_of(const char* host, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  ::inet_pton(AF_INET, host, &address.sin_addr);
  return address;
}

const sockaddr* plain(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

int tcp_socket() {
  return ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

// Listens at all addresses of this machine.
class OpenPort {
 public:
  OpenPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in any = address_of("0.0.0.0", 0);
    ::bind(socket_, plain(any), sizeof any);
    ::listen(socket_, 1024);
    sockaddr_in bound{};
    socklen_t size = sizeof bound;
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&bound), &size);
    port_ = ntohs(bound.sin_port);
  }
  ~OpenPort() { ::close(socket_); }
  OpenPort(const OpenPort&) = delete;
  OpenPort& operator=(const OpenPort&) = delete;
  uint16_t port() const { return port_; }

 private:
  int socket_;
  uint16_t port_ = 0;
};

// Connects and waits until the connection stands or fails.
long connected(int socket, const sockaddr_in& to) {
  if (::connect(socket, plain(to), sizeof to) == 0) return 0;
  if (errno != EINPROGRESS) return -1;
  pollfd wait{socket, POLLOUT, 0};
  ::poll(&wait, 1, 10'000);
  socklen_t size = sizeof errno;
  int error = 0;
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  errno = error;
  return error == 0 ? 0 : -1;
}

// Allows links to the host 127.0.0.2 only, at any port.
Confinement with_links(const Scratch& folder) {
  Confinement confinement{.run_directory = folder.run()};
  confinement.links = std::make_unique<const Links>(Links{folder.run(), {"127.0.0.2"}, "127.0.0.1"});
  return confinement;
}

TEST(ConfinedLinks, ReachOnlyTheHostsOfTheRun) {
  const Scratch folder;
  const OpenPort stranger;
  const std::string said = confined(with_links(folder), [&] {
    return Outcomes()
        .add("named", connected(tcp_socket(), address_of("127.0.0.2", stranger.port())))
        .add("stranger", connected(tcp_socket(), address_of("127.0.0.1", stranger.port())))
        .add("any", connected(tcp_socket(), address_of("0.0.0.0", stranger.port())))
        .add("elsewhere", connected(tcp_socket(), address_of("192.0.2.1", 80)))
        .text();
  });
  EXPECT_EQ(said, "named=ok stranger=EACCES any=EACCES elsewhere=EACCES");
}

TEST(ConfinedLinks, ListenOnlyAtTheAddressOfTheRun) {
  const Scratch folder;
  const std::string said = confined(with_links(folder), [&] {
    const sockaddr_in chosen = address_of("127.0.0.1", 0), all = address_of("0.0.0.0", 0),
                      fixed = address_of("127.0.0.1", 8080);
    const int socket = tcp_socket(), other = tcp_socket();
    return Outcomes()
        .add("fixed", ::bind(other, plain(fixed), sizeof fixed))
        .add("all", ::bind(other, plain(all), sizeof all))
        .add("unbound", ::listen(other, 1))
        .add("bind", ::bind(socket, plain(chosen), sizeof chosen))
        .add("listen", ::listen(socket, 16))
        .add("accept", ::accept4(socket, nullptr, nullptr, SOCK_CLOEXEC))
        .text();
  });
  EXPECT_EQ(said, "fixed=EACCES all=EACCES unbound=EACCES bind=ok listen=ok accept=EAGAIN");
}

// A member that is elected takes the lock of its run, and no other lock.
TEST(ConfinedLinks, LockOnlyTheRun) {
  const Scratch folder;
  const std::string own = folder.run() + "/.lock", other = folder / "lock";
  for (const std::string& path : {own, other}) std::ofstream(path).put('x');
  const int outside = ::open(own.c_str(), O_RDWR | O_CLOEXEC);
  const auto outcomes = [&] {
    const int lock = ::open(own.c_str(), O_RDWR), stranger = ::open(other.c_str(), O_RDONLY);
    return Outcomes()
        .add("own", ::flock(lock, LOCK_EX | LOCK_NB))
        .add("again", ::flock(::open(own.c_str(), O_RDWR), LOCK_EX | LOCK_NB))
        .add("free", ::flock(lock, LOCK_UN))
        .add("wait", ::flock(lock, LOCK_EX))
        .add("stranger", ::flock(stranger, LOCK_SH | LOCK_NB))
        .text();
  };
  EXPECT_EQ(confined(with_links(folder), outcomes), "own=ok again=EAGAIN free=ok wait=EOPNOTSUPP stranger=EACCES");
  ASSERT_EQ(::flock(outside, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(confined(with_links(folder), outcomes), "own=EAGAIN again=EAGAIN free=ok wait=EOPNOTSUPP stranger=EACCES");
  ::close(outside);
}

TEST(ConfinedLinks, AreTcpAndNothingElse) {
  const Scratch folder;
  const OpenPort stranger;
  const std::string said = confined(with_links(folder), [&] {
    const sockaddr_in to = address_of("192.0.2.1", 80);
    const char byte = 0;
    iovec piece{const_cast<char*>(&byte), 1};
    msghdr message{};
    message.msg_name = const_cast<sockaddr_in*>(&to);
    message.msg_namelen = sizeof to;
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    const int blocking = ::socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in named = address_of("127.0.0.2", stranger.port());
    return Outcomes()
        .add("udp", ::socket(AF_INET, SOCK_DGRAM, 0))
        .add("unix", ::socket(AF_UNIX, SOCK_STREAM, 0))
        .add("mptcp", ::socket(AF_INET, SOCK_STREAM, 262))
        .add("fast", ::sendto(tcp_socket(), &byte, 1, MSG_FASTOPEN, plain(to), sizeof to))
        .add("message", ::sendmsg(tcp_socket(), &message, MSG_FASTOPEN))
        .add("to", ::sendto(tcp_socket(), &byte, 1, 0, plain(to), sizeof to))
        .add("waiting", ::connect(blocking, plain(named), sizeof named))
        .add("file", ::connect(1, plain(named), sizeof named))
        .add("long", ::connect(tcp_socket(), plain(named), 4096))
        .add("nowhere", ::connect(tcp_socket(), nullptr, sizeof named))
        .add("nothing", ::connect(tcp_socket(), plain(named), 0))
        .text();
  });
  EXPECT_EQ(
      said,
      "udp=EPERM unix=EPERM mptcp=EPERM fast=EPERM message=EPERM to=EPERM waiting=EOPNOTSUPP file=EACCES long=EINVAL "
      "nowhere=EFAULT nothing=EACCES");
}

// A second thread changes the address while the broker checks it. The broker must connect to what it has checked.
TEST(ConfinedLinks, AnAddressThatChangesIsCheckedAsItIsUsed) {
  const Scratch folder;
  const OpenPort stranger;
  const std::string said = confined(with_links(folder), [&] {
    sockaddr_in address = address_of("127.0.0.2", stranger.port());
    const in_addr_t good = address.sin_addr.s_addr, bad = address_of("127.0.0.1", 0).sin_addr.s_addr;
    std::atomic<bool> over{false};
    std::atomic_ref<in_addr_t> host(address.sin_addr.s_addr);
    std::thread changer([&] {
      while (!over) host = host == good ? bad : good;
    });
    int right = 0, wrong = 0, refused = 0;
    for (int i = 0; i < 300; ++i) {
      const int socket = tcp_socket();
      if (connected(socket, address) != 0) ++refused;
      sockaddr_in peer{};
      socklen_t size = sizeof peer;
      if (::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) == 0)
        ++(peer.sin_addr.s_addr == good ? right : wrong);
      ::close(socket);
    }
    over = true;
    changer.join();
    return std::string(right > 0 ? "some right" : "none right") + (refused > 0 ? ", some refused" : ", none refused") +
           (wrong > 0 ? ", some wrong" : "");
  });
  EXPECT_EQ(said, "some right, some refused");
}

// The broker ends with the worker, however the worker ends.
TEST(ConfinedLinks, TheBrokerEndsWithItsWorker) {
  const Scratch folder;
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const std::string said = confined(with_links(folder), [&]() -> std::string {
    ::kill(::getpid(), SIGKILL);
    return "alive";
  });
  ::close(pipe[1]);
  EXPECT_EQ(said, "signal " + std::to_string(SIGKILL));
  pollfd wait{pipe[0], POLLIN, 0};
  EXPECT_EQ(::poll(&wait, 1, 30'000), 1)
      << "a process still has the pipe";  // it is readable once nobody has its other end
  ::close(pipe[0]);
}

TEST(LinkPolicy, AnAddressIsReadWhole) {
  sockaddr_storage storage{};
  auto& narrow = reinterpret_cast<sockaddr_in&>(storage);
  narrow = address_of("10.0.0.1", 80);
  EXPECT_EQ(endpoint_of(storage, sizeof narrow), (Endpoint{"10.0.0.1", 80}));
  EXPECT_EQ(endpoint_of(storage, sizeof narrow - 1), std::nullopt);
  storage.ss_family = AF_UNIX;
  EXPECT_EQ(endpoint_of(storage, sizeof storage), std::nullopt);
  storage.ss_family = AF_UNSPEC;
  EXPECT_EQ(endpoint_of(storage, sizeof storage), std::nullopt);
}

TEST(LinkPolicy, AnIpv4AddressInsideAnIpv6OneIsTheSame) {
  sockaddr_storage storage{};
  auto& wide = reinterpret_cast<sockaddr_in6&>(storage);
  wide.sin6_family = AF_INET6;
  wide.sin6_port = htons(80);
  ::inet_pton(AF_INET6, "::ffff:10.0.0.1", &wide.sin6_addr);
  EXPECT_EQ(endpoint_of(storage, sizeof wide), (Endpoint{"10.0.0.1", 80}));
  ::inet_pton(AF_INET6, "2001:db8::1", &wide.sin6_addr);
  EXPECT_EQ(endpoint_of(storage, sizeof wide), (Endpoint{"2001:db8::1", 80}));
}

TEST(LinkPolicy, OnThisMachineOnlyProcessesOfTheRun) {
  const Links links{"runs/x/1", {"10.0.0.2"}, "10.0.0.1"};
  const Surroundings here{[](const std::string& host) { return host == "10.0.0.1" || host == "127.0.0.1"; },
                          [](const Endpoint& to) { return to.port == 4000; }};
  EXPECT_TRUE(may_connect(links, {"10.0.0.1", 4000}, here));
  EXPECT_FALSE(may_connect(links, {"10.0.0.1", 22}, here));
  EXPECT_TRUE(may_connect(links, {"0.0.0.0", 4000}, here)) << "as the kernel understands it";
  EXPECT_FALSE(may_connect(links, {"0.0.0.0", 22}, here));
  EXPECT_TRUE(may_connect(links, {"10.0.0.2", 22}, here));
  EXPECT_FALSE(may_connect(links, {"10.0.0.3", 4000}, here)) << "another machine with the same port";
  EXPECT_TRUE(may_bind(links, {"10.0.0.1", 0}));
  EXPECT_FALSE(may_bind(links, {"10.0.0.1", 22}));
  EXPECT_FALSE(may_bind(links, {"0.0.0.0", 0}));
}

TEST(LinkPolicy, AProcessOfTheRunNamesItsDirectory) {
  const auto same = [](const std::string& path) { return path == "runs/x/1"; };
  const auto words = [](std::initializer_list<std::string> all) {
    std::string text;
    for (const std::string& word : all) text += word + std::string(1, '\0');
    return text;
  };
  EXPECT_TRUE(is_process_of_run("/usr/bin/sinew-worker", words({"sinew-worker", "/proc/1/fd/3", "runs/x/1"}), same));
  EXPECT_TRUE(is_process_of_run("/usr/bin/sinew (deleted)", words({"sinew", "coordinator", "runs/x/1"}), same));
  EXPECT_FALSE(is_process_of_run("/usr/bin/sinew", words({"sinew", "server", "runs/x/1"}), same));
  EXPECT_FALSE(is_process_of_run("/usr/bin/sinew-worker", words({"sinew-worker", "/proc/1/fd/3", "runs/x/2"}), same));
  EXPECT_FALSE(is_process_of_run("/usr/bin/python3", words({"sinew-worker", "x", "runs/x/1"}), same));
  EXPECT_FALSE(is_process_of_run("/usr/bin/sinew-worker", "", same));
}

// Another program may listen at the same port of another address, and then gets the connections to it.
TEST(LinkPolicy, AListenerIsFoundByItsAddress) {
  const std::string table =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
      "   0: 0100007F:1F90 0200007F:0050 01 00000000:00000000 00:00000000 00000000     0        0 111 1 0 20 4 30 10 "
      "-1\n"
      "   1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 222 1 0 100 0 0 10 "
      "0\n"
      "   2: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1 0 100 0 0 10 "
      "0\n"
      "  sl  local_address                         remote_address                        st\n"
      "   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 "
      "00:00000000 00000000     0        0 444 1 0 100 0 0 10 0\n"
      "   1: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 "
      "00:00000000 00000000     0        0 555 1 0 100 0 0 10 0\n";
  using Inodes = std::vector<std::string>;
  EXPECT_EQ(listeners_at(table, {"127.0.0.1", 8080}), Inodes{"222"});
  EXPECT_EQ(listeners_at(table, {"10.0.0.1", 8080}), (Inodes{"333", "444"}));
  EXPECT_EQ(listeners_at(table, {"::1", 80}), Inodes{"555"});
  EXPECT_EQ(listeners_at(table, {"127.0.0.1", 80}), Inodes{});
  EXPECT_EQ(listeners_at("", {"127.0.0.1", 80}), Inodes{});
}

TEST(OutsideFile, IsWrittenByAConfinedProcess) {
  const Scratch folder;
  const std::string path = folder / "out.csv";
  const std::string said = in_child([&] {
    OutsideFile file(path, OutsideFile::Kind::output);
    confine({});
    file.write("one\n");
    file.write("");
    file.write(std::string(1 << 20, 'x'));
    file.commit();
    return std::string("done");
  });
  EXPECT_EQ(said, "done");
  EXPECT_EQ(std::filesystem::file_size(path), 4U + (1U << 20));
}

TEST(OutsideFile, WithoutCommitTheOldFileStays) {
  const Scratch folder;
  const std::string path = folder / "out.csv";
  std::ofstream(path) << "old";
  in_child([&] {
    OutsideFile file(path, OutsideFile::Kind::output);
    file.write("new");
    return std::string();
  });
  std::string text;
  std::getline(std::ifstream(path), text);
  EXPECT_EQ(text, "old");
}

// The code of a model may have put a pipe or a link in the place of a result. To open the pipe would take for ever.
TEST(OutsideFile, AResultReplacesWhatHasItsName) {
  const Scratch folder;
  const std::string pipe = folder / "eval-test.json", link = folder / "eval-val.json", victim = folder / "victim";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0644), 0);
  std::ofstream(victim) << "old";
  std::filesystem::create_symlink(victim, link);
  for (const std::string& path : {pipe, link}) {
    const std::string said = in_child([&] {
      ::alarm(30);
      OutsideFile file(path, OutsideFile::Kind::result);
      confine({});
      file.write("new");
      file.commit();
      return std::string("done");
    });
    EXPECT_EQ(said, "done") << path;
    EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(path))) << path;
    std::string text;
    std::getline(std::ifstream(path), text);
    EXPECT_EQ(text, "new") << path;
  }
  std::string text;
  std::getline(std::ifstream(victim), text);
  EXPECT_EQ(text, "old");
}

TEST(OutsideFile, AFailureIsReported) {
  const Scratch folder;
  const std::string said = in_child([&] {
    std::signal(SIGPIPE, SIG_IGN);
    OutsideFile file(folder / "no/such/folder/out.csv", OutsideFile::Kind::output);
    confine({});
    file.write("x");
    file.commit();
    return std::string("done");
  });
  EXPECT_NE(said.find("cannot write " + (folder / "no/such/folder/out.csv")), said.npos) << said;
}

}  // namespace
}  // namespace sinew::sandbox
