// Private to checkpoint/: writes and reads a safetensors file in pieces, so the whole file is never in memory.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/checksums.h"

namespace sinew::checkpoint {

// Returns the indices of `tensors` in the order of their data in the file.
std::vector<size_t> data_order(const std::vector<TensorBytes>& tensors);

// Passes the bytes of the whole file to `put`, piece by piece.
template <typename Put>
void put_safetensors(const std::vector<TensorBytes>& tensors, const Metadata& metadata, Put put) {
  put(std::span<const std::byte>(safetensors_header(tensors, metadata)));
  for (const size_t i : data_order(tensors)) put(tensors[i].bytes);
}

// Parses the JSON of the header of a file that has `data_bytes` bytes of data.
std::expected<SafetensorsIndex, std::string> parse_header(std::span<const std::byte> json, uint64_t data_bytes);

// Returns the length of the header, which the first 8 bytes of a file give. Refuses a length that does not fit a file
// of `file_bytes` bytes.
std::expected<uint64_t, std::string> header_length(std::span<const std::byte, 8> first, uint64_t file_bytes);

// Parses a file of known size that arrives in pieces of any size, in order. Copies the bytes straight into the arrays,
// so it needs no second copy of the file. If `digests` is not null, puts the digests of the tensors there.
class TensorSink {
 public:
  TensorSink(uint64_t file_bytes, bool keep, TensorDigests* digests = nullptr)
      : file_bytes_(file_bytes), keep_(keep), digests_(digests) {}
  void take(std::span<const std::byte> bytes);
  std::expected<TensorFile, std::string> finish();  // if `keep` is false, returns only the metadata

 private:
  std::span<const std::byte> take_head(std::span<const std::byte> bytes);  // returns the bytes after the header
  void take_data(std::span<const std::byte> bytes);
  void begin_tensor();
  void end_tensor();

  uint64_t file_bytes_;
  bool keep_;
  TensorDigests* digests_;
  std::string trouble_;
  std::vector<std::byte> head_;
  uint64_t head_bytes_ = 8;  // bytes of the head to collect: 8 for the length, then 8 plus the length
  bool has_index_ = false;
  SafetensorsIndex index_;
  size_t current_ = 0;   // index of the tensor that is being read
  uint64_t filled_ = 0;  // number of bytes of that tensor that were read
  Array array_;
  ChunkDigests chunks_;
  TensorFile file_;
};

// Returns the format's name of a dtype, for example "F32".
std::string_view safetensors_name(DType dtype);

}  // namespace sinew::checkpoint
