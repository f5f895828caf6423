// For tests: sockets that send and receive raw bytes, with a limit on every wait.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace sinew::http {

constexpr double kPatience = 20;  // seconds; far more than any test needs

class RawConnection {
 public:
  explicit RawConnection(int descriptor) : descriptor_(descriptor) {}
  RawConnection(RawConnection&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), read_(std::move(other.read_)) {}
  ~RawConnection() { leave(); }

  // Returns false if the other side has closed the connection.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  void half_close() { ::shutdown(descriptor_, SHUT_WR); }
  void leave() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }

  // Returns the next complete message with its header, or "" if the other side closed first. The header must state the
  // length of the body.
  std::string message() {
    size_t end = 0;
    while ((end = read_.find("\r\n\r\n")) == std::string::npos) {
      if (!read_more()) return "";
    }
    size_t size = 0;
    if (const size_t at = read_.find("content-length: "); at < end) size = std::stoul(read_.substr(at + 16));
    while (read_.size() < end + 4 + size) {
      if (!read_more()) return "";
    }
    std::string text = read_.substr(0, end + 4 + size);
    read_.erase(0, text.size());
    if (read_.empty())
      read_.shrink_to_fit();  // some tests measure the memory of this process, which includes the server
    return text;
  }

  // Returns all bytes that arrive until the other side closes.
  std::string rest() {
    while (read_more()) continue;
    return std::exchange(read_, "");
  }

 private:
  bool read_more() {
    pollfd waiting{descriptor_, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(kPatience * 1000)) != 1) {
      ADD_FAILURE() << "nothing came in time";
      return false;
    }
    char piece[4096];
    const ssize_t got = ::recv(descriptor_, piece, sizeof piece, 0);
    if (got > 0) read_.append(piece, static_cast<size_t>(got));
    return got > 0;
  }

  int descriptor_;
  std::string read_;
};

inline sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

class RawClient : public RawConnection {
 public:
  explicit RawClient(uint16_t port) : RawConnection(connected(port)) {}

 private:
  static int connected(uint16_t port) {
    const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(port);
    EXPECT_EQ(::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0) << errno;
    return descriptor;
  }
};

// A listening socket whose answers are any bytes that the test chooses, valid or not.
class RawListener {
 public:
  RawListener() : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(descriptor_, reinterpret_cast<sockaddr*>(&address), size), 0) << errno;
    EXPECT_EQ(::listen(descriptor_, 16), 0) << errno;
    EXPECT_EQ(::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size), 0) << errno;
    port_ = ntohs(address.sin_port);
  }
  RawListener(const RawListener&) = delete;
  ~RawListener() { ::close(descriptor_); }

  RawConnection accept() {
    pollfd waiting{descriptor_, POLLIN, 0};
    EXPECT_EQ(::poll(&waiting, 1, static_cast<int>(kPatience * 1000)), 1) << "no client connected";
    return RawConnection(::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC));
  }
  bool has_client() {
    pollfd waiting{descriptor_, POLLIN, 0};
    return ::poll(&waiting, 1, 0) == 1;
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  int descriptor_;
  uint16_t port_ = 0;
};

inline std::string get(const std::string& target) {
  return "GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n";
}

inline std::string body_of(const std::string& message) {
  const size_t end = message.find("\r\n\r\n");
  return end == std::string::npos ? "" : message.substr(end + 4);
}

// Polls `condition` until it holds. Returns false if it does not hold within kPatience.
template <typename Condition>
bool eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kPatience);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    ::usleep(1000);
  }
  return true;
}

}  // namespace sinew::http
