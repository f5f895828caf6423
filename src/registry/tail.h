// Inside registry/: reads a file that grows by whole lines, piece by piece, and notices when the file was cut back.
//
// A resumed run truncates its files and appends to them again (docs/formats/run-directory.md). The size alone does not
// reveal this: the file may already have grown past the place up to which it was read. So the reader stores a digest of
// the last bytes that it read. Each line contains the time of its writing, so a rewritten line has different bytes.
#pragma once

#include <cstdint>
#include <string>

namespace sinew::registry {

// The place up to which a file was read.
struct TailMark {
  uint64_t offset = 0;
  bool inside = false;  // offset is within an overlong line, and the reader skips the rest of that line
  std::string window;   // digest of the last (at most kWindow) bytes before offset; empty if offset is 0
  bool operator==(const TailMark&) const = default;
};
inline constexpr uint64_t kWindow = 4096;

struct TailPiece {
  bool went_back = false;  // the file was cut back: forget all earlier pieces; this piece is the file's beginning
  std::string text;        // whole lines
  int64_t too_long = 0;    // number of overlong lines that were skipped
  TailMark after;          // pass this to the next call
  bool more = false;       // piece_bytes were read, so the file may have more: call again at once
};

// Reads at most `piece_bytes` bytes after `mark`. A missing file counts as an empty one. Throws DiskError if the file
// cannot be read or is not a regular file.
TailPiece read_piece(const std::string& path, const TailMark& mark, int64_t piece_bytes);

}  // namespace sinew::registry
