// Reads the end of a zip archive: the end record, the zip64 end record, and the central directory to which they point.
#include <algorithm>

#include "program/archive.h"

namespace sinew::program {
namespace {

constexpr uint32_t kEntry = 0x02014B50, kEnd = 0x06054B50, kEnd64 = 0x06064B50, kLocator64 = 0x07064B50;
constexpr uint64_t kEntrySize = 46, kEndSize = 22, kEnd64Size = 56, kLocatorSize = 20, kMaxComment = 65535;
constexpr uint64_t kFull16 = 0xFFFF;

struct Directory {
  uint64_t offset = 0, size = 0, entries = 0;
  uint64_t limit = 0;  // where the end record begins; the central directory must end at or before it
};

// Returns whether a narrow field agrees with the zip64 record. If all its bits are set, only the zip64 record has the
// value. Otherwise the two must be equal.
bool agree(uint64_t narrow, uint64_t wide, uint64_t full) {
  return narrow == full || narrow == wide;
}

Directory wide_directory(const FileRange& file, const ByteReader& end, const ByteReader& locator, uint64_t locator_at) {
  const uint64_t at = locator.u64(8);
  if (locator.u32(4) != 0 || locator.u32(16) > 1) end.fail("it is split into several volumes");
  if (at > locator_at || locator_at - at < kEnd64Size) end.fail("its zip64 end record is not at its declared place");
  std::array<std::byte, kEnd64Size> bytes{};
  file.read(at, bytes);
  const ByteReader wide(bytes, file.path());
  if (wide.u32(0) != kEnd64) end.fail("its zip64 end record is not at its declared place");
  const Directory directory{wide.u64(48), wide.u64(40), wide.u64(32), at};
  if (wide.u32(16) != 0 || wide.u32(20) != 0 || wide.u64(24) != directory.entries)
    end.fail("it is split into several volumes");
  if (!agree(end.u16(10), directory.entries, kFull16) || !agree(end.u32(12), directory.size, kFull32) ||
      !agree(end.u32(16), directory.offset, kFull32))
    end.fail("its two end records disagree");
  return directory;
}

// Finds the last end record whose comment ends exactly at the end of the file.
Directory find_directory(const FileRange& file) {
  const uint64_t tail_size = std::min(file.size(), kEndSize + kMaxComment + kLocatorSize);
  const uint64_t tail_at = file.size() - tail_size;
  std::vector<std::byte> bytes(tail_size);
  file.read(tail_at, bytes);
  const ByteReader tail(bytes, file.path());
  if (tail_size < kEndSize) tail.fail("it has " + std::to_string(tail_size) + " bytes");
  const uint64_t last = tail_size - kEndSize, first = last > kMaxComment ? last - kMaxComment : 0;
  for (uint64_t at = last + 1; at-- > first;) {
    if (tail.u32(at) != kEnd || tail.u16(at + 20) != last - at) continue;
    const ByteReader end{std::span(bytes).subspan(at, kEndSize), file.path()};
    if (end.u16(4) != 0 || end.u16(6) != 0 || end.u16(8) != end.u16(10)) end.fail("it is split into several volumes");
    if (at >= kLocatorSize && tail.u32(at - kLocatorSize) == kLocator64) {
      const ByteReader locator{std::span(bytes).subspan(at - kLocatorSize, kLocatorSize), file.path()};
      return wide_directory(file, end, locator, tail_at + at - kLocatorSize);
    }
    return {end.u32(16), end.u32(12), end.u16(10), tail_at + at};
  }
  tail.fail("it has no end record");
}

// Reads extra field 1. It holds those of the sizes and the offset that do not fit into 32 bits, in this order. A value
// is present only if its 32-bit field has all bits set.
void read_wide(const ByteReader& entry, uint64_t extra, uint64_t extra_size, std::array<uint64_t*, 3> fields) {
  const uint64_t end = extra + extra_size;
  while (end - extra >= 4) {
    const uint64_t id = entry.u16(extra), size = entry.u16(extra + 2);
    extra += 4;
    if (size > end - extra) entry.fail("an extra field reaches out of its entry");
    if (id == 1) {
      uint64_t at = extra;
      for (uint64_t* field : fields) {
        if (*field != kFull32) continue;
        if (extra + size - at < 8) entry.fail("a zip64 field is too short");
        *field = entry.u64(at);
        at += 8;
      }
    }
    extra += size;
  }
}

void check_name(const ByteReader& record, const std::string& name) {
  const std::string member = "member " + in_quotes(name);
  if (name.empty()) record.fail("a member has no name");
  if (name.size() > kMaxMemberName) record.fail(member + " has a name of " + std::to_string(name.size()) + " bytes");
  if (name.front() == '/') record.fail(member + " has an absolute path");
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == '\\' || c == 0x7F)
      record.fail(member + " has a backslash or a control character in its name");
  }
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view component = std::string_view(name).substr(begin, end - begin);
    if (component == ".." || component == ".") {
      record.fail(member + " has '" + std::string(component) + "' in its path");
    }
    begin = end + 1;
  }
}

void check_method(const ByteReader& record, const std::string& path, uint16_t flags, uint16_t method,
                  const std::string& name, Compression compression) {
  constexpr uint16_t kDeflated = 8;
  constexpr uint16_t kEncrypted = 1 | 1 << 6 | 1 << 13, kPatch = 1 << 5;
  if ((flags & kEncrypted) != 0) record.fail("member " + in_quotes(name) + " is encrypted");
  if (method == 0 && (flags & kPatch) == 0) return;
  if (compression == Compression::allowed && method == kDeflated && (flags & kPatch) == 0) return;
  throw Error("PROGRAM_COMPRESSED_MEMBER",
              path + ": member " + in_quotes(name) + " is compressed (method " + std::to_string(method) +
                  "), but the members of a .pt2 must be stored without compression",
              "save it again with torch.export.save, or unpack it and pack it again with zip -0 -r");
}

// Refuses content of a folder. libtorch believes a folder to be empty: it would give a tensor whose member is marked as
// a folder memory that it has never written.
void check_not_folder(const ByteReader& record, const Member& member, uint32_t attributes) {
  constexpr uint32_t kFolder = 1 << 4;  // of MS-DOS; the attributes of other systems stand in the upper half
  if (member.size > 0 && ((attributes & kFolder) != 0 || member.name.ends_with('/')))
    record.fail("member " + in_quotes(member.name) + " is a folder, but has content");
}

// Checks the sizes that the entry declares, because a small file could otherwise ask for any amount of memory.
// `unpacked` is the size of the content of the compressed members so far.
void check_sizes(const ByteReader& record, const Member& member, uint64_t& unpacked) {
  constexpr uint64_t kMostRatio = 1032;  // deflate cannot shrink anything further
  if (!member.compressed) {
    if (member.packed != member.size) record.fail("member " + in_quotes(member.name) + " has two different sizes");
    return;
  }
  if (member.size / kMostRatio > member.packed)
    record.fail("member " + in_quotes(member.name) + " claims to hold more than its bytes can");
  if (member.size > kMaxUnpackedBytes - unpacked)
    record.fail("its compressed members claim to hold more than " + std::to_string(kMaxUnpackedBytes) + " bytes");
  unpacked += member.size;
}

}  // namespace

std::vector<Member> read_directory(const FileRange& file, Compression compression) {
  const Directory directory = find_directory(file);
  const ByteReader none({}, file.path());
  if (directory.offset > directory.limit || directory.size > directory.limit - directory.offset)
    none.fail("its directory lies outside of the file");
  if (directory.size > kMaxDirectoryBytes) none.fail("its directory has " + std::to_string(directory.size) + " bytes");
  if (directory.entries > directory.size / kEntrySize) none.fail("its directory is too short for its entries");
  std::vector<std::byte> bytes(directory.size);
  file.read(directory.offset, bytes);
  const ByteReader record(bytes, file.path());
  std::vector<Member> members;
  members.reserve(directory.entries);
  uint64_t at = 0, unpacked = 0;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    if (record.u32(at) != kEntry) record.fail("entry " + std::to_string(i) + " of its directory is damaged");
    const uint64_t name_size = record.u16(at + 28), extra_size = record.u16(at + 30), comment = record.u16(at + 32);
    Member member;
    member.name = record.text(at + kEntrySize, name_size);
    check_name(record, member.name);
    check_method(record, file.path(), record.u16(at + 8), record.u16(at + 10), member.name, compression);
    member.compressed = record.u16(at + 10) != 0;
    member.packed = record.u32(at + 20);
    member.size = record.u32(at + 24);
    member.header = record.u32(at + 42);
    read_wide(record, at + kEntrySize + name_size, extra_size, {&member.size, &member.packed, &member.header});
    check_sizes(record, member, unpacked);
    check_not_folder(record, member, record.u32(at + 38));
    if (record.u16(at + 34) != 0) record.fail("it is split into several volumes");
    member.crc = record.u32(at + 16);
    member.crc_offsets = {directory.offset + at + 16};
    member.end = directory.offset;
    at += kEntrySize + name_size + extra_size + comment;
    members.push_back(std::move(member));
  }
  if (at != directory.size) record.fail("its directory has bytes after its last entry");
  return members;
}

}  // namespace sinew::program
