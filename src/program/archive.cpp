#include "program/archive.h"

#include <zlib.h>

#include <algorithm>

namespace sinew::program {
namespace {

constexpr uint32_t kLocal = 0x04034B50, kDescriptor = 0x08074B50;
constexpr uint64_t kLocalSize = 30;
constexpr uint16_t kSizesBehind = 1 << 3;  // the local header has no sizes; a data descriptor follows the bytes

// Reads a data descriptor: an optional signature, the checksum, and two sizes of 4 or 8 bytes each. Returns the offset
// of the checksum, and sets member.end.
uint64_t read_descriptor(const FileRange& file, Member& member) {
  std::array<std::byte, 24> bytes{};
  const uint64_t at = member.begin + member.packed, room = std::min<uint64_t>(bytes.size(), member.end - at);
  file.read(at, std::span(bytes).first(room));
  const ByteReader record{std::span(bytes).first(room), file.path()};
  for (const uint64_t skipped : {4, 0}) {
    for (const unsigned width : {4U, 8U}) {
      const uint64_t size = skipped + 4 + 2 * width;
      if (size > room || (skipped == 4 && record.u32(0) != kDescriptor)) continue;
      if (record.u32(skipped) != member.crc || record.number(skipped + 4, width) != member.packed ||
          record.number(skipped + 4 + width, width) != member.size)
        continue;
      member.end = at + size;
      return at + skipped;
    }
  }
  record.fail("the data descriptor of member " + in_quotes(member.name) + " does not match the directory");
}

// Checks the member's local header against its entry in the zip file's central directory, and sets begin, end and
// crc_offsets. The local header may leave out the sizes and the checksum.
void read_local(const FileRange& file, Member& member) {
  const uint64_t limit = member.end;
  const ByteReader none({}, file.path());
  if (member.header > limit || limit - member.header < kLocalSize + member.name.size())
    none.fail("member " + in_quotes(member.name) + " lies outside of the file");
  std::vector<std::byte> bytes(kLocalSize + member.name.size());
  file.read(member.header, bytes);
  const ByteReader local(bytes, file.path());
  const uint64_t name_size = local.u16(26), extra_size = local.u16(28);
  if (local.u32(0) != kLocal || name_size != member.name.size() || local.text(kLocalSize, name_size) != member.name)
    local.fail("member " + in_quotes(member.name) + " is not at the place that the directory gives");
  constexpr uint16_t kDeflated = 8;
  if (local.u16(8) != (member.compressed ? kDeflated : 0))
    local.fail("member " + in_quotes(member.name) + " is compressed otherwise than its directory entry says");
  member.begin = member.header + kLocalSize + name_size + extra_size;
  if (member.begin > limit || member.packed > limit - member.begin)
    local.fail("member " + in_quotes(member.name) + " reaches past the end of the file");
  const bool behind = (local.u16(6) & kSizesBehind) != 0;
  for (const auto& [at, wanted] : {std::pair<uint64_t, uint64_t>{18, member.packed}, {22, member.size}}) {
    const uint64_t said = local.u32(at);
    if (said != wanted && said != kFull32 && !(behind && said == 0))
      local.fail("the header of member " + in_quotes(member.name) + " gives another size than the directory");
  }
  const uint32_t crc = local.u32(14);
  if (!behind || crc != 0) {
    if (crc != member.crc) {
      local.fail("the header of member " + in_quotes(member.name) + " gives another checksum than the directory");
    }
    member.crc_offsets.push_back(member.header + 14);
  }
  if (behind)
    member.crc_offsets.push_back(read_descriptor(file, member));
  else
    member.end = member.begin + member.packed;
}

// Decompresses a member in pieces. Stops as soon as the content is not what the central directory says.
class Inflater {
 public:
  Inflater(const FileRange& file, const Member& member, const std::function<void(std::span<std::byte>)>& take)
      : file_(file), member_(member), take_(take), piece_(kPiece) {
    constexpr int kRawDeflate = -MAX_WBITS;  // zip has its own header and checksum, so zlib expects none
    if (inflateInit2(&stream_, kRawDeflate) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  void run() {
    file_.read(member_.begin, member_.packed, [&](std::span<std::byte> packed) { put(packed); });
    if (!ended_ || made_ != member_.size) fail();
  }

 private:
  static constexpr size_t kPiece = 1 << 16;

  void put(std::span<std::byte> packed) {
    stream_.next_in = reinterpret_cast<Bytef*>(packed.data());
    stream_.avail_in = static_cast<uInt>(packed.size());
    do {  // until zlib has taken all input and holds back no output
      if (ended_ && stream_.avail_in > 0) fail();
      if (ended_) return;
      stream_.next_out = reinterpret_cast<Bytef*>(piece_.data());
      stream_.avail_out = static_cast<uInt>(piece_.size());
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_BUF_ERROR) return;  // it needs more input
      if (result != Z_OK && result != Z_STREAM_END) fail();
      ended_ = result == Z_STREAM_END;
      const size_t got = piece_.size() - stream_.avail_out;
      made_ += got;
      if (made_ > member_.size) fail();
      if (got > 0) take_(std::span(piece_).first(got));
    } while (stream_.avail_in > 0 || stream_.avail_out == 0);
  }

  [[noreturn]] void fail() const {
    throw Error("PROGRAM_DAMAGED_FILE",
                file_.path() + ": the compressed bytes of member " + in_quotes(member_.name) +
                    " are damaged, or do not have the size that the directory gives",
                "copy the file again, or export it again");
  }

  const FileRange& file_;
  const Member& member_;
  const std::function<void(std::span<std::byte>)>& take_;
  std::vector<std::byte> piece_;
  z_stream stream_{};
  uint64_t made_ = 0;
  bool ended_ = false;
};

}  // namespace

std::string in_quotes(std::string_view name) {
  std::string text = "'";
  for (const char c : name.substr(0, 120)) text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return text + (name.size() > 120 ? "...'" : "'");
}

uint32_t crc32_of(std::span<const std::byte> bytes, uint32_t start) {
  if (bytes.empty()) return start;  // zlib resets the checksum when it gets a null pointer
  return static_cast<uint32_t>(crc32_z(start, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void refuse_checksum(const std::string& path, const std::string& member) {
  throw Error("PROGRAM_DAMAGED_FILE", path + ": the checksum of member " + in_quotes(member) + " is wrong",
              "the file is damaged; copy it again, or export it again");
}

uint64_t ByteReader::number(uint64_t at, unsigned width) const {
  if (at > bytes_.size() || width > bytes_.size() - at) fail("a record is cut off");
  uint64_t value = 0;
  for (unsigned i = width; i-- > 0;) value = value << 8 | static_cast<uint64_t>(bytes_[at + i]);
  return value;
}

std::string ByteReader::text(uint64_t at, uint64_t size) const {
  if (at > bytes_.size() || size > bytes_.size() - at) fail("a record is cut off");
  return {reinterpret_cast<const char*>(bytes_.data()) + at, size};
}

void ByteReader::fail(const std::string& what) const {
  throw Error("PROGRAM_BAD_ARCHIVE", path_ + ": not a complete zip archive: " + what,
              "copy the file again if it was cut off or damaged; torch.export.save writes a .pt2, torch.jit.save "
              "TorchScript");
}

FileRange::FileRange(Disk& disk, std::string path) : disk_(&disk), path_(std::move(path)), size_(disk.size(path_)) {}

void FileRange::read(uint64_t offset, std::span<std::byte> out) const {
  if (disk_->read_at(path_, offset, out) == out.size()) return;
  throw Error("PROGRAM_DAMAGED_FILE", path_ + ": ends before byte " + std::to_string(offset + out.size()),
              "the file is cut off, or another program is changing it; copy it again");
}

void FileRange::read(uint64_t offset, uint64_t size, const std::function<void(std::span<std::byte>)>& take) const {
  constexpr uint64_t kPiece = 1 << 20;
  std::vector<std::byte> piece(std::min(size, kPiece));
  for (uint64_t done = 0; done < size;) {
    const auto filled = std::span(piece).first(std::min(kPiece, size - done));
    read(offset + done, filled);
    take(filled);
    done += filled.size();
  }
}

void read_content(const FileRange& file, const Member& member, const std::function<void(std::span<std::byte>)>& take) {
  if (!member.compressed) {
    file.read(member.begin, member.size, take);
  } else {
    Inflater(file, member, take).run();
  }
}

Archive::Archive(Disk& disk, const std::string& path, Compression compression)
    : file_(disk, path), members_(read_directory(file_, compression)) {
  for (Member& member : members_) read_local(file_, member);
  std::sort(members_.begin(), members_.end(), [](const Member& a, const Member& b) { return a.header < b.header; });
  const ByteReader none({}, path);
  for (size_t i = 0; i < members_.size(); ++i) {
    if (i > 0 && members_[i].header < members_[i - 1].end)
      none.fail("members " + in_quotes(members_[i - 1].name) + " and " + in_quotes(members_[i].name) + " overlap");
    if (!by_name_.emplace(members_[i].name, i).second)
      none.fail("member " + in_quotes(members_[i].name) + " occurs twice");
  }
}

const Member* Archive::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &members_[found->second];
}

std::string Archive::text(const Member& member, uint64_t max_bytes) const {
  if (member.size > max_bytes) {
    throw Error("PROGRAM_TOO_LARGE",
                file_.path() + ": member " + in_quotes(member.name) + " has " + std::to_string(member.size) +
                    " bytes; Sinew reads at most " + std::to_string(max_bytes),
                "torch.export.save does not write such a file; export the model again");
  }
  std::string text;
  text.reserve(member.size);
  uint32_t crc = 0;
  read_content(file_, member, [&](std::span<const std::byte> piece) {
    crc = crc32_of(piece, crc);
    text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  if (crc != member.crc) refuse_checksum(file_.path(), member.name);
  return text;
}

void Archive::check_contents() const {
  for (const Member& member : members_) {
    uint32_t crc = 0;
    read_content(file_, member, [&](std::span<const std::byte> piece) { crc = crc32_of(piece, crc); });
    if (crc != member.crc) refuse_checksum(file_.path(), member.name);
  }
}

}  // namespace sinew::program
