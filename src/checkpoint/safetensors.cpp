#include "checkpoint/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/check.h"
#include "base/sha256.h"
#include "checkpoint/checksums.h"

namespace sinew::checkpoint {
namespace {

// Returns the position of a dtype in the stock library's order, which here lacks the dtypes that Sinew does not have.
// Files list tensors by descending position.
int rank(DType dtype) {
  switch (dtype) {
    case DType::boolean: return 0;
    case DType::u8: return 1;
    case DType::i8: return 2;
    case DType::i16: return 3;
    case DType::f16: return 4;
    case DType::bf16: return 5;
    case DType::i32: return 6;
    case DType::f32: return 7;
    case DType::f64: return 8;
    case DType::i64: return 9;
  }
  SINEW_CHECK(false, static_cast<int>(dtype));
}

std::string quoted_json(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw Error("SAFETENSORS_BAD_NAME", "a tensor name or a metadata text is not UTF-8, so safetensors cannot store it",
                "rename the parameter or correct the metadata");
  }
}

std::string entry_json(const TensorBytes& tensor, uint64_t begin) {
  std::string text =
      quoted_json(tensor.name) + ":{\"dtype\":\"" + std::string(safetensors_name(tensor.dtype)) + "\",\"shape\":[";
  for (size_t i = 0; i < tensor.shape.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(tensor.shape[i]);
  return text + "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(begin + tensor.bytes.size()) +
         "]}";
}

std::string metadata_json(const Metadata& metadata) {
  std::string text = "\"__metadata__\":{";
  for (const auto& [key, value] : metadata) {
    if (text.back() != '{') text += ',';
    text += quoted_json(key) + ":" + quoted_json(value);
  }
  return text + "}";
}

}  // namespace

std::vector<size_t> data_order(const std::vector<TensorBytes>& tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const int first = rank(tensors[a].dtype), second = rank(tensors[b].dtype);
    return first != second ? first > second : tensors[a].name < tensors[b].name;
  });
  return order;
}

std::vector<std::byte> safetensors_header(const std::vector<TensorBytes>& tensors, const Metadata& metadata) {
  std::string json = "{";
  if (!metadata.empty()) json += metadata_json(metadata);
  uint64_t begin = 0;
  for (const size_t i : data_order(tensors)) {
    const TensorBytes& tensor = tensors[i];
    SINEW_CHECK(tensor.bytes.size() == static_cast<size_t>(element_count(tensor.shape)) * size_of(tensor.dtype),
                tensor.name, tensor.bytes.size());
    if (json.size() > 1) json += ',';
    json += entry_json(tensor, begin);
    begin += tensor.bytes.size();
  }
  json += '}';
  json.append((8 - json.size() % 8) % 8, ' ');
  // Sinew must not write a file that its own reader would refuse.
  if (json.size() > kMaxHeaderBytes) {
    throw Error("SAFETENSORS_TOO_LARGE",
                "the names and shapes of " + std::to_string(tensors.size()) + " tensors need a header of " +
                    std::to_string(json.size()) + " bytes; safetensors allows 100,000,000",
                "save them as several parts");
  }
  if (const auto index = parse_header(std::as_bytes(std::span(json)), begin); !index) {
    throw Error("SAFETENSORS_BAD_NAME", "one safetensors file cannot hold these tensors: " + index.error(),
                "rename the parameters");
  }
  std::vector<std::byte> bytes(8 + json.size());
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(static_cast<uint64_t>(json.size()) >> (8 * i));
  std::transform(json.begin(), json.end(), bytes.begin() + 8, [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}

FileDigest write_safetensors(Disk& disk, const std::string& path, const std::vector<TensorBytes>& tensors,
                             const Metadata& metadata) {
  FileDigest written;
  Sha256 hash;
  write_durably(disk, path, [&](Disk::File& file) {
    put_safetensors(tensors, metadata, [&](std::span<const std::byte> bytes) {
      file.write(bytes);
      hash.update(bytes);
      written.bytes += bytes.size();
    });
  });
  written.sha256 = hash.hex();
  return written;
}

void TensorSink::take(std::span<const std::byte> bytes) {
  while (!bytes.empty() && !has_index_ && trouble_.empty()) bytes = take_head(bytes);
  if (!bytes.empty() && trouble_.empty()) take_data(bytes);
}

std::span<const std::byte> TensorSink::take_head(std::span<const std::byte> bytes) {
  const size_t wanted = std::min<uint64_t>(head_bytes_ - head_.size(), bytes.size());
  head_.insert(head_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(wanted));
  if (head_.size() == 8 && head_bytes_ == 8) {
    const auto length = header_length(std::span<const std::byte>(head_).first<8>(), file_bytes_);
    if (!length)
      trouble_ = length.error();
    else
      head_bytes_ += *length;
    if (length && *length == 0) trouble_ = "header is empty";
  } else if (head_.size() == head_bytes_) {
    auto index = parse_header(std::span<const std::byte>(head_).subspan(8), file_bytes_ - head_bytes_);
    if (!index)
      trouble_ = index.error();
    else
      index_ = std::move(*index), has_index_ = true;
    head_ = {};
    if (has_index_) begin_tensor();
  }
  return bytes.subspan(wanted);
}

// Begins the next tensor that has bytes, and ends the empty tensors before it.
void TensorSink::begin_tensor() {
  for (; current_ < index_.tensors.size(); ++current_) {
    const TensorEntry& tensor = index_.tensors[current_];
    if (keep_) array_ = Array(tensor.dtype, tensor.shape);
    filled_ = 0;
    if (tensor.end > tensor.begin) return;
    end_tensor();
  }
}

void TensorSink::end_tensor() {
  const std::string& name = index_.tensors[current_].name;
  if (keep_) file_.tensors.emplace(name, std::move(array_));
  if (digests_ != nullptr) digests_->emplace(name, chunks_.finish());
}

void TensorSink::take_data(std::span<const std::byte> bytes) {
  while (!bytes.empty() && current_ < index_.tensors.size()) {
    const TensorEntry& tensor = index_.tensors[current_];
    const uint64_t size = tensor.end - tensor.begin;
    auto piece = bytes.first(std::min<uint64_t>(bytes.size(), size - filled_));
    bytes = bytes.subspan(piece.size());
    if (keep_) {
      std::byte* const kept = array_.bytes.data() + filled_;
      std::copy(piece.begin(), piece.end(), kept);
      piece = {kept, piece.size()};  // the digest is that of the bytes which the caller gets
    }
    if (digests_ != nullptr) chunks_.update(piece);
    filled_ += piece.size();
    if (filled_ < size) return;
    end_tensor();
    ++current_;
    begin_tensor();
  }
}

std::expected<TensorFile, std::string> TensorSink::finish() {
  if (!trouble_.empty()) return std::unexpected(trouble_);
  if (!has_index_) return std::unexpected("file of " + std::to_string(file_bytes_) + " bytes has no whole header");
  if (current_ < index_.tensors.size()) return std::unexpected("file ends within its data");
  file_.metadata = std::move(index_.metadata);
  return std::move(file_);
}

std::expected<TensorFile, std::string> read_safetensors(Disk& disk, const std::string& path) {
  try {
    const uint64_t size = disk.size(path);
    TensorSink sink(size, true);
    std::vector<std::byte> buffer(std::min(kChunkBytes, size));
    for (uint64_t at = 0; at < size;) {
      const size_t got = disk.read_at(path, at, std::span(buffer).first(std::min(kChunkBytes, size - at)));
      if (got == 0) break;
      sink.take(std::span(buffer).first(got));
      at += got;
    }
    auto file = sink.finish();
    if (!file) return std::unexpected(path + ": " + file.error());
    return file;
  } catch (const DiskError& error) {
    return std::unexpected(error.what());
  }
}

}  // namespace sinew::checkpoint
