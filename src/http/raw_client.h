// For tests: a connection that sends any bytes and reads what comes, with a bound on every wait.
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

constexpr double kPatience = 20;  // seconds: far more than anything here takes

class RawClient {
 public:
  explicit RawClient(uint16_t port) : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0) << errno;
  }
  RawClient(RawClient&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)), read_(other.read_) {}
  ~RawClient() { leave(); }

  // False: the server closed meanwhile.
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

  // The next whole answer with its header, which must say its length. Empty: none came.
  std::string answer() {
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
    return text;
  }

  // All there is until the server closes.
  std::string rest() {
    while (read_more()) continue;
    return std::exchange(read_, "");
  }
  bool closed() const { return closed_; }  // seen by answer() or rest()

 private:
  bool read_more() {
    pollfd waiting{descriptor_, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(kPatience * 1000)) != 1) {
      ADD_FAILURE() << "nothing came in time";
      return false;
    }
    char piece[4096];
    const ssize_t got = ::recv(descriptor_, piece, sizeof piece, 0);
    closed_ = got <= 0;
    if (got > 0) read_.append(piece, static_cast<size_t>(got));
    return got > 0;
  }

  int descriptor_;
  std::string read_;
  bool closed_ = false;
};

// Waits, by looking often, until `condition` holds; false: it never did.
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
