// Inside the room: a safetensors file piece by piece, so that neither writing nor reading needs it whole in memory.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace sinew::checkpoint {

inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;

// Indices of `tensors` in the order their data stands in a file.
std::vector<size_t> data_order(const std::vector<TensorBytes>& tensors);

// The whole file, given to `put` piece by piece.
template <typename Put>
void put_safetensors(const std::vector<TensorBytes>& tensors, const Metadata& metadata, Put put) {
  put(std::span<const std::byte>(safetensors_header(tensors, metadata)));
  for (const size_t i : data_order(tensors)) put(tensors[i].bytes);
}

// The header's JSON, of a file with `data_bytes` behind it.
std::expected<SafetensorsIndex, std::string> parse_header(std::span<const std::byte> json, uint64_t data_bytes);

// The length a file's first 8 bytes tell, if it can be true of a file of that size.
std::expected<uint64_t, std::string> header_length(std::span<const std::byte, 8> first, uint64_t file_bytes);

// Takes a file of known size in order, cut anyhow, and makes its arrays as the bytes come: no second copy.
class TensorSink {
 public:
  TensorSink(uint64_t file_bytes, bool keep) : file_bytes_(file_bytes), keep_(keep) {}
  void take(std::span<const std::byte> bytes);
  std::expected<TensorFile, std::string> finish();  // without `keep`: metadata only

 private:
  std::span<const std::byte> take_head(std::span<const std::byte> bytes);  // returns what is left
  void take_data(std::span<const std::byte> bytes);
  void begin_tensor();

  uint64_t file_bytes_;
  bool keep_;
  std::string trouble_;
  std::vector<std::byte> head_;
  uint64_t head_bytes_ = 8;  // wanted: first the length, then all of it
  bool has_index_ = false;
  SafetensorsIndex index_;
  size_t current_ = 0;  // tensor being filled
  size_t filled_ = 0;   // bytes of it
  Array array_;
  TensorFile file_;
};

// The index's dtypes by the format's names.
std::string_view safetensors_name(DType dtype);

}  // namespace sinew::checkpoint
