#include "data/tar.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace sinew::data {
namespace {

// The fields of a header: their first bytes and their lengths.
struct TarField {
  size_t at, size;
};
constexpr TarField kName = {0, 100}, kMode = {100, 8}, kOwner = {108, 8}, kGroup = {116, 8}, kSize = {124, 12},
                   kTime = {136, 12}, kChecksum = {148, 8}, kMagic = {257, 8}, kPrefix = {345, 155};
constexpr size_t kType = 156;
constexpr std::string_view kPosixMagic("ustar\00000", 8);

constexpr uint64_t kWindow = 4096;           // holds a label and the headers around it
constexpr uint64_t kMostExtended = 1 << 20;  // bytes of a long name or of a pax header
constexpr uint64_t kMostZeros = 16 << 20;    // after the end; programs fill a tar up to a whole block of a tape
constexpr uint64_t kFixedTime = 315532800;   // 1980: GNU tar warns about older times

std::string_view tar_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The text of a field ends at its first NUL.
std::string_view text_in(std::span<const std::byte> header, TarField field) {
  const std::string_view text = tar_text(header.subspan(field.at, field.size));
  return text.substr(0, text.find('\0'));
}

// Reads a number: octal digits between spaces, or, for GNU tar, a binary number whose first bit is set. Returns nullopt
// if it is none, is negative or has more than 63 bits.
std::optional<uint64_t> number_in(std::span<const std::byte> header, TarField field) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  const auto bytes = header.subspan(field.at, field.size);
  if ((bytes[0] & std::byte{0x80}) != std::byte{0}) {
    if (bytes[0] != std::byte{0x80}) return std::nullopt;
    uint64_t number = 0;
    for (const std::byte byte : bytes.subspan(1)) {
      if (number > (kMost >> 8)) return std::nullopt;
      number = number << 8 | static_cast<uint64_t>(byte);
    }
    return number;
  }
  std::string_view text = text_in(header, field);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  text = text.substr(0, text.find_last_not_of(' ') + 1);
  if (text.empty()) return 0;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 8);
  if (error != std::errc() || end != text.data() + text.size() || number > kMost) return std::nullopt;
  return number;
}

// The checksum is the sum of all bytes, with spaces in its own place. Old programs added signed bytes.
bool checksum_fits(std::span<const std::byte> header) {
  uint64_t bytes = 0;
  int64_t signed_bytes = 0;
  for (size_t i = 0; i < header.size(); ++i) {
    const bool own = i >= kChecksum.at && i < kChecksum.at + kChecksum.size;
    const auto byte = own ? static_cast<uint8_t>(' ') : static_cast<uint8_t>(header[i]);
    bytes += byte;
    signed_bytes += static_cast<int8_t>(byte);
  }
  const std::optional<uint64_t> said = number_in(header, kChecksum);
  return said && (*said == bytes || static_cast<int64_t>(*said) == signed_bytes);
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

uint64_t padded(uint64_t size) {
  return (size + kTarBlock - 1) / kTarBlock * kTarBlock;
}

std::string name_in(std::span<const std::byte> header) {
  const std::string_view name = text_in(header, kName), prefix = text_in(header, kPrefix);
  // In GNU's own format, whose magic is "ustar  ", other fields are where POSIX has the prefix.
  const bool posix = tar_text(header.subspan(kMagic.at, 6)) == std::string_view("ustar\0", 6);
  return posix && !prefix.empty() ? std::string(prefix) + '/' + std::string(name) : std::string(name);
}

// Takes the next record "LENGTH KEY=VALUE\n" from a pax header. Returns false if there is no valid one.
bool take_record(std::string_view& text, std::string_view& key, std::string_view& value) {
  size_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  const auto digits = static_cast<size_t>(end - text.data());
  if (error != std::errc() || length > text.size() || length < digits + 3 || *end != ' ') return false;
  const std::string_view record = text.substr(digits + 1, length - digits - 1);
  const size_t equals = record.find('=');
  if (equals == std::string_view::npos || record.back() != '\n') return false;
  key = record.substr(0, equals);
  value = record.substr(equals + 1, record.size() - equals - 2);
  text.remove_prefix(length);
  return true;
}

void put(std::string& header, TarField field, std::string_view text) {
  text.copy(header.data() + field.at, field.size);
}

void put_octal(std::string& header, TarField field, uint64_t number) {
  for (size_t i = field.size - 1; i-- > 0; number /= 8) header[field.at + i] = static_cast<char>('0' + number % 8);
}

std::string ustar_header(std::string_view prefix, std::string_view name, char type, uint64_t size) {
  std::string header(kTarBlock, '\0');
  put(header, kName, name);
  put(header, kPrefix, prefix);
  put_octal(header, kMode, 0644);
  put_octal(header, kOwner, 0);
  put_octal(header, kGroup, 0);
  put_octal(header, kSize, size);
  put_octal(header, kTime, kFixedTime);
  header[kType] = type;
  put(header, kMagic, kPosixMagic);
  put(header, kChecksum, "        ");
  uint64_t sum = 0;
  for (const char c : header) sum += static_cast<uint8_t>(c);
  put_octal(header, {kChecksum.at, kChecksum.size - 1}, sum);  // six digits, a NUL, and a space
  header[kChecksum.at + 6] = '\0';
  return header;
}

std::string pax_record(std::string_view key, std::string_view value) {
  const std::string rest = ' ' + std::string(key) + '=' + std::string(value) + '\n';
  size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) length = std::to_string(length).size() + rest.size();
  return std::to_string(length) + rest;
}

}  // namespace

TarReader::TarReader(std::string path, uint64_t size, ReadAt read_at)
    : path_(std::move(path)), size_(size), read_at_(std::move(read_at)) {}

void TarReader::fail(const std::string& what, uint64_t at) const {
  throw Error("DATA_DAMAGED_FILE", path_ + ": " + what + " (at byte " + std::to_string(at) + ")",
              "copy or write the tar again");
}

void TarReader::fail_cut(uint64_t at) const {
  fail("the tar is cut off: it has " + std::to_string(size_) + " bytes and goes on beyond them", at);
}

void TarReader::refuse_start(std::span<const std::byte> header) const {
  const std::string_view start = tar_text(header);
  const bool packed = start.starts_with("\x1F\x8B") || start.starts_with("\x28\xB5\x2F\xFD");
  throw Error("DATA_WRONG_FORMAT", path_ + (packed ? ": is compressed" : ": is no tar: its first header is wrong"),
              packed ? std::string(kUnpackTar) : "check that it is the right file, or copy it again");
}

std::span<const std::byte> TarReader::bytes(uint64_t offset, uint64_t size) {
  if (size > size_ || offset > size_ - size) fail_cut(offset);
  if (offset < window_at_ || offset - window_at_ + size > window_.size()) {
    window_.resize(static_cast<size_t>(std::min(std::max(size, kWindow), size_ - offset)));
    window_at_ = offset;
    read_at_(offset, window_);
  }
  return std::span(window_).subspan(static_cast<size_t>(offset - window_at_), static_cast<size_t>(size));
}

// Returns the content of a long name or a pax header, and goes to the header after it.
std::span<const std::byte> TarReader::content(const char* what, uint64_t size) {
  const uint64_t start = at_ + kTarBlock;
  if (size > kMostExtended) fail(std::string(what) + " of " + std::to_string(size) + " bytes is too long", at_);
  const auto found = bytes(start, padded(size)).first(static_cast<size_t>(size));
  at_ = start + padded(size);
  return found;
}

void TarReader::read_pax(uint64_t size, bool global, Extension& extension) {
  const uint64_t start = at_;
  std::string_view text = tar_text(content("a pax header", size)), key, value;
  while (!text.empty()) {
    if (!take_record(text, key, value)) fail("a pax header is damaged", start);
    if (key.starts_with("GNU.sparse."))
      throw Error("DATA_WRONG_FORMAT", path_ + ": holds a sparse file (at byte " + std::to_string(start) + ")",
                  "write the tar again without --sparse");
    if (key != "path" && key != "size") continue;
    if (global) fail("a pax header for all files sets " + std::string(key) + ", which Sinew does not read", start);
    if (key == "path") {
      extension.name = value;
      continue;
    }
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number > std::numeric_limits<int64_t>::max())
      fail("the size in a pax header is no number", start);
    extension.size = number;
  }
}

// After the first block of zeros, only zeros may follow. Something else would be samples that nobody reads.
void TarReader::check_end() {
  if (size_ - at_ > kMostZeros)
    fail("after the mark of its end it has " + std::to_string(size_ - at_) +
             " bytes, more than the 16 MiB that Sinew reads",
         at_);
  for (uint64_t at = at_; at < size_;) {
    const uint64_t count = std::min<uint64_t>(1 << 16, size_ - at);
    if (!is_zero(bytes(at, count)))
      throw Error("DATA_WRONG_FORMAT",
                  path_ + ": goes on after the mark of its end (at byte " + std::to_string(at_) +
                      "), as if several tars were joined",
                  "unpack it with tar --ignore-zeros and pack the files again");
    at += count;
  }
  ended_ = true;
}

std::optional<TarMember> TarReader::next() {
  Extension extension;
  bool extended = false;
  while (true) {
    if (ended_) return std::nullopt;
    if (size_ < kTarBlock || at_ > size_ - kTarBlock) fail_cut(at_);
    const auto header = bytes(at_, kTarBlock);
    if (is_zero(header)) {
      if (extended) fail("a long name or a pax header is followed by no file", at_);
      check_end();
      return std::nullopt;
    }
    if (!checksum_fits(header)) {
      if (at_ == 0) refuse_start(header);
      fail("the checksum of a header is wrong", at_);
    }
    const std::optional<uint64_t> said = number_in(header, kSize);
    if (!said) fail("the size in a header is no number, or is too large", at_);
    const char type = static_cast<char>(header[kType]);
    extended = true;
    if (type == 'L') {
      std::string_view name = tar_text(content("a long name", *said));
      extension.name = name.substr(0, name.find('\0'));
    } else if (type == 'K') {
      content("the long name of a link", *said);
    } else if (type == 'x' || type == 'g') {
      read_pax(*said, type == 'g', extension);
    } else if (type == 'S' || type == 'M') {
      throw Error("DATA_WRONG_FORMAT",
                  path_ + ": holds " + (type == 'S' ? "a sparse file" : "a part of a file of another tar") +
                      " (at byte " + std::to_string(at_) + ")",
                  type == 'S' ? "write the tar again without --sparse" : "write the tar again in one volume");
    } else {
      TarMember member{extension.name ? *extension.name : name_in(header), at_ + kTarBlock,
                       extension.size ? *extension.size : *said};
      // Links, devices, folders and pipes have no content, whatever the size says.
      const bool without = type >= '1' && type <= '6';
      const uint64_t stored = without ? 0 : member.size;
      if (stored > size_ - member.offset) fail_cut(at_);
      at_ = member.offset + padded(stored);
      const bool regular = (type == '0' || type == '\0' || type == '7') && !member.name.ends_with('/');
      extension = {};
      extended = false;
      if (type == '1' || type == '2') {
        if (links_.count++ == 0) links_.first = member.name;
        links_.hard = links_.hard || type == '1';
      }
      if (!regular) continue;
      while (member.name.starts_with("./")) member.name.erase(0, 2);
      return member;
    }
  }
}

std::string tar_header(const std::string& name, uint64_t size) {
  if (name.size() <= kName.size) return ustar_header("", name, '0', size);
  const size_t slash = name.find('/', name.size() - kName.size - 1);
  if (slash != std::string::npos && slash > 0 && slash <= kPrefix.size && slash + 1 < name.size())
    return ustar_header(name.substr(0, slash), name.substr(slash + 1), '0', size);
  const std::string record = pax_record("path", name);
  return ustar_header("", "PaxHeaders/path", 'x', record.size()) + record + std::string(tar_padding(record.size())) +
         ustar_header("", name.substr(name.size() - kName.size), '0', size);
}

std::string_view tar_padding(uint64_t size) {
  static constexpr char kZeros[2 * kTarBlock] = {};
  return {kZeros, static_cast<size_t>(padded(size) - size)};
}

std::string_view tar_end() {
  static constexpr char kZeros[2 * kTarBlock] = {};
  return {kZeros, sizeof kZeros};
}

}  // namespace sinew::data
