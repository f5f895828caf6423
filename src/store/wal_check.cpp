// The format of the WAL: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
#include "store/wal_check.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdio>
#include <fstream>
#include <optional>
#include <set>
#include <vector>

namespace sinew::store {
namespace {

constexpr size_t kHeaderBytes = 32, kFrameHeaderBytes = 24;
constexpr int64_t kPendingByte = 0x40000000;

uint32_t word_at(const std::vector<char>& bytes, size_t at) {
  uint32_t word = 0;
  for (size_t i = 0; i < 4; ++i) word = word << 8U | static_cast<unsigned char>(bytes[at + i]);
  return word;
}

// The running checksum over a WAL. The WAL's magic number tells its byte order.
class Checksum {
 public:
  explicit Checksum(bool big_endian) : big_endian_(big_endian) {}
  void add(const std::vector<char>& bytes, size_t from, size_t count) {
    for (size_t at = from; at + 8 <= from + count; at += 8) {
      first_ += word(bytes, at) + second_;
      second_ += word(bytes, at + 4) + first_;
    }
  }
  bool is(uint32_t first, uint32_t second) const { return first_ == first && second_ == second; }

 private:
  uint32_t word(const std::vector<char>& bytes, size_t at) const {
    const uint32_t big = word_at(bytes, at);
    return big_endian_ ? big : __builtin_bswap32(big);
  }
  const bool big_endian_;
  uint32_t first_ = 0, second_ = 0;
};

// What the complete transactions of a WAL contain.
struct Wal {
  int64_t page_bytes = 0;
  int64_t pages = 0;        // number of pages of the database after the last transaction
  std::set<uint32_t> held;  // numbers of the pages that the WAL contains
};

// Returns nullopt if there is no WAL, or none with a complete transaction.
std::optional<Wal> read_wal(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> header(kHeaderBytes);
  if (!file.read(header.data(), static_cast<std::streamsize>(header.size()))) return std::nullopt;
  const uint32_t magic = word_at(header, 0);
  if ((magic & ~1U) != 0x377f0682U) return std::nullopt;
  Wal wal;
  wal.page_bytes = word_at(header, 8);
  if (wal.page_bytes < 512 || wal.page_bytes > 65536) return std::nullopt;
  Checksum sum((magic & 1U) != 0);
  sum.add(header, 0, 24);
  if (!sum.is(word_at(header, 24), word_at(header, 28))) return std::nullopt;
  std::vector<char> frame(kFrameHeaderBytes + static_cast<size_t>(wal.page_bytes));
  std::set<uint32_t> open;  // pages of a transaction whose end was not read yet
  while (file.read(frame.data(), static_cast<std::streamsize>(frame.size()))) {
    if (word_at(frame, 8) != word_at(header, 16) || word_at(frame, 12) != word_at(header, 20)) break;
    sum.add(frame, 0, 8);
    sum.add(frame, kFrameHeaderBytes, frame.size() - kFrameHeaderBytes);
    if (!sum.is(word_at(frame, 16), word_at(frame, 20))) break;
    open.insert(word_at(frame, 0));
    if (word_at(frame, 4) == 0) continue;
    wal.pages = word_at(frame, 4);
    wal.held.merge(open);
    open.clear();
  }
  return wal.pages == 0 ? std::nullopt : std::optional(std::move(wal));
}

}  // namespace

std::string foreign_wal(const std::string& path, const DatabaseFile& database) {
  const auto wal = read_wal(path);
  if (!wal) return "";
  if (database.page_bytes != 0 && database.page_bytes != wal->page_bytes)
    return "its pages have " + std::to_string(wal->page_bytes) + " bytes, and those of the store " +
           std::to_string(database.page_bytes);
  const auto holds_all = [&](int64_t first, int64_t last) {
    const int64_t lock_page = kPendingByte / wal->page_bytes + 1;  // SQLite never writes this one
    for (int64_t page = first; page <= last; ++page) {
      if (page != lock_page && !wal->held.contains(static_cast<uint32_t>(page))) return false;
    }
    return true;
  };
  // A database only grows, except in VACUUM, which writes all pages. So the WAL must contain every page beyond the end
  // of the file. If it makes the database smaller, it must contain all pages.
  if (wal->pages >= database.pages ? holds_all(database.pages + 1, wal->pages) : holds_all(1, wal->pages)) return "";
  return "it was written for a file of " + std::to_string(wal->pages) + " pages, and the store has " +
         std::to_string(database.pages);
}

bool is_in_use(const std::string& shm) {
  struct stat facts {};
  if (::stat(shm.c_str(), &facts) != 0) return false;
  char wanted[64];
  std::snprintf(wanted, sizeof wanted, "%02x:%02x:%lu", major(facts.st_dev), minor(facts.st_dev),
                static_cast<unsigned long>(facts.st_ino));
  std::ifstream locks("/proc/locks");
  for (std::string word; locks >> word;) {
    if (word == wanted) return true;
  }
  return false;
}

}  // namespace sinew::store
