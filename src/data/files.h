// Inside data/: bytes of files, gunzipped, with the digest of what the disk gave. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"

namespace sinew::data {

struct FileBytes {
  std::string path;
  std::vector<std::byte> bytes;  // gunzipped
  Digest digest;                 // of the bytes as read: compressed ones where the file is
};

// Throws Error naming the file: unreadable, damaged gzip, or more than `limit` bytes.
FileBytes read_file(const std::string& path, uint64_t limit = 1ULL << 36);
// All of them, each in a thread of its own; of several errors the first file's is thrown.
std::vector<FileBytes> read_files(const std::vector<std::string>& paths);

// Every member of a gzip file. `name` for messages.
std::vector<std::byte> gunzip(std::span<const std::byte> file, const std::string& name, uint64_t limit);
bool is_gzip(std::span<const std::byte> file);

// First `limit` bytes, gunzipped, for telling what a file is. Nothing is checked beyond them; never throws for content.
std::vector<std::byte> read_head(const std::string& path, size_t limit);

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::string file_name(const std::string& path);  // last component
std::string with_commas(int64_t number);         // 60,000

}  // namespace sinew::data
