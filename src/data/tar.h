// Private to data/: the tar format (POSIX.1-2001 "ustar" and pax, and GNU's long names).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sinew::data {

constexpr uint64_t kTarBlock = 512;
// What to do about a compressed tar.
inline constexpr std::string_view kUnpackTar =
    "unpack it once, with gunzip or unzstd: Sinew reads samples from any place of a tar";

// A regular file in a tar.
struct TarMember {
  std::string name;     // without "./" at its begin
  uint64_t offset = 0;  // where its bytes begin in the tar
  uint64_t size = 0;
};

// The links among the members that were skipped.
struct TarLinks {
  int64_t count = 0;
  std::string first;  // the name of the first one
  bool hard = false;  // one of them is a hard link: the second name of a file
};

// Reads the headers of a tar, one member after the other; it does not read their content. Skips folders, links and
// devices. Throws Error, which names the tar and the byte, if the tar is damaged, is cut off, or needs an extension
// that Sinew does not read. A tar without the mark of its end counts as cut off, because a cut between two members
// shows in no other way.
class TarReader {
 public:
  // Fills `out` from the bytes of the tar at `offset`. The reader asks only for bytes below `size`.
  using ReadAt = std::function<void(uint64_t offset, std::span<std::byte> out)>;
  TarReader(std::string path, uint64_t size, ReadAt read_at);
  std::optional<TarMember> next();  // nullopt at the end
  const TarLinks& links() const { return links_; }
  // Reads bytes of the tar. Small pieces that follow each other come from one read of the file.
  std::span<const std::byte> bytes(uint64_t offset, uint64_t size);

 private:
  // What the headers before a member say about it.
  struct Extension {
    std::optional<std::string> name;
    std::optional<uint64_t> size;
  };
  [[noreturn]] void fail(const std::string& what, uint64_t at) const;
  [[noreturn]] void fail_cut(uint64_t at) const;
  [[noreturn]] void refuse_start(std::span<const std::byte> header) const;
  std::span<const std::byte> content(const char* what, uint64_t size);
  void read_pax(uint64_t size, bool global, Extension& extension);
  void check_end();

  std::string path_;
  uint64_t size_, at_ = 0;
  bool ended_ = false;
  TarLinks links_;
  ReadAt read_at_;
  std::vector<std::byte> window_;
  uint64_t window_at_ = 0;
};

// Returns the blocks that come before the content of a member: a ustar header, and before it a pax header if the name
// is too long. Equal arguments give equal bytes: owner, permissions and time are fixed.
std::string tar_header(const std::string& name, uint64_t size);
// Returns the zero bytes that come after the content of a member of this size.
std::string_view tar_padding(uint64_t size);
// The mark of the end.
std::string_view tar_end();

}  // namespace sinew::data
