#include "data/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <limits>
#include <thread>

#include "base/error.h"

namespace sinew::data {
namespace {

constexpr char kDamaged[] = "the file is damaged or cut off; download it or write it again";

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) fail("cannot open", errno);
    struct stat status {};
    if (fstat(descriptor_, &status) != 0) {
      const int code = errno;
      close(descriptor_);
      fail("cannot read the status of", code);
    }
    if (S_ISDIR(status.st_mode)) {
      close(descriptor_);
      throw Error("DATA_UNREADABLE_FILE", path + " is a folder, not a file", "name a file in it");
    }
    size_ = S_ISREG(status.st_mode) ? static_cast<uint64_t>(status.st_size) : 0;
  }
  ~OpenFile() { close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  uint64_t size() const { return size_; }  // 0 if the size is unknown (a pipe)

  size_t read_some(std::byte* out, size_t size) {
    while (true) {
      const ssize_t got = ::read(descriptor_, out, std::min<size_t>(size, 1U << 30));
      if (got >= 0) return static_cast<size_t>(got);
      if (errno != EINTR) fail("cannot read", errno);
    }
  }

 private:
  [[noreturn]] void fail(const char* what, int code) {
    throw Error("DATA_UNREADABLE_FILE", std::string(what) + ' ' + path_ + ": " + std::strerror(code),
                code == ENOENT ? "check the path: it is relative to the directory in which the command runs"
                               : "check the permissions of the file and the disk it is on");
  }
  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

void check_limit(uint64_t size, uint64_t limit, const std::string& name) {
  if (size > limit) {
    throw Error("DATA_FILE_TOO_LARGE",
                name + ": holds more than " + with_commas(static_cast<int64_t>(limit)) + " bytes", "split the file");
  }
}

std::vector<std::byte> read_raw(const std::string& path, uint64_t limit) {
  OpenFile file(path);
  check_limit(file.size(), limit, path);
  std::vector<std::byte> bytes(static_cast<size_t>(file.size()) + 1);  // one byte more, to notice a file that has grown
  size_t done = 0;
  while (true) {
    if (done == bytes.size()) bytes.resize(bytes.size() * 2 + 65536);
    const size_t got = file.read_some(bytes.data() + done, bytes.size() - done);
    if (got == 0) break;
    done += got;
    check_limit(done, limit, path);
  }
  bytes.resize(done);
  return bytes;
}

struct Inflater {
  z_stream stream{};
  Inflater() {
    if (inflateInit2(&stream, 15 + 16) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
};

// Returns the unpacked length that the last gzip member claims. This is only a first guess, so it is capped at the
// ratio that deflate usually reaches.
size_t guess_size(std::span<const std::byte> file, uint64_t limit) {
  uint32_t claimed = 0;
  if (file.size() >= 4) std::memcpy(&claimed, file.data() + file.size() - 4, 4);
  return static_cast<size_t>(std::min<uint64_t>({claimed, file.size() * 16ULL, limit})) + 1;
}

bool is_gzip(std::span<const std::byte> file) {
  return file.size() >= 2 && file[0] == std::byte{0x1F} && file[1] == std::byte{0x8B};
}

// Unpacks every member of a gzip file. `name` is for messages.
std::vector<std::byte> gunzip(std::span<const std::byte> file, const std::string& name, uint64_t limit) {
  constexpr size_t kMaxChunk = std::numeric_limits<uInt>::max();
  Inflater inflater;
  z_stream& stream = inflater.stream;
  std::vector<std::byte> out(guess_size(file, limit));
  size_t read = 0, written = 0;
  while (true) {
    if (written == out.size()) {
      check_limit(written, limit, name);
      out.resize(std::min<uint64_t>(out.size() * 2 + 4096, limit + 1));
    }
    const size_t in_chunk = std::min(kMaxChunk, file.size() - read),
                 out_chunk = std::min(kMaxChunk, out.size() - written);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(file.data() + read));
    stream.avail_in = static_cast<uInt>(in_chunk);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + written);
    stream.avail_out = static_cast<uInt>(out_chunk);
    const int result = inflate(&stream, Z_NO_FLUSH);
    read += in_chunk - stream.avail_in;
    written += out_chunk - stream.avail_out;
    if (result == Z_STREAM_END) {
      const auto rest = file.subspan(read);
      if (std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == std::byte{0}; })) break;  // padding
      if (!is_gzip(rest)) {
        throw Error("DATA_DAMAGED_FILE", name + ": has bytes after byte " + std::to_string(read) + " that are not gzip",
                    kDamaged);
      }
      inflateReset(&stream);
      continue;
    }
    if (result == Z_OK) continue;
    if (result == Z_BUF_ERROR && read < file.size()) continue;  // the output buffer was too small
    throw Error("DATA_DAMAGED_FILE",
                name + ": broken gzip at byte " + std::to_string(read) + ": " +
                    (read == file.size()     ? "it ends too early"
                     : stream.msg != nullptr ? stream.msg
                                             : "bad data"),
                kDamaged);
  }
  check_limit(written, limit, name);
  out.resize(written);
  return out;
}

}  // namespace

FileBytes read_file(const std::string& path, uint64_t limit) {
  FileBytes file{path, read_raw(path, limit), {}};
  file.digest = digest_of(file.bytes);
  if (is_gzip(file.bytes)) file.bytes = gunzip(file.bytes, path, limit);
  return file;
}

std::vector<FileBytes> read_files(const std::vector<std::string>& paths) {
  std::vector<FileBytes> files(paths.size());
  std::vector<std::exception_ptr> failures(paths.size());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < paths.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          files[i] = read_file(paths[i]);
        } catch (...) {
          failures[i] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return files;
}

std::vector<std::byte> read_head(const std::string& path, size_t limit) {
  OpenFile file(path);
  std::vector<std::byte> bytes(limit);
  size_t done = 0;
  while (done < limit) {
    const size_t got = file.read_some(bytes.data() + done, limit - done);
    if (got == 0) break;
    done += got;
  }
  bytes.resize(done);
  if (!is_gzip(bytes)) return bytes;
  Inflater inflater;
  std::vector<std::byte> out(limit);
  inflater.stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  inflater.stream.avail_in = static_cast<uInt>(bytes.size());
  inflater.stream.next_out = reinterpret_cast<Bytef*>(out.data());
  inflater.stream.avail_out = static_cast<uInt>(limit);
  inflate(&inflater.stream, Z_SYNC_FLUSH);
  out.resize(limit - inflater.stream.avail_out);
  return out;
}

std::string file_name(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  return name.empty() ? path : name;
}

std::string file_extension(const std::string& path) {
  std::filesystem::path name(lower_case(std::filesystem::path(path).filename().string()));
  if (name.extension() == ".gz") name = name.stem();
  const std::string extension = name.extension().string();
  return extension.empty() ? "" : extension.substr(1);
}

std::string with_commas(int64_t number) {
  std::string text = std::to_string(number);
  const size_t start = number < 0 ? 1 : 0;
  for (size_t i = text.size(); i > start + 3;) {
    i -= 3;
    text.insert(i, ",");
  }
  return text;
}

}  // namespace sinew::data
