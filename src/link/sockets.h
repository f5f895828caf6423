// For tests: plain sockets, and a proxy that can change the bytes that pass through it.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"

namespace sinew::link {

class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }
  void shut() const { ::shutdown(descriptor_, SHUT_RDWR); }
  bool write(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes = bytes.subspan(static_cast<size_t>(count));
    }
    return true;
  }
  // Returns 0 if the connection ended or broke.
  size_t read_some(std::span<std::byte> bytes) const {
    const ssize_t count = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
    return count <= 0 ? 0 : static_cast<size_t>(count);
  }
  // Returns false if the connection ended or broke before `bytes` were full.
  bool read(std::span<std::byte> bytes) const {
    while (!bytes.empty()) {
      const size_t count = read_some(bytes);
      if (count == 0) return false;
      bytes = bytes.subspan(count);
    }
    return true;
  }

 private:
  int descriptor_;
};

inline sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

inline Socket dial(const std::string& address) {
  const sockaddr_in to = loopback(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SINEW_CHECK(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0, address);
  return socket;
}

class Listener {
 public:
  Listener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in here = loopback(0);
    SINEW_CHECK(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&here), sizeof(here)) == 0);
    SINEW_CHECK(::listen(socket_.get(), 64) == 0);
    socklen_t length = sizeof(here);
    SINEW_CHECK(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&here), &length) == 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(here.sin_port));
  }
  const std::string& address() const { return address_; }
  Socket accept() const { return Socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  void shut() const { socket_.shut(); }

 private:
  Socket socket_;
  std::string address_;
};

// A proxy between one dialler and one listener. It calls `meddle` with each piece of the dialler's bytes and the number
// of bytes before it. `meddle` may change the bytes. If it returns false, the proxy passes them on and then ends the
// connection.
class Proxy {
 public:
  using Meddle = std::function<bool(std::vector<std::byte>& bytes, size_t before)>;
  Proxy(std::string to, size_t piece, Meddle meddle) : to_(std::move(to)), piece_(piece), meddle_(std::move(meddle)) {}
  ~Proxy() {
    listener_.shut();
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
      shut_both();
    }
    if (thread_.joinable()) thread_.join();
  }
  const std::string& address() const { return listener_.address(); }
  // Starts the proxy. Until then, a dialler waits for an answer.
  void open() {
    thread_ = std::thread([this] { run(); });
  }

 private:
  void run() {
    Socket accepted = listener_.accept();
    if (accepted.get() < 0) return;
    {
      const std::lock_guard lock(mutex_);
      dialler_ = std::move(accepted);
      upstream_ = dial(to_);
      if (closing_) shut_both();
    }
    std::thread back([this] {
      std::vector<std::byte> bytes(1 << 16);
      while (const size_t count = upstream_.read_some(bytes)) {
        if (!dialler_.write(std::span(bytes).first(count))) break;
      }
      shut_both();
    });
    size_t before = 0;
    bool going_on = true;
    while (going_on) {
      std::vector<std::byte> bytes(piece_);
      bytes.resize(dialler_.read_some(bytes));
      if (bytes.empty()) break;
      const size_t count = bytes.size();
      going_on = meddle_(bytes, before);
      before += count;
      going_on = upstream_.write(bytes) && going_on;
    }
    // shuts down only one direction, so that the listener reads all passed bytes before it sees the end
    ::shutdown(upstream_.get(), SHUT_WR);
    dialler_.shut();
    back.join();
  }
  void shut_both() const {
    if (dialler_.get() >= 0) dialler_.shut();
    if (upstream_.get() >= 0) upstream_.shut();
  }

  const std::string to_;
  const size_t piece_;
  const Meddle meddle_;
  Listener listener_;
  std::mutex mutex_;
  bool closing_ = false;
  Socket dialler_, upstream_;
  std::thread thread_;
};

}  // namespace sinew::link
