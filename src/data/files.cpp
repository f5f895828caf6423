#include "data/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/machine.h"
#include "data/columnar.h"
#include "data/unpack.h"

namespace sinew::data {
namespace {

class OpenFile {
 public:
  explicit OpenFile(const std::string& path)
      : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_ < 0) fail("cannot open", errno);
    struct stat status {};
    if (fstat(descriptor_, &status) != 0) {
      const int code = errno;
      close(descriptor_);
      fail("cannot read the status of", code);
    }
    if (!S_ISREG(status.st_mode)) {
      close(descriptor_);
      throw Error("DATA_UNREADABLE_FILE",
                  path + (S_ISDIR(status.st_mode) ? " is a folder, not a file" : " is a pipe or a device, not a file"),
                  S_ISDIR(status.st_mode) ? "name a file in it"
                                          : "write the data to a file first: Sinew reads it more than once");
    }
    size_ = static_cast<uint64_t>(status.st_size);
  }
  ~OpenFile() { close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  uint64_t size() const { return size_; }

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

std::vector<std::byte> read_raw(const std::string& path, uint64_t limit) {
  OpenFile file(path);
  check_size(file.size(), limit, path);
  std::vector<std::byte> bytes(static_cast<size_t>(file.size()) + 1);  // one byte more, to notice a file that has grown
  size_t done = 0;
  while (true) {
    if (done == bytes.size()) bytes.resize(bytes.size() * 2 + 65536);
    const size_t got = file.read_some(bytes.data() + done, bytes.size() - done);
    if (got == 0) break;
    done += got;
    check_size(done, limit, path);
  }
  bytes.resize(done);
  return bytes;
}

std::vector<std::byte> read_columnar(const std::string& path, uint64_t limit) {
  const OpenFile file(path);  // refuses a folder or a pipe
  return columnar_as_csv(path, file.size(), limit);
}

}  // namespace

bool is_dead_link(const std::string& path) {
  std::error_code code;
  return std::filesystem::is_symlink(path, code) && !std::filesystem::exists(path, code);
}

uint64_t most_bytes() {
  constexpr uint64_t kMost = 1ULL << 36;
  static const uint64_t memory = machine_memory();
  return memory == 0 ? kMost : std::min(kMost, memory);
}

FileBytes read_file(const std::string& path, uint64_t limit) {
  FileBytes file{path, is_columnar(path) ? read_columnar(path, limit) : read_raw(path, limit), {}};
  file.digest = digest_of(file.bytes);
  if (is_packed(file.bytes)) file.bytes = unpack(file.bytes, path, limit);
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
  if (is_columnar(path)) {
    std::vector<std::byte> csv = read_columnar(path, most_bytes());
    csv.resize(std::min(csv.size(), limit));
    return csv;
  }
  OpenFile file(path);
  std::vector<std::byte> bytes(limit);
  size_t done = 0;
  while (done < limit) {
    const size_t got = file.read_some(bytes.data() + done, limit - done);
    if (got == 0) break;
    done += got;
  }
  bytes.resize(done);
  return is_packed(bytes) ? unpack_head(bytes, limit) : bytes;
}

std::string file_name(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  return name.empty() ? path : name;
}

std::string file_extension(const std::string& path) {
  std::filesystem::path name(lower_case(std::filesystem::path(path).filename().string()));
  if (name.extension() == ".gz" || name.extension() == ".zst") name = name.stem();
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
