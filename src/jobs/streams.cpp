#include "jobs/streams.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace sinew::jobs {
namespace {

constexpr size_t kPiece = 4 << 10;
constexpr int kMostPieces = 256;  // in one go: others want to be heard, too
constexpr int kMostTurns = 4;     // of these at the end; a pipe holds less than one of them

constexpr double kNoEnd = std::numeric_limits<double>::infinity();

}  // namespace

RankStream::RankStream(const std::string& path, Visit visit) : file_(path), visit_(std::move(visit)) {
  int both[2];
  if (::pipe2(both, O_CLOEXEC) != 0)
    throw Error(std::string("cannot make a pipe: ") + std::strerror(errno), "are there too many open files?");
  read_ = both[0];
  write_ = both[1];
  ::fcntl(read_, F_SETFL, O_NONBLOCK);
}

RankStream::RankStream(RankStream&& other) noexcept
    : file_(std::move(other.file_)),
      cutter_(std::move(other.cutter_)),
      visit_(std::move(other.visit_)),
      read_(std::exchange(other.read_, -1)),
      write_(other.write_) {}

RankStream::~RankStream() {
  close();
}

void RankStream::close() {
  if (read_ >= 0) ::close(std::exchange(read_, -1));
}

bool RankStream::read(double seconds) {
  const double end = system_clock().monotonic_seconds() + seconds;
  std::array<char, kPiece> piece;
  dry_ = false;
  for (int i = 0; i < kMostPieces && read_ >= 0; ++i) {
    if (i > 0 && system_clock().monotonic_seconds() >= end) break;
    const ssize_t got = ::read(read_, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    dry_ = got <= 0;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) {
      cutter_.finish(visit_);
      close();
      return false;
    }
    const std::string_view bytes(piece.data(), static_cast<size_t>(got));
    file_.write(bytes);
    cutter_.add(bytes, visit_);
  }
  return read_ >= 0;
}

void RankStream::drain() {
  for (int turn = 0; turn < kMostTurns && read_ >= 0 && read(kNoEnd) && !dry_; ++turn) {
  }
  if (read_ >= 0) cutter_.finish(visit_);
  close();
}

FileTail::FileTail(std::string path) : path_(std::move(path)) {
  struct stat facts {};
  if (::stat(path_.c_str(), &facts) != 0) return;
  file_ = facts.st_ino;
  offset_ = static_cast<uint64_t>(facts.st_size);  // what stands there is of another attempt
}

FileTail::~FileTail() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool FileTail::open() {
  struct stat facts {};
  if (::stat(path_.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return false;
  if (facts.st_ino != file_) {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
    file_ = facts.st_ino;
    begin_anew();
  }
  size_ = static_cast<uint64_t>(facts.st_size);
  if (size_ < offset_) begin_anew();
  if (descriptor_ < 0) descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  return descriptor_ >= 0;
}

void FileTail::begin_anew() {
  offset_ = 0;
  cutter_ = LineCutter();
}

void FileTail::read(const RankStream::Visit& visit, bool last) {
  std::array<char, kPiece> piece;
  uint64_t left = open() && last ? size_ - offset_ : kMostPieces * kPiece;
  while (left > 0 && open()) {
    const size_t most = std::min<uint64_t>(left, piece.size());
    const ssize_t got = ::pread(descriptor_, piece.data(), most, static_cast<off_t>(offset_));
    if (got <= 0) break;
    offset_ += static_cast<uint64_t>(got);
    left -= static_cast<uint64_t>(got);
    cutter_.add(std::string_view(piece.data(), static_cast<size_t>(got)), visit);
  }
  if (last) cutter_.finish(visit);
}

}  // namespace sinew::jobs
