// For tests inside registry/: a temporary folder, and a clock that only the test moves.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"

namespace sinew::registry {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "sinew-registry-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for the test");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

class HandClock final : public Clock {
 public:
  double monotonic_seconds() const override { return seconds; }
  double wall_seconds() const override { return 1'800'000'000.0 + seconds; }
  void sleep_seconds(double duration) override { seconds += duration; }
  double seconds = 0;
};

// Returns the code of the Error that `work` throws, or "" if it throws none.
template <typename Work>
std::string code_of(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return std::string(error.code.text());
  }
  return "";
}

inline void write_file(const std::string& path, std::string_view text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}
inline void append_file(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary | std::ios::app) << text;
}

inline std::string random_bytes(RandomStream& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.bits32());
  return bytes;
}

}  // namespace sinew::registry
