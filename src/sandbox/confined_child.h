// For tests: runs code in a confined child process.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>

#include "sandbox/sandbox.h"

namespace sinew::sandbox {

class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sinew-sandbox-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directory(run());
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  std::string run() const { return path_ + "/run"; }  // a run directory; what is beside it is outside of the sandbox

 private:
  std::string path_;
};

// How a child ended: what its code returned, or why it did not return.
inline std::string in_child(const std::function<std::string()>& code) {
  int pipe[2];
  if (::pipe(pipe) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    std::string said;
    try {
      said = code();
    } catch (const std::exception& error) {
      said = std::string("error: ") + error.what();
    }
    [[maybe_unused]] const ssize_t written = ::write(pipe[1], said.data(), said.size());
    ::_exit(0);
  }
  ::close(pipe[1]);
  std::string said;
  char block[256];
  for (ssize_t got; (got = ::read(pipe[0], block, sizeof block)) > 0;) said.append(block, static_cast<size_t>(got));
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status)) : said;
}

// Confines a child and calls `code` in it.
inline std::string confined(const Confinement& confinement, const std::function<std::string()>& code) {
  return in_child([&] {
    confine(confinement);
    return code();
  });
}

// "ok", or the name of the errno with which a system call failed.
inline std::string outcome(long result) {
  return result >= 0 ? "ok" : ::strerrorname_np(errno);
}

// The outcomes of calls, as "name=ok other=EPERM".
class Outcomes {
 public:
  Outcomes& add(const std::string& name, long result) {
    const std::string how = outcome(result);
    text_ += (text_.empty() ? "" : " ") + name + "=" + how;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace sinew::sandbox
