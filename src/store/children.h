// For tests inside store/: runs work in a child process. A test can kill the child, run it as another user, or give it
// a smaller disk.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>
#include <utility>

#include "base/error.h"
#include "store/postgres_server.h"

namespace sinew::store {

// A forked child of the test. The parent reads in order the lines that the child passes to `say`, even those of a
// killed child.
class Child {
 public:
  using Say = std::function<void(const std::string& line)>;
  // Runs `work` in the child. An exception in `work` becomes the line "error: ...". The child exits and never returns
  // into the test.
  explicit Child(const std::function<void(const Say&)>& work) {
    int ends[2];
    if (::pipe(ends) != 0) throw TestError("pipe");
    pid_ = ::fork();
    if (pid_ < 0) throw TestError("fork");
    if (pid_ == 0) {
      ::close(ends[0]);
      const Say say = [&](const std::string& line) {
        const std::string text = line + "\n";
        if (::write(ends[1], text.data(), text.size()) != static_cast<ssize_t>(text.size())) ::_exit(3);
      };
      try {
        work(say);
      } catch (const Error& error) {
        say("error: " + to_string(error) + " | " + error.hint);
      } catch (const std::exception& error) {
        say(std::string("error: ") + error.what());
      }
      ::_exit(0);
    }
    ::close(ends[1]);
    descriptor_ = ends[0];
  }
  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        rest_(std::move(other.rest_)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (pid_ > 0) kill();
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  // Returns the next line, or "" if the child has ended and all its lines were read.
  std::string line() {
    for (;;) {
      const auto end = rest_.find('\n');
      if (end != std::string::npos) {
        std::string found = rest_.substr(0, end);
        rest_.erase(0, end + 1);
        return found;
      }
      char bytes[4096];
      const ssize_t size = ::read(descriptor_, bytes, sizeof bytes);
      if (size <= 0) return "";
      rest_.append(bytes, static_cast<size_t>(size));
    }
  }
  void kill() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  int descriptor_ = -1;
  std::string rest_;
};

}  // namespace sinew::store
