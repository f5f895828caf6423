// Reads a tensor from the archive. The member is read once, in pieces, and its checksum is computed at the same time.
#include <algorithm>
#include <cstring>

#include "program/files.h"
#include "program/weights.h"

namespace sinew::program {
namespace {

template <size_t width>
void gather(const StoredTensor& stored, const std::byte* from, std::byte* to) {
  const int64_t first = stored.offset;
  for_each_element(stored, [&](int64_t dense, int64_t at) {
    std::memcpy(to + static_cast<size_t>(dense) * width, from + static_cast<size_t>(at - first) * width, width);
  });
}

}  // namespace

Array read_tensor(Disk& disk, const Program& program, const StoredTensor& stored) {
  const auto dtype = dtype_of(stored.dtype);
  if (!dtype) {
    throw Error("PROGRAM_UNSUPPORTED",
                program.path + ": member " + in_quotes(stored.member) + " holds " + std::string(name_of(stored.dtype)) +
                    ", a dtype that Sinew does not support",
                "export the model in another dtype");
  }
  const auto [begin, end] = extent(stored);
  Array array(*dtype, stored.sizes);
  const bool dense = is_dense(stored) || begin == end;
  std::vector<std::byte> view(dense ? 0 : end - begin);
  std::byte* const to = dense ? array.bytes.data() : view.data();
  uint32_t crc = 0;
  uint64_t at = 0;  // offset within the member
  FileRange(disk, program.path).read(stored.begin, stored.member_bytes, [&, begin = begin, end = end](auto piece) {
    crc = crc32_of(piece, crc);
    const uint64_t from = std::max(at, begin), until = std::min(at + piece.size(), end);
    if (from < until) std::memcpy(to + (from - begin), piece.data() + (from - at), until - from);
    at += piece.size();
  });
  if (crc != stored.checksum) refuse_checksum(program.path, stored.member);
  if (dense) return array;
  switch (size_of(stored.dtype)) {
    case 1: gather<1>(stored, view.data(), array.bytes.data()); break;
    case 2: gather<2>(stored, view.data(), array.bytes.data()); break;
    case 4: gather<4>(stored, view.data(), array.bytes.data()); break;
    default: gather<8>(stored, view.data(), array.bytes.data()); break;
  }
  return array;
}

Array read_tensor(const Program& program, const StoredTensor& stored) {
  return read_tensor(system_disk(), program, stored);
}

}  // namespace sinew::program
