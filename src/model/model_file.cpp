// Inspects model files that users bring, and writes trained models in the format of those files.
#include "model/model_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "base/disk.h"
#include "base/error.h"
#include "base/hash.h"
#include "model/makers.h"
#include "model/model.h"

namespace sinew::model {
namespace {

constexpr uint64_t kMaxKeptBytes = 64ULL << 20;

struct FileCopy {
  // These four values show whether the file was written since it was read. Every lane opens the file, but only the
  // first lane reads it.
  uint64_t inode = 0, size = 0;
  int64_t seconds = 0, nanoseconds = 0;
  Digest digest;
  std::vector<std::byte> bytes;  // empty for a file larger than kMaxKeptBytes

  bool same_stamp(const FileCopy& other) const {
    return inode == other.inode && size == other.size && seconds == other.seconds && nanoseconds == other.nanoseconds;
  }
};

struct FileCopies {
  std::mutex mutex;
  std::map<std::string, FileCopy> by_path;
};
FileCopies& file_copies() {
  static FileCopies all;
  return all;
}

Digest digest_of_file(const std::string& path) {
  constexpr size_t kPiece = 1 << 20;
  DigestStream stream;
  std::vector<std::byte> piece(kPiece);
  uint64_t at = 0;
  while (const size_t got = system_disk().read_at(path, at, piece)) {
    stream.update(std::span(piece).first(got));
    at += got;
  }
  return stream.digest();
}

void save(const spec::ModelOptions& options, const std::string& file, const std::vector<NamedTensor>& values,
          const std::string& to) {
  options.name == "program" ? save_program(file, values, to) : save_script(file, values, to);
}

// A file that the destructor removes.
class TemporaryFile {
 public:
  TemporaryFile(std::string path, std::span<const std::byte> bytes) : path_(std::move(path)) {
    write_durably(system_disk(), path_, bytes);
  }
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

std::string problem_of(const std::string& file, const Error& error) {
  std::string what = error.what();
  if (what.starts_with(file + ": ")) what.erase(0, file.size() + 2);
  return what + (error.hint.empty() ? "" : " / " + error.hint);
}

FileReport inspect_file(const std::string& file) {
  if (file.ends_with(".pt2")) return inspect_program(file);
  if (file.ends_with(".so")) return inspect_library(file);
  return inspect_script(file);
}

std::string model_file_name(const std::string& model_name) {
  if (model_name == "program") return "model.pt2";
  if (model_name == "torchscript") return "model.pt";
  return model_name == "library" ? "model.so" : "";
}

void remember_model_file(const std::string& path) {
  struct stat facts {};
  // The code that reads the file reports the error.
  if (::stat(path.c_str(), &facts) != 0) return;
  FileCopy now{facts.st_ino, static_cast<uint64_t>(facts.st_size), facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec, {}, {}};
  FileCopies& all = file_copies();
  const std::lock_guard lock(all.mutex);
  const auto known = all.by_path.find(path);
  if (known != all.by_path.end() && known->second.same_stamp(now)) return;
  if (now.size <= kMaxKeptBytes) {
    now.bytes = system_disk().read(path);
  } else {
    now.digest = digest_of_file(path);
  }
  all.by_path[path] = std::move(now);
}

std::string save_model_file(const spec::ModelOptions& options, const std::vector<NamedTensor>& values,
                            const std::string& to) {
  if (options.name == "library") {
    save_library(options.file, to);
    return "";
  }
  FileCopies& all = file_copies();
  const std::lock_guard lock(all.mutex);
  const auto known = all.by_path.find(options.file);
  if (known != all.by_path.end() && !known->second.bytes.empty()) {
    const TemporaryFile opened(to + ".opened", known->second.bytes);
    save(options, opened.path(), values, to);
    return "";
  }
  const bool there = system_disk().exists(options.file);
  if (known != all.by_path.end() && (!there || digest_of_file(options.file) != known->second.digest)) {
    system_disk().remove_file(to);  // an earlier attempt of this run may have written it, with other weights
    return options.file + " changed while it was trained, so the run has no " + model_file_name(options.name) +
           "; model.safetensors has the weights by name";
  }
  save(options, options.file, values, to);
  return "";
}

}  // namespace sinew::model
