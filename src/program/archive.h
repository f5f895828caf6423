// Inside the room: a zip archive whose members are stored, read piece by piece and believed in nothing.
//
// What is accepted can be changed in place: the members lie apart, every place that holds a checksum is known, and a
// new value of the same size leaves all else where it is (torch wants tensors on 64-byte boundaries; so they stay
// there).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/disk.h"

namespace sinew::program {

inline constexpr uint64_t kMostDirectoryBytes = 64ULL << 20;  // a million members and more
inline constexpr size_t kLongestMemberName = 1024;

struct Member {
  std::string name;
  uint64_t begin = 0, size = 0;  // of its bytes in the file
  uint32_t crc = 0;
  uint64_t header = 0, end = 0;      // the local header before, and the end of the data descriptor behind
  std::vector<uint64_t> crc_places;  // where the file repeats the checksum
};

// A range of a file that must be there: throws Error where the file ends early.
class FileRange {
 public:
  FileRange(Disk& disk, std::string path);
  void read(uint64_t offset, std::span<std::byte> out) const;
  // The range in pieces of at most a MiB, in order.
  void read(uint64_t offset, uint64_t size, const std::function<void(std::span<std::byte>)>& take) const;
  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  Disk* disk_;
  std::string path_;
  uint64_t size_;
};

// CRC-32 as zip has it, going on from `start`.
uint32_t crc32_of(std::span<const std::byte> bytes, uint32_t start = 0);

// For messages: names come from a file nobody has checked yet.
std::string shown(std::string_view name);

class Archive {
 public:
  // Reads the directory and every local header. Throws Error.
  Archive(Disk& disk, const std::string& path);

  const FileRange& file() const { return file_; }
  const std::vector<Member>& members() const { return members_; }  // in the order of the file
  const Member* find(const std::string& name) const;
  // The bytes, their checksum proven. Throws Error, also when there are more than `most`.
  std::string text(const Member& member, uint64_t most) const;

 private:
  FileRange file_;
  std::vector<Member> members_;
  std::unordered_map<std::string, size_t> by_name_;
};

// Throws the Error of a member whose bytes are not those its checksum was made of.
[[noreturn]] void refuse_checksum(const std::string& path, const std::string& member);

// Inside the archive: little-endian numbers of a record that is in memory; outside of it, the file's fault.
class Record {
 public:
  Record(std::span<const std::byte> bytes, const std::string& path) : bytes_(bytes), path_(path) {}
  uint64_t number(uint64_t at, unsigned width) const;
  uint16_t u16(uint64_t at) const { return static_cast<uint16_t>(number(at, 2)); }
  uint32_t u32(uint64_t at) const { return static_cast<uint32_t>(number(at, 4)); }
  uint64_t u64(uint64_t at) const { return number(at, 8); }
  std::string text(uint64_t at, uint64_t size) const;
  uint64_t size() const { return bytes_.size(); }
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::span<const std::byte> bytes_;
  const std::string& path_;
};

// The directory's entries, unsorted: name, size, crc and header are set; `end` is where the directory begins, the most
// it can be. Throws Error.
// `packed_too`: members may be compressed; their bytes are then not looked at, and `size` is that of what they hold.
std::vector<Member> read_directory(const FileRange& file, bool packed_too = false);

}  // namespace sinew::program
