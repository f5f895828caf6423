#include "base/disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace sinew {
namespace {

namespace fs = std::filesystem;

std::string hint_for(int code) {
  switch (code) {
    case ENOSPC: return "free some space, or point the run elsewhere with --run-dir";
    case EDQUOT: return "the disk quota is used up; free some space or ask for more";
    case EACCES:
    case EPERM: return "check who owns the path and its permissions";
    case EROFS: return "the file system is mounted read-only";
    case ENOENT: return "check the path";
    case EIO: return "the device reports an error; see the system log (dmesg)";
    default: return "";
  }
}

[[noreturn]] void fail(const std::string& verb, const std::string& path, int code) {
  throw DiskError("cannot " + verb + " " + path + ": " + std::strerror(code), hint_for(code), code);
}

// Runs a system call again when a signal interrupted it.
template <typename Call>
auto retrying(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

Descriptor open_or_fail(const std::string& path, int flags, const char* verb) {
  const int descriptor = retrying([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0644); });
  if (descriptor < 0) fail(verb, path, errno);
  return Descriptor(descriptor);
}

class SystemFile final : public Disk::File {
 public:
  SystemFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  void write(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = retrying([&] { return ::write(descriptor_.get(), bytes.data(), bytes.size()); });
      if (written < 0) fail("write", path_, errno);
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
  }
  void sync() override {
    if (retrying([&] { return ::fsync(descriptor_.get()); }) < 0) fail("sync", path_, errno);
  }
  void close() override {
    const int descriptor = descriptor_.release();
    if (descriptor >= 0 && ::close(descriptor) < 0 && errno != EINTR) fail("close", path_, errno);
  }

 private:
  std::string path_;
  Descriptor descriptor_;
};

class SystemDisk final : public Disk {
 public:
  std::unique_ptr<File> create(const std::string& path) override {
    return std::make_unique<SystemFile>(path, open_or_fail(path, O_WRONLY | O_CREAT | O_TRUNC, "create").release());
  }
  std::unique_ptr<File> append(const std::string& path) override {
    return std::make_unique<SystemFile>(path, open_or_fail(path, O_WRONLY | O_CREAT | O_APPEND, "open").release());
  }

  std::vector<std::byte> read(const std::string& path) override {
    const Descriptor file = open_or_fail(path, O_RDONLY, "read");
    struct stat facts{};
    if (::fstat(file.get(), &facts) < 0) fail("read", path, errno);
    if (S_ISDIR(facts.st_mode)) fail("read", path, EISDIR);
    std::vector<std::byte> bytes(static_cast<size_t>(facts.st_size));
    size_t done = 0;
    while (true) {  // to the end, whatever fstat said: the file may grow, and files of /proc have no size
      if (done == bytes.size()) bytes.resize(done + 4096);
      const ssize_t got = retrying([&] { return ::read(file.get(), bytes.data() + done, bytes.size() - done); });
      if (got < 0) fail("read", path, errno);
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    bytes.resize(done);
    return bytes;
  }

  std::vector<Entry> list(const std::string& directory) override {
    std::error_code code;
    std::vector<Entry> entries;
    for (fs::directory_iterator it(directory, code), end; !code && it != end; it.increment(code)) {
      std::error_code ignored;
      entries.push_back({it->path().filename().string(), it->is_directory(ignored)});
    }
    if (code) fail("list", directory, code.value());
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
    return entries;
  }

  bool exists(const std::string& path) override {
    struct stat facts{};
    return ::stat(path.c_str(), &facts) == 0;
  }
  uint64_t size(const std::string& path) override {
    struct stat facts{};
    if (::stat(path.c_str(), &facts) < 0) fail("look at", path, errno);
    return static_cast<uint64_t>(facts.st_size);
  }
  void make_directories(const std::string& path) override {
    std::error_code code;
    fs::create_directories(path, code);
    if (code) fail("create directory", path, code.value());
  }
  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) < 0) fail("rename " + from + " to", to, errno);
  }
  void symlink(const std::string& target, const std::string& path) override {
    if (::symlink(target.c_str(), path.c_str()) < 0) fail("link", path, errno);
  }
  void remove_file(const std::string& path) override {
    if (::unlink(path.c_str()) < 0 && errno != ENOENT) fail("remove", path, errno);
  }
  void remove_all(const std::string& path) override {
    std::error_code code;
    fs::remove_all(path, code);
    if (code) fail("remove", path, code.value());
  }
  void sync_directory(const std::string& path) override {
    const Descriptor directory = open_or_fail(path.empty() ? "." : path, O_RDONLY | O_DIRECTORY, "open");
    if (retrying([&] { return ::fsync(directory.get()); }) < 0) fail("sync", path, errno);
  }
  void drop_cache(const std::string& path) override {
    const Descriptor file = open_or_fail(path, O_RDONLY, "open");
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
};

}  // namespace

Disk& system_disk() {
  static SystemDisk disk;
  return disk;
}

void write_durably(Disk& disk, const std::string& path, std::span<const std::byte> bytes) {
  const fs::path target(path);
  const std::string temporary = (target.parent_path() / ("." + target.filename().string() + ".tmp")).string();
  const auto file = disk.create(temporary);
  file->write(bytes);
  file->sync();
  file->close();
  disk.rename(temporary, path);
  disk.sync_directory(target.parent_path().string());
}

}  // namespace sinew
