// Reads NumPy's .npz: a ZIP archive of .npy files, stored or deflated. numpy.savez writes ZIP64.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "base/joined.h"
#include "data/arrays.h"
#include "data/unpack.h"

namespace sinew::data {
namespace {

constexpr char kDamagedArchive[] = "the file is damaged or cut off; write it again";
constexpr uint32_t kEntry = 0x02014B50, kLocal = 0x04034B50, kEnd = 0x06054B50, kEnd64 = 0x06064B50,
                   kLocator64 = 0x07064B50;

// Reads little-endian numbers and text, and checks bounds. A read outside of the file throws the Error for a damaged
// file.
class Reader {
 public:
  Reader(std::span<const std::byte> file, const std::string& name) : file_(file), name_(name) {}
  uint64_t number(uint64_t at, int bytes) const {
    if (at > file_.size() || static_cast<uint64_t>(bytes) > file_.size() - at) fail("a record lies outside of it");
    uint64_t value = 0;
    for (int i = bytes; i-- > 0;) value = value << 8 | static_cast<uint64_t>(file_[at + static_cast<uint64_t>(i)]);
    return value;
  }
  uint16_t u16(uint64_t at) const { return static_cast<uint16_t>(number(at, 2)); }
  uint32_t u32(uint64_t at) const { return static_cast<uint32_t>(number(at, 4)); }
  uint64_t u64(uint64_t at) const { return number(at, 8); }
  std::string text(uint64_t at, uint64_t size) const {
    if (at > file_.size() || size > file_.size() - at) fail("a name lies outside of it");
    return std::string(text_of(file_.subspan(at, size)));
  }
  uint64_t size() const { return file_.size(); }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error("DATA_DAMAGED_FILE", name_ + ": broken ZIP archive: " + what, kDamagedArchive);
  }

 private:
  std::span<const std::byte> file_;
  const std::string& name_;
};

struct Directory {
  uint64_t offset = 0, entries = 0;
};

Directory find_directory(const Reader& reader) {
  constexpr uint64_t kEndSize = 22, kMaxComment = 65535;
  if (reader.size() < kEndSize) reader.fail("too short");
  const uint64_t last = reader.size() - kEndSize, first = last > kMaxComment ? last - kMaxComment : 0;
  for (uint64_t at = last + 1; at-- > first;) {
    if (reader.u32(at) != kEnd || reader.u16(at + 20) != reader.size() - at - kEndSize) continue;
    Directory directory{reader.u32(at + 16), reader.u16(at + 10)};
    if (at >= 20 && reader.u32(at - 20) == kLocator64) {
      const uint64_t wide = reader.u64(at - 20 + 8);
      if (reader.u32(wide) != kEnd64) reader.fail("its ZIP64 end record is not at its declared place");
      directory = {reader.u64(wide + 48), reader.u64(wide + 32)};
    }
    return directory;
  }
  reader.fail("it has no end record");
}

// Reads extra field 1. It holds those of the two sizes and the offset that do not fit into 32 bits, in this order. A
// value is present only if its 32-bit field has all bits set.
void read_wide_sizes(const Reader& reader, uint64_t extra, uint64_t extra_end, ZipMember& member, uint64_t& local) {
  constexpr uint64_t kFull = std::numeric_limits<uint32_t>::max();
  while (extra + 4 <= extra_end) {
    const uint16_t id = reader.u16(extra), size = reader.u16(extra + 2);
    if (id == 1) {
      uint64_t at = extra + 4;
      for (uint64_t* field : {&member.size, &member.packed, &local}) {
        if (*field != kFull) continue;
        *field = reader.u64(at);
        at += 8;
      }
      if (at > extra + 4 + size) reader.fail("a ZIP64 field is too short");
    }
    extra += 4ULL + size;
  }
}

}  // namespace

std::vector<ZipMember> parse_zip(std::span<const std::byte> file, const std::string& name) {
  const Reader reader(file, name);
  const Directory directory = find_directory(reader);
  constexpr uint64_t kEntrySize = 46, kLocalSize = 30;
  if (directory.entries > file.size() / kEntrySize) reader.fail("its directory is larger than the file");
  std::vector<ZipMember> members;
  uint64_t at = directory.offset;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    if (reader.u32(at) != kEntry) reader.fail("entry " + std::to_string(i) + " of its directory is damaged");
    const uint16_t flags = reader.u16(at + 8), method = reader.u16(at + 10);
    const uint16_t name_size = reader.u16(at + 28), extra_size = reader.u16(at + 30),
                   comment_size = reader.u16(at + 32);
    ZipMember member{reader.text(at + kEntrySize, name_size),
                     method == 8,
                     0,
                     reader.u32(at + 20),
                     reader.u32(at + 24),
                     reader.u32(at + 16)};
    uint64_t local = reader.u32(at + 42);
    const uint64_t extra = at + kEntrySize + name_size;
    read_wide_sizes(reader, extra, extra + extra_size, member, local);
    if ((flags & 1) != 0) reader.fail(member.name + " is encrypted");
    if (method != 0 && method != 8) reader.fail(member.name + " uses compression method " + std::to_string(method));
    if (reader.u32(local) != kLocal) reader.fail(member.name + " is not where the directory says");
    member.offset = local + kLocalSize + reader.u16(local + 26) + reader.u16(local + 28);
    if (member.offset > file.size() || member.packed > file.size() - member.offset)
      reader.fail(member.name + " reaches past the end");
    if (!member.deflated && member.packed != member.size) reader.fail(member.name + " has two different sizes");
    members.push_back(std::move(member));
    at = extra + extra_size + comment_size;
  }
  return members;
}

std::vector<std::byte> unpack(std::span<const std::byte> file, const ZipMember& member, const std::string& name,
                              uint64_t limit) {
  const auto packed = file.subspan(member.offset, member.packed);
  const std::string label = name + ':' + member.name;
  std::vector<std::byte> bytes;
  check_size(member.size, limit, label);
  if (member.deflated) {
    // Deflate expands at most 1032 times. A larger claim is refused before memory is allocated for it.
    if (member.size / 1032 > member.packed) {
      throw Error("DATA_DAMAGED_FILE", label + ": claims more bytes than it can hold", kDamagedArchive);
    }
    bytes.resize(member.size);
    z_stream stream{};
    if (inflateInit2(&stream, -15) != Z_OK) throw std::bad_alloc();
    uint64_t read = 0, written = 0;
    int result = Z_OK;
    constexpr uint64_t kMaxChunk = std::numeric_limits<uInt>::max();
    std::byte spare{};  // zlib needs an output buffer even for an empty member
    while (result == Z_OK) {
      const uint64_t in = std::min(kMaxChunk, packed.size() - read), out = std::min(kMaxChunk, bytes.size() - written);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + read));
      stream.avail_in = static_cast<uInt>(in);
      stream.next_out = reinterpret_cast<Bytef*>(bytes.empty() ? &spare : bytes.data() + written);
      stream.avail_out = static_cast<uInt>(out);
      result = inflate(&stream, Z_NO_FLUSH);
      read += in - stream.avail_in;
      written += out - stream.avail_out;
    }
    inflateEnd(&stream);
    if (result != Z_STREAM_END || written != bytes.size()) {
      throw Error("DATA_DAMAGED_FILE", label + ": does not unpack to the size it claims", kDamagedArchive);
    }
  } else {
    bytes.assign(packed.begin(), packed.end());
  }
  if (crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()) != member.crc && !bytes.empty()) {
    throw Error("DATA_DAMAGED_FILE", label + ": its checksum is wrong", kDamagedArchive);
  }
  return bytes;
}

ArraySplit read_npz(const spec::DataSource& source, Split split) {
  if (source.path.empty()) {
    throw Error("DATA_BAD_SOURCE", "data." + to_string(split) + ": npz needs a path:", "name the .npz file");
  }
  const FileBytes file = read_file(source.path);
  const auto members = parse_zip(file.bytes, source.path);
  const auto find = [&](const std::vector<std::string>& names) -> const ZipMember* {
    for (const std::string& wanted : names) {
      for (const ZipMember& member : members) {
        if (member.name == wanted + ".npy") return &member;
      }
    }
    return nullptr;
  };
  const auto read = [&](const std::vector<std::string>& names, const std::string& what) {
    const ZipMember* member = find(names);
    if (member == nullptr) {
      const std::string known = joined(members, ", ", &ZipMember::name);
      throw Error("DATA_MISSING_FILES",
                  source.path + ": has no array for the " + what + "; it holds " + (known.empty() ? "nothing" : known),
                  "name the array " + names.back() + " or " + names.front());
    }
    const std::string label = source.path + ':' + member->name;
    auto bytes = unpack(file.bytes, *member, source.path);
    const ArrayHeader header = parse_npy(bytes, label);
    return make_array(std::move(bytes), header, label);
  };
  const std::string suffix = to_string(split);
  ArraySplit result;
  result.inputs = read({"x_" + suffix, "X_" + suffix, "images", "inputs", "data", "X", "x"}, "inputs");
  result.targets = read({"y_" + suffix, "labels", "targets", "target", "y"}, "targets");
  result.digests = {file.digest};
  return result;
}

}  // namespace sinew::data
