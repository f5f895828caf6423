// For the tests of report/: a temporary directory, a clock that the test sets, and a reader of event files that shares
// no code with the writer.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace sinew::report::testing {

class FakeClock final : public Clock {
 public:
  double monotonic_seconds() const override { return now; }
  double wall_seconds() const override { return 1763697600.0 + now; }
  void sleep_seconds(double seconds) override { now += seconds; }
  double now = 100;
};

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sinew-report-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string operator/(const std::string& name) const { return path + "/" + name; }
  std::string path;
};

inline void write_file(const std::string& path, std::string_view text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// CRC-32C, computed bit by bit from its definition.
inline uint32_t plain_crc32c(std::string_view bytes) {
  uint32_t crc = 0xFFFFFFFFU;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82F63B78U : crc >> 1;
  }
  return ~crc;
}

// A parsed protocol-buffer message: the raw bytes of the values by field number, in order.
struct Wire {
  std::multimap<int, std::string> fields;
  bool good = true;

  explicit Wire(std::string_view bytes) {
    while (good && !bytes.empty()) take(bytes);
  }
  std::string one(int field) const {
    EXPECT_EQ(fields.count(field), 1U) << "field " << field;
    const auto it = fields.find(field);
    return it == fields.end() ? "" : it->second;
  }
  Wire in(int field) const { return Wire(one(field)); }
  template <typename Value>
  Value as(int field) const {
    const std::string bytes = one(field);
    Value value{};
    EXPECT_EQ(bytes.size(), sizeof value) << "field " << field;
    std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
    return value;
  }
  uint64_t integer(int field) const { return as<uint64_t>(field); }
  std::vector<Wire> all(int field) const {
    std::vector<Wire> found;
    for (auto [it, end] = fields.equal_range(field); it != end; ++it) found.emplace_back(it->second);
    return found;
  }

 private:
  uint64_t varint(std::string_view& bytes) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes[0]);
      bytes.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    good = false;
    return 0;
  }
  void take(std::string_view& bytes) {
    const uint64_t key = varint(bytes);
    uint64_t length = 0, number = 0;
    switch (key & 7) {
      case 0: number = varint(bytes); break;
      case 1: length = 8; break;
      case 2: length = varint(bytes); break;
      case 5: length = 4; break;
      default: good = false;
    }
    if (length > bytes.size()) good = false;
    if (!good) return;
    const std::string value =
        (key & 7) == 0 ? std::string(reinterpret_cast<const char*>(&number), 8) : std::string(bytes.substr(0, length));
    fields.emplace(static_cast<int>(key >> 3), value);
    bytes.remove_prefix(length);
  }
};

// Returns the messages of a TFRecord file. Fails the test if a length or a checksum is wrong.
inline std::vector<Wire> read_tfrecords(const std::string& file) {
  const auto masked = [](std::string_view bytes) {
    const uint32_t crc = plain_crc32c(bytes);
    return std::rotr(crc, 15) + 0xa282ead8U;
  };
  const auto word = [](std::string_view bytes) {
    uint32_t value = 0;
    std::memcpy(&value, bytes.data(), 4);
    return value;
  };
  std::vector<Wire> records;
  std::string_view rest = file;
  while (!rest.empty()) {
    uint64_t length = 0;
    if (rest.size() < 16) return ADD_FAILURE() << "torn record", records;
    std::memcpy(&length, rest.data(), 8);
    if (length > rest.size() - 16) return ADD_FAILURE() << "torn record", records;
    EXPECT_EQ(word(rest.substr(8, 4)), masked(rest.substr(0, 8)));
    EXPECT_EQ(word(rest.substr(12 + length, 4)), masked(rest.substr(12, length)));
    records.emplace_back(rest.substr(12, length));
    EXPECT_TRUE(records.back().good);
    rest.remove_prefix(length + 16);
  }
  return records;
}

inline std::vector<std::string> event_files_in(const std::string& directory) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().filename().string().find("tfevents") != std::string::npos) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace sinew::report::testing
