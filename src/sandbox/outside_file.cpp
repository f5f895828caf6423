#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/error.h"
#include "sandbox/sandbox.h"

namespace sinew::sandbox {
namespace {

// The content goes through the pipe in blocks: a length and so many bytes. The length 0 ends the file.
using Length = uint32_t;

bool read_whole(int pipe, void* bytes, size_t size) {
  for (auto* at = static_cast<char*>(bytes); size > 0;) {
    const ssize_t got = ::read(pipe, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

bool write_whole(int pipe, const void* bytes, size_t size) {
  for (const auto* at = static_cast<const char*>(bytes); size > 0;) {
    const ssize_t done = ::write(pipe, at, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    at += done;
    size -= static_cast<size_t>(done);
  }
  return true;
}

constexpr const char* kWritten = "written";  // the answer; every other one is an error

[[noreturn]] void be_writer(const std::string& path, OutsideFile::Kind kind, int content, int answer) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::string said = kWritten;
  try {
    const auto fill = [&](Disk::File& file) {
      std::vector<std::byte> block;
      Length length = 0;
      while (read_whole(content, &length, sizeof length)) {
        if (length == 0) return;
        block.resize(length);
        if (!read_whole(content, block.data(), block.size())) break;
        file.write(block);
      }
      throw Error("OUTPUT_FAILED", "the worker ended before " + path + " was complete", "see what it printed");
    };
    kind == OutsideFile::Kind::output ? write_output(system_disk(), path, fill)
                                      : write_durably(system_disk(), path, fill);
  } catch (const std::exception& error) {
    said = error.what();
  }
  write_whole(answer, said.data(), said.size());
  ::_exit(0);
}

}  // namespace

OutsideFile::OutsideFile(const std::string& path, Kind kind) : path_(path) {
  int content[2], answers[2];
  const bool open = ::pipe2(content, O_CLOEXEC) == 0 && ::pipe2(answers, O_CLOEXEC) == 0;
  const pid_t writer = open ? ::fork() : -1;
  if (writer < 0) {
    throw Error("PROCESS_NOT_STARTED", "cannot start the process that writes " + path + ": " + std::strerror(errno),
                "raise the limits of processes and open files (ulimit -u, ulimit -n)");
  }
  if (writer == 0) {
    ::close(content[1]);
    ::close(answers[0]);
    be_writer(path, kind, content[0], answers[1]);
  }
  ::close(content[0]);
  ::close(answers[1]);
  content_ = content[1];
  answer_ = answers[0];
}

OutsideFile::~OutsideFile() {
  if (content_ >= 0) ::close(content_);
  if (answer_ >= 0) ::close(answer_);
}

void OutsideFile::write(const std::string& text) {
  const auto length = static_cast<Length>(text.size());
  if (length == 0) return;
  // If the writer has ended, commit() reads the reason.
  if (write_whole(content_, &length, sizeof length)) write_whole(content_, text.data(), text.size());
}

void OutsideFile::commit() {
  const Length end = 0;
  write_whole(content_, &end, sizeof end);
  std::string said;
  char byte = 0;
  while (said.size() < 4096 && read_whole(answer_, &byte, 1)) said += byte;
  if (said == kWritten) return;
  throw Error("OUTPUT_FAILED", "cannot write " + path_ + ": " + (said.empty() ? "its writer was killed" : said),
              "check the path and the space of its disk");
}

}  // namespace sinew::sandbox
