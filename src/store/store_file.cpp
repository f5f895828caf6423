#include "store/store_file.h"

#include <sys/stat.h>

#include <utility>

#include "base/error.h"

namespace sinew::store {

StoreFile::StoreFile(std::string path)
    : path_(std::move(path)), store_(identity_of(path_)), wal_(identity_of(path_ + "-wal")) {}

StoreFile::Identity StoreFile::identity_of(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return {};
  return {facts.st_dev, facts.st_ino};
}

void StoreFile::check() const {
  check(path_, store_);
  if (wal_ != Identity{}) check(path_ + "-wal", wal_);
}

void StoreFile::check(const std::string& path, const Identity& opened) const {
  const Identity now = identity_of(path);
  if (now == opened) return;
  throw Error("STORE_REPLACED",
              "store " + path_ + ": the file " + path + (now == Identity{} ? " was removed" : " was replaced") +
                  " while this program has it open, so a write would be lost",
              "stop every program that has the store open, put the right file in place, and start them again");
}

int64_t StoreFile::size(bool& shrunk) {
  struct stat facts {};
  const int64_t now = ::stat(path_.c_str(), &facts) == 0 ? facts.st_size : 0;
  int64_t largest = largest_;
  while (now > largest && !largest_.compare_exchange_weak(largest, now)) continue;
  shrunk = now < largest;
  return now;
}

void StoreFile::accept(int64_t size) {
  largest_ = size;
}

}  // namespace sinew::store
