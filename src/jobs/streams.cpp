#include "jobs/streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/disk.h"
#include "base/error.h"

namespace sinew::jobs {
namespace {

constexpr size_t kPiece = 4 << 10;
constexpr int kMostPieces = 256;  // the most pieces that one call reads, so that the other streams get their turns
constexpr int kMostTurns = 4;     // most turns of reading at the end; a pipe holds less than one turn reads

}  // namespace

RankStream::RankStream(const std::string& path, Visit visit) : file_(path), visit_(std::move(visit)) {
  int both[2];
  if (::pipe2(both, O_CLOEXEC) != 0)
    throw Error("JOBS_NO_RESOURCES", std::string("cannot create a pipe: ") + std::strerror(errno),
                "the limit of open files may be reached: see ulimit -n");
  read_ = both[0];
  write_ = both[1];
  ::fcntl(read_, F_SETFL, O_NONBLOCK);
}

RankStream::RankStream(RankStream&& other) noexcept
    : file_(std::move(other.file_)),
      splitter_(std::move(other.splitter_)),
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
      splitter_.finish(visit_);
      close();
      return false;
    }
    const std::string_view bytes(piece.data(), static_cast<size_t>(got));
    file_.write(bytes);
    splitter_.add(bytes, visit_);
  }
  return read_ >= 0;
}

void RankStream::drain() {
  for (int turn = 0; turn < kMostTurns && read_ >= 0 && read(std::numeric_limits<double>::infinity()) && !dry_;
       ++turn) {
  }
  if (read_ >= 0) splitter_.finish(visit_);
  close();
}

FileTail::FileTail(std::string path) : path_(std::move(path)) {
  try {
    position_ = rundir::end_of_file(path_);  // what the file already holds comes from earlier attempts
  } catch (const DiskError&) {               // there is no regular file yet; read() tries again
  }
}

void FileTail::read(const RankStream::Visit& visit, bool last) {
  LineSplitter splitter;
  try {
    // the command may continue to write during this read
    const uint64_t end = last ? rundir::end_of_file(path_).offset : 0;
    for (bool more = true; more;) {
      rundir::FilePiece piece = rundir::read_piece(path_, position_, kMostPieces * kPiece);
      position_ = std::move(piece.after);
      splitter.add(piece.text, visit);
      more = last && piece.more && position_.offset < end;
    }
    if (last) read_unfinished_line(visit, end);
  } catch (const DiskError&) {  // the command may create the file later, or is replacing it
  }
}

void FileTail::read_unfinished_line(const RankStream::Visit& visit, uint64_t end) {
  if (position_.inside || end <= position_.offset) return;
  std::string text(std::min<uint64_t>(end - position_.offset, kMostPieces * kPiece), '\0');
  text.resize(system_disk().read_at(path_, position_.offset, std::as_writable_bytes(std::span(text))));
  if (!text.empty()) visit(Line{text});
}

}  // namespace sinew::jobs
