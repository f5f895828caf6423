#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/disk.h"
#include "base/hash.h"
#include "rundir/rundir.h"

namespace sinew::rundir {
namespace {

class OpenFile {
 public:
  explicit OpenFile(const std::string& path)
      : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_ < 0 && errno != ENOENT) fail(errno);
  }
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  uint64_t size() {
    if (descriptor_ < 0) return 0;
    struct stat facts {};
    if (::fstat(descriptor_, &facts) < 0) fail(errno);
    if (!S_ISREG(facts.st_mode)) fail(EINVAL);
    return static_cast<uint64_t>(facts.st_size);
  }
  std::string read(uint64_t begin, uint64_t end) {
    std::string text(end - begin, '\0');
    size_t done = 0;
    while (descriptor_ >= 0 && done < text.size()) {
      const ssize_t got =
          ::pread(descriptor_, text.data() + done, text.size() - done, static_cast<off_t>(begin + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(errno);
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    text.resize(done);
    return text;
  }

 private:
  [[noreturn]] void fail(int code) {
    throw DiskError("cannot read " + path_ + ": " + (code == EINVAL ? "it is not a file" : std::strerror(code)), "",
                    code);
  }
  const std::string& path_;
  int descriptor_;
};

std::string digest_text(std::string_view bytes) {
  return bytes.empty() ? "" : to_hex(digest_of(bytes));
}

// Returns up to kWindow bytes before the position. Returns nullopt if they differ from the bytes that were read there
// before.
std::optional<std::string> window_before(OpenFile& file, const FilePosition& position) {
  if (file.size() < position.offset) return std::nullopt;
  std::string bytes = file.read(position.offset - std::min(position.offset, kWindow), position.offset);
  if (digest_text(bytes) != position.window) return std::nullopt;
  return bytes;
}

}  // namespace

FilePiece read_piece(const std::string& path, const FilePosition& position, int64_t piece_bytes) {
  OpenFile file(path);
  FilePiece piece;
  piece.after = position;
  auto window = window_before(file, piece.after);
  if (!window) {
    piece.cut_back = true;
    piece.after = {};
    window = "";
  }
  const uint64_t begin = piece.after.offset;
  const std::string bytes = file.read(begin, std::min(file.size(), begin + static_cast<uint64_t>(piece_bytes)));
  // If the window has changed, the file was truncated and grew again during the read. Then `bytes` mixes old and new
  // content. Report the truncation, and let the caller read again from the beginning.
  if (!window_before(file, piece.after)) {
    return {.cut_back = true, .text = "", .too_long = 0, .after = {}, .more = true};
  }
  const bool full = bytes.size() == static_cast<size_t>(piece_bytes);
  const size_t last = bytes.rfind('\n');
  size_t taken = last == bytes.npos ? 0 : last + 1;
  size_t first = 0;
  if (taken > 0 && piece.after.inside) {
    first = bytes.find('\n') + 1;
    piece.after.inside = false;
    ++piece.too_long;
  }
  piece.text = bytes.substr(first, taken - first);
  if (taken == 0 && full) {  // the piece lies within one overlong line
    taken = bytes.size();
    piece.after.inside = true;
  }
  piece.more = full;
  piece.after.offset += taken;
  *window += bytes.substr(0, taken);
  if (window->size() > kWindow) window->erase(0, window->size() - kWindow);
  piece.after.window = digest_text(*window);
  return piece;
}

FilePosition end_of_file(const std::string& path) {
  OpenFile file(path);
  FilePosition position;
  position.offset = file.size();
  position.window = digest_text(file.read(position.offset - std::min(position.offset, kWindow), position.offset));
  return position;
}

GrowingFile::NewLines GrowingFile::next() {
  constexpr int64_t kPieceBytes = 1 << 20;
  NewLines news;
  for (bool more = true; more;) {
    FilePiece piece = read_piece(path_, position_, kPieceBytes);
    if (piece.cut_back) news = {.cut_back = true, .lines = {}};
    size_t begin = 0;
    for (size_t end; (end = piece.text.find('\n', begin)) != std::string::npos; begin = end + 1)
      news.lines.push_back(piece.text.substr(begin, end - begin));
    position_ = std::move(piece.after);
    more = piece.more;
  }
  return news;
}

}  // namespace sinew::rundir
