// Private to data/: reads files whole, unpacks gzip and zstd, converts Parquet and Arrow files to CSV, and computes the
// digest of what identifies the data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/lower_case.h"

namespace sinew::data {

struct FileBytes {
  std::string path;
  std::vector<std::byte> bytes;  // unpacked
  // Over the bytes on disk, so over the compressed bytes if the file is packed. Of a Parquet or Arrow file: over its
  // CSV, because another pyarrow may write another one.
  Digest digest;
};

// The most bytes of a file's content: Sinew keeps it in memory.
uint64_t most_bytes();
// `limit` bounds the memory that a hostile file can make the reader allocate. Throws Error, naming the file, if the
// file is unreadable, has damaged gzip or zstd data, or holds more than `limit` bytes.
FileBytes read_file(const std::string& path, uint64_t limit = most_bytes());
// Reads all files, each in its own thread. If several fail, throws the error of the first one in the list.
std::vector<FileBytes> read_files(const std::vector<std::string>& paths);

// Returns the first `limit` bytes, unpacked, for detecting a format. Does not check the rest of the file, and never
// throws because of the content, unless pyarrow is needed and cannot read it.
std::vector<std::byte> read_head(const std::string& path, size_t limit);

// The names of the folders and files of each split.
inline constexpr std::array<std::string_view, 3> kTrainNames = {"train", "training", "Train"};
inline constexpr std::array<std::string_view, 6> kValNames = {"val", "valid", "validation", "Val", "dev", "eval"};
inline constexpr std::array<std::string_view, 3> kTestNames = {"test", "testing", "Test"};

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
bool is_dead_link(const std::string& path);           // a link that leads to no file or folder
std::string file_name(const std::string& path);       // the last component
std::string file_extension(const std::string& path);  // "csv" of "data/b.CSV.gz": lower case, without ".gz", ".zst"
std::string with_commas(int64_t number);              // 60,000

}  // namespace sinew::data
