#include "base/disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <limits>
#include <new>
#include <system_error>
#include <utility>

#include "base/atomic_write.h"
#include "base/hex.h"
#include "base/machine.h"

namespace sinew {
namespace {

namespace fs = std::filesystem;

std::string hint_for(int code) {
  switch (code) {
    case ENOSPC: return "free some space on the disk of this path, or use a path on another disk";
    case EDQUOT: return "the disk quota is used up: free some space or ask for more";
    case EACCES:
    case EPERM: return "check the owner and the permissions of the path";
    case EROFS: return "the file system is mounted read-only: use a path on another one, or mount it for writing";
    case EMFILE:
    case ENFILE: return hint_of_limit(code);
    case ENOENT: return "check the path";
    case ENOMEM: return "the file does not fit into memory: check that it is the right file";
    case EINVAL: return "check that the path names a regular file";
    case EIO: return "the device reports an error: see the system log (dmesg)";
    default: return "check the path and the disk; the system's message stands before this sentence";
  }
}

[[noreturn]] void fail(const std::string& verb, const std::string& path, int code) {
  throw DiskError("cannot " + verb + " " + path + ": " + std::strerror(code), hint_for(code), code);
}

// Repeats a system call that a signal interrupted.
template <typename Call>
auto retrying(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

constexpr std::string_view kTemporaryEnd = ".tmp";

// Cuts off all characters at the end of the text that are in `set`. Returns them, or "" if there are none.
std::string_view take_last(std::string_view& text, const char* set) {
  const size_t kept = text.find_last_not_of(set) + 1;  // npos + 1 is 0
  const std::string_view digits = text.substr(kept);
  text = text.substr(0, kept);
  return digits;
}

// Returns the process id in the name of a temporary file of write_durably: ".NAME.PID-RANDOM.tmp". Returns 0 for any
// other name.
pid_t writer_of_temporary(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(kTemporaryEnd)) return 0;
  name.remove_suffix(kTemporaryEnd.size());
  if (take_last(name, "0123456789abcdef").empty() || !name.ends_with('-')) return 0;
  name.remove_suffix(1);
  const std::string_view digits = take_last(name, "0123456789");
  pid_t writer = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), writer);
  const bool number = error == std::errc() && end == digits.data() + digits.size();
  return number && name.size() > 2 && name.ends_with('.') ? writer : 0;
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

struct OpenFile {
  Descriptor descriptor;
  size_t size;
};

// O_NONBLOCK keeps open() from waiting if the path is a pipe without a writer. It has no effect on a regular file.
OpenFile open_regular(const std::string& path) {
  const int descriptor = retrying([&] { return ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); });
  if (descriptor < 0) fail("read", path, errno);
  Descriptor file(descriptor);
  struct stat facts {};
  if (::fstat(descriptor, &facts) < 0) fail("read", path, errno);
  if (S_ISDIR(facts.st_mode)) fail("read", path, EISDIR);
  if (!S_ISREG(facts.st_mode)) fail("read", path, EINVAL);
  return {Descriptor(file.release()), static_cast<size_t>(facts.st_size)};
}

std::vector<std::byte> bytes_or_fail(size_t size, const std::string& path) {
  try {
    return std::vector<std::byte>(size);
  } catch (const std::bad_alloc&) {
    fail("read", path, ENOMEM);
  } catch (const std::length_error&) {
    fail("read", path, ENOMEM);
  }
}

class SystemFile final : public Disk::File {
 public:
  SystemFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  void write(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) bytes = bytes.subspan(write_some(bytes));
  }
  size_t write_some(std::span<const std::byte> bytes) override {
    const ssize_t written = retrying([&] { return ::write(descriptor_.get(), bytes.data(), bytes.size()); });
    if (written < 0) fail("write", path_, errno);
    if (written == 0) fail("write", path_, EIO);  // no progress without an error: do not loop for ever
    return static_cast<size_t>(written);
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
  std::unique_ptr<File> create_new(const std::string& path) override {
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
    return std::make_unique<SystemFile>(path, open_or_fail(path, flags, "create").release());
  }
  std::unique_ptr<File> append(const std::string& path) override {
    return std::make_unique<SystemFile>(path, open_or_fail(path, O_WRONLY | O_CREAT | O_APPEND, "open").release());
  }

  std::vector<std::byte> read(const std::string& path) override {
    const OpenFile file = open_regular(path);
    // One byte more than fstat reported, so that the loop sees the end of the file without growing the buffer.
    std::vector<std::byte> bytes = bytes_or_fail(file.size + 1, path);
    size_t done = 0;
    while (true) {  // reads to the end whatever size fstat reported: the file may grow, and files of /proc have no size
      if (done == bytes.size()) bytes.resize(2 * done + 4096);
      const ssize_t got =
          retrying([&] { return ::read(file.descriptor.get(), bytes.data() + done, bytes.size() - done); });
      if (got < 0) fail("read", path, errno);
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    bytes.resize(done);
    return bytes;
  }

  size_t read_at(const std::string& path, uint64_t offset, std::span<std::byte> out) override {
    const OpenFile file = open_regular(path);
    size_t done = 0;
    while (done < out.size() && offset + done < static_cast<uint64_t>(std::numeric_limits<off_t>::max())) {
      const auto from = static_cast<off_t>(offset + done);
      const ssize_t got =
          retrying([&] { return ::pread(file.descriptor.get(), out.data() + done, out.size() - done, from); });
      if (got < 0) fail("read", path, errno);
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    return done;
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
    struct stat facts {};
    if (::stat(path.c_str(), &facts) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    fail("look at", path, errno);
  }
  uint64_t size(const std::string& path) override {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) < 0) fail("look at", path, errno);
    return static_cast<uint64_t>(facts.st_size);
  }
  void make_directories(const std::string& path) override {
    std::error_code code;
    fs::create_directories(path, code);
    if (code) fail("create directory", path, code.value());
  }
  void make_directory(const std::string& path) override {
    if (::mkdir(path.c_str(), 0777) < 0) fail("create directory", path, errno);
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
    if (retrying([&] { return ::fsync(directory.get()); }) == 0) return;
    // These two codes mean that the file system cannot sync directories.
    if (errno != EINVAL && errno != EOPNOTSUPP) fail("sync", path, errno);
  }
  void drop_cache(const std::string& path) override {
    const Descriptor file = open_or_fail(path, O_RDONLY, "open");
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
};

}  // namespace

ErrorCode DiskError::code_of(int errno_value) {
  switch (errno_value) {
    case ENOSPC:
    case EDQUOT: return "DISK_FULL";
    case ENOENT:
    case ENOTDIR: return "DISK_NO_FILE";
    case EACCES:
    case EPERM:
    case EROFS: return "DISK_NOT_PERMITTED";
    default: return "DISK_FAILED";
  }
}

Disk& system_disk() {
  static SystemDisk disk;
  return disk;
}

size_t Disk::read_at(const std::string& path, uint64_t offset, std::span<std::byte> out) {
  const std::vector<std::byte> bytes = read(path);
  if (offset >= bytes.size()) return 0;
  const auto got = std::min<uint64_t>(out.size(), bytes.size() - offset);
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), got, out.begin());
  return got;
}

void write_durably(Disk& disk, const std::string& path, std::span<const std::byte> bytes) {
  write_durably(disk, path, [&](Disk::File& file) { file.write(bytes); });
}

void write_durably(Disk& disk, const std::string& path, std::string_view text) {
  write_durably(disk, path, std::as_bytes(std::span(text.data(), text.size())));
}

std::string read_text(Disk& disk, const std::string& path) {
  const std::vector<std::byte> bytes = disk.read(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

namespace {

// Writes a temporary file and renames it to `path`.
void replace_file(Disk& disk, const std::string& path, const std::function<void(Disk::File&)>& fill) {
  const fs::path target(path);
  const std::string temporary =
      disk.staging((target.parent_path() / ("." + target.filename().string() + "." + std::to_string(::getpid()) + "-" +
                                            random_hex(8) + std::string(kTemporaryEnd)))
                       .string());
  const auto file = disk.create_new(temporary);
  try {
    fill(*file);
    file->close();
    disk.rename(temporary, path);
  } catch (const Error&) {
    try {
      disk.remove_file(temporary);
    } catch (const Error&) {  // the caller gets the first error, not this one
    }
    throw;
  }
}

}  // namespace

void write_durably(Disk& disk, const std::string& path, const std::function<void(Disk::File&)>& fill) {
  replace_file(disk, path, [&](Disk::File& file) {
    fill(file);
    file.sync();
  });
  disk.sync_directory(fs::path(path).parent_path().string());
}

void write_atomically(Disk& disk, const std::string& path, std::string_view text) {
  replace_file(disk, path, [&](Disk::File& file) { file.write(std::as_bytes(std::span(text.data(), text.size()))); });
}

void remove_abandoned_writes(Disk& disk, const std::string& directory) {
  for (const Disk::Entry& entry : disk.list(directory)) {
    const pid_t writer = entry.directory ? 0 : writer_of_temporary(entry.name);
    if (writer == 0 || ::kill(writer, 0) == 0 || errno != ESRCH) continue;
    try {
      disk.remove_file((fs::path(directory) / entry.name).string());
    } catch (const Error&) {  // the file that stays only wastes space
    }
  }
}

void write_output(Disk& disk, const std::string& path, const std::function<void(Disk::File&)>& fill) {
  std::error_code unknown;
  const fs::file_type type = fs::status(path, unknown).type();
  if (type != fs::file_type::character && type != fs::file_type::block && type != fs::file_type::fifo &&
      type != fs::file_type::socket)
    return write_durably(disk, path, fill);
  const auto file = disk.append(path);
  fill(*file);
  file->close();
}

void write_output(Disk& disk, const std::string& path, std::string_view text) {
  write_output(disk, path, [&](Disk::File& file) { file.write(std::as_bytes(std::span(text.data(), text.size()))); });
}

void copy_bytes(Disk& disk, const std::string& from, uint64_t begin, uint64_t end, Disk::File& to) {
  constexpr uint64_t kCopyBytes = 1 << 20;
  std::vector<std::byte> piece(static_cast<size_t>(std::min<uint64_t>(kCopyBytes, end - begin)));
  while (begin < end) {
    const auto wanted = static_cast<size_t>(std::min<uint64_t>(piece.size(), end - begin));
    const size_t got = disk.read_at(from, begin, std::span(piece).first(wanted));
    if (got == 0) return;
    to.write(std::span(piece).first(got));
    begin += got;
  }
}

void make_directories_durably(Disk& disk, const std::string& path) {
  std::vector<fs::path> chain;  // deepest first
  for (fs::path at(path); !at.empty() && at != at.parent_path(); at = at.parent_path()) {
    if (at.has_filename()) chain.push_back(at);  // "a/b/" has an empty last part
  }
  const auto first_there =
      std::find_if(chain.begin(), chain.end(), [&](const auto& at) { return disk.exists(at.string()); });
  const auto missing = first_there - chain.begin();
  if (missing > 0) disk.make_directories(path);
  for (std::ptrdiff_t i = 0; i < std::ssize(chain); ++i) {
    try {
      disk.sync_directory(chain[static_cast<size_t>(i)].parent_path().string());
    } catch (const DiskError& error) {
      // This directory exists and may belong to another user, as /home does. This process cannot read it. It did not
      // create it either, so it need not sync it.
      if (i < missing || (error.system_code != EACCES && error.system_code != EPERM)) throw;
    }
  }
}

}  // namespace sinew
