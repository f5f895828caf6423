// Private to program/: reads zip archives. Nothing in the file is trusted.
//
// The members of a .pt2 are stored without compression, so a file that Archive accepts can be changed in place: its
// members do not overlap, and every place that holds a checksum is known. A new value of the same size moves nothing
// else, so tensors stay on the 64-byte boundaries that torch needs. The members of a TorchScript file may be
// compressed.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/disk.h"
#include "base/error.h"

namespace sinew::program {

// In a 32-bit field, this value means that the number is in a 64-bit field elsewhere (zip64).
inline constexpr uint64_t kFull32 = 0xFFFFFFFF;

inline constexpr uint64_t kMaxDirectoryBytes = 64ULL << 20;  // enough for over a million members
inline constexpr size_t kMaxMemberName = 1024;               // bytes
// the most bytes of the content of all compressed members of an archive together
inline constexpr uint64_t kMaxUnpackedBytes = 256ULL << 20;

// Says whether the members of an archive may be compressed (by deflate).
enum class Compression : uint8_t { refused, allowed };

struct Member {
  std::string name;
  uint64_t begin = 0, size = 0;  // its bytes in the file; if they are compressed, `size` is that of the content
  uint64_t packed = 0;           // the bytes that it takes in the file: `size`, unless it is compressed
  bool compressed = false;
  uint32_t crc = 0;
  uint64_t header = 0, end = 0;       // where its local header begins, and where its data descriptor ends
  std::vector<uint64_t> crc_offsets;  // all places in the file that hold the checksum
};

// Reads ranges of a file. Throws Error if a range reaches beyond the end of the file.
class FileRange {
 public:
  FileRange(Disk& disk, std::string path);
  void read(uint64_t offset, std::span<std::byte> out) const;
  // Passes the range to `take` in pieces of at most one MiB, in order.
  void read(uint64_t offset, uint64_t size, const std::function<void(std::span<std::byte>)>& take) const;
  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  Disk* disk_;
  std::string path_;
  uint64_t size_;
};

// Returns CRC-32 as zip defines it. `start` is the checksum of all bytes before `bytes`.
uint32_t crc32_of(std::span<const std::byte> bytes, uint32_t start = 0);

// Returns a name in quotes for messages. The name is shortened and made printable, because names come from unchecked
// files.
std::string in_quotes(std::string_view name);

class Archive {
 public:
  // Reads the central directory and every local header. Throws Error if they are not valid.
  Archive(Disk& disk, const std::string& path, Compression compression = Compression::refused);

  const FileRange& file() const { return file_; }
  const std::vector<Member>& members() const { return members_; }  // in the order of the file
  const Member* find(const std::string& name) const;
  // Returns the content of the member, after checking it against its checksum. Throws Error if it is damaged or has
  // more than `max_bytes`.
  std::string text(const Member& member, uint64_t max_bytes) const;
  // Reads every member. Throws Error if the content of a member does not have its declared size or its checksum. Needs
  // little memory, whatever the sizes are.
  void check_contents() const;

 private:
  FileRange file_;
  std::vector<Member> members_;
  std::unordered_map<std::string, size_t> by_name_;
};

// Throws the Error for a member whose bytes do not match its checksum.
[[noreturn]] void refuse_checksum(const std::string& path, const std::string& member);

// Reads little-endian numbers from the bytes of a record. A read outside of the record throws the Error for a damaged
// file.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, const std::string& path) : bytes_(bytes), path_(path) {}
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

// Returns the entries of the central directory, unsorted. Sets name, sizes, compressed, crc and header of each. Sets
// `end` only to an upper bound: the offset at which the central directory begins. Throws Error if an entry is not
// valid.
std::vector<Member> read_directory(const FileRange& file, Compression compression);

// Decompresses the content of the member and passes it to `take` in pieces. Throws Error if the content does not have
// exactly member.size bytes.
void read_content(const FileRange& file, const Member& member, const std::function<void(std::span<std::byte>)>& take);

}  // namespace sinew::program
