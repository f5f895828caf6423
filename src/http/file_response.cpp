// Makes responses whose body is a file or other stored content: the whole content, or the one range that the client
// asked for.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/error.h"
#include "http/message.h"

namespace sinew::http {
namespace {

constexpr size_t kPieceBytes = 256 << 10;

struct OpenFile {
  explicit OpenFile(const std::string& path) : descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat facts {};
    if (descriptor < 0) {
      throw Error("HTTP_NO_FILE", "cannot read " + path + ": " + std::strerror(errno),
                  "check that the file still exists and that the server may read it");
    }
    if (::fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) {
      ::close(descriptor);
      throw Error("HTTP_NO_FILE", path + " is not a regular file", "request a file");
    }
    size = static_cast<uint64_t>(facts.st_size);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { ::close(descriptor); }
  const int descriptor;
  uint64_t size = 0;
};

struct Range {
  enum class Kind { whole, part, impossible } kind = Kind::whole;
  uint64_t first = 0, last = 0;
};

bool number_of(std::string_view text, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

// Returns the range that the request asks for. Ignores every Range header but a single range of bytes, as RFC 9110
// allows. Ignores it, too, if the If-Range header names other content.
Range range_of(const Request& request, uint64_t size, const std::string& quoted_tag) {
  const auto header = request.headers.find("range"), condition = request.headers.find("if-range");
  if (header == request.headers.end() || request.method != "GET") return {};
  if (condition != request.headers.end() && condition->second != quoted_tag) return {};
  std::string_view text = header->second;
  if (!text.starts_with("bytes=")) return {};
  text.remove_prefix(6);
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos || text.find(',') != std::string_view::npos) return {};
  const std::string_view from = text.substr(0, dash), to = text.substr(dash + 1);
  Range range{Range::Kind::part, 0, size == 0 ? 0 : size - 1};
  uint64_t number = 0;
  if (from.empty()) {  // "-N": the last N bytes
    if (!number_of(to, number)) return {};
    if (number == 0 || size == 0) return {Range::Kind::impossible, 0, 0};
    range.first = size - std::min(size, number);
    return range;
  }
  if (!number_of(from, range.first)) return {};
  if (!to.empty()) {
    if (!number_of(to, number) || number < range.first) return {};
    range.last = std::min(range.last, number);
  }
  if (range.first >= size) return {Range::Kind::impossible, 0, 0};
  return range;
}

Source source_of(ReadAt read_at, uint64_t first, uint64_t bytes) {
  return [read_at = std::move(read_at), at = first, left = bytes](const Write& write) mutable {
    std::string piece(std::min<uint64_t>(left, kPieceBytes), '\0');
    const size_t got = read_at(at, std::as_writable_bytes(std::span(piece)));
    // the file has shrunk or the disk has failed; dropping `write` closes the connection
    if (got == 0 && left > 0) return;
    piece.resize(got);
    at += got;
    left -= got;
    write(std::move(piece));
  };
}

}  // namespace

Response content_response(const Request& request, uint64_t size, ReadAt read_at, const std::string& content_type,
                          const std::string& tag) {
  const std::string quoted = tag.empty() ? "" : "\"" + tag + "\"";
  Response response;
  response.content_type = content_type;
  response.headers["accept-ranges"] = "bytes";
  if (!quoted.empty()) response.headers["etag"] = quoted;
  const auto known = request.headers.find("if-none-match");
  if (!quoted.empty() && known != request.headers.end() && known->second.find(quoted) != std::string::npos) {
    response.status = 304;
    return response;
  }
  const Range range = range_of(request, size, quoted);
  if (range.kind == Range::Kind::impossible) {
    response = error_response(416, "HTTP_BAD_RANGE",
                              "the range lies outside the file, which has " + std::to_string(size) + " bytes",
                              "request a range inside the file");
    response.headers["content-range"] = "bytes */" + std::to_string(size);
    return response;
  }
  uint64_t first = 0, bytes = size;
  if (range.kind == Range::Kind::part) {
    first = range.first;
    bytes = range.last - range.first + 1;
    response.status = 206;
    response.headers["content-range"] =
        "bytes " + std::to_string(range.first) + "-" + std::to_string(range.last) + "/" + std::to_string(size);
  }
  response.source = source_of(std::move(read_at), first, bytes);
  response.source_bytes = bytes;
  return response;
}

Response file_response(const Request& request, const std::string& path, const std::string& content_type,
                       const std::string& tag) {
  auto file = std::make_shared<OpenFile>(path);
  const ReadAt read_at = [file](uint64_t offset, std::span<std::byte> out) {
    const ssize_t got = ::pread(file->descriptor, out.data(), out.size(), static_cast<off_t>(offset));
    return static_cast<size_t>(std::max<ssize_t>(got, 0));
  };
  return content_response(request, file->size, read_at, content_type, tag);
}

}  // namespace sinew::http
