// Inside registry/: following a file that grows by whole lines and may be cut back, piece by piece.
//
// A resumed run cuts its files back and writes on (docs/formats/run-directory.md). Size does not tell when it has
// outgrown what was read, so the last bytes that were read are remembered by their digest: a line carries the time it
// was written, so a line that was written again is another.
#pragma once

#include <cstdint>
#include <string>

namespace sinew::registry {

// How far a file was read.
struct TailMark {
  uint64_t offset = 0;
  bool inside = false;  // of a line too long to be one: what follows is passed over up to its end
  std::string window;   // digest of the bytes before offset, at most kWindow of them; empty at the beginning
  bool operator==(const TailMark&) const = default;
};
inline constexpr uint64_t kWindow = 4096;

struct TailPiece {
  bool went_back = false;  // what was read before is no longer so; this is the file's beginning
  std::string text;        // whole lines
  int64_t too_long = 0;    // lines passed over
  TailMark after;
  bool more = false;  // there is more to be read at once
};

// A file that is not there is empty. Throws DiskError when it can not be read, or is no file.
TailPiece read_piece(const std::string& path, const TailMark& mark, int64_t piece_bytes);

}  // namespace sinew::registry
