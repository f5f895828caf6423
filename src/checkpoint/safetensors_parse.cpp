// Parses a safetensors header: a strict state machine that takes the events of a JSON parser. It builds no tree,
// refuses deeper nesting than the format has, and keeps only metadata, names, dtypes, shapes and offsets.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "checkpoint/safetensors.h"

namespace sinew::checkpoint {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxDimensions = 64;  // as many as a tensor of libtorch may have

struct DTypeName {
  const char* name;
  DType dtype;
};
constexpr DTypeName kDTypes[] = {
    {"BOOL", DType::boolean}, {"U8", DType::u8},   {"I8", DType::i8},   {"I16", DType::i16}, {"F16", DType::f16},
    {"BF16", DType::bf16},    {"I32", DType::i32}, {"F32", DType::f32}, {"F64", DType::f64}, {"I64", DType::i64},
};

// Makes a name printable for a message. The name comes from an unchecked file, so it may be long or contain control
// characters.
std::string shown(std::string_view name) {
  std::string text = "\"";
  for (const char c : name.substr(0, 80)) text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return text + (name.size() > 80 ? "...\"" : "\"");
}

class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  SafetensorsIndex index;
  std::string trouble;

  bool start_object(size_t) override {
    switch (at_) {
      case At::start: at_ = At::name; return true;
      case At::entry: at_ = At::field; return true;
      case At::metadata: at_ = At::metadata_key; return true;
      default: return unexpected();
    }
  }
  bool end_object() override {
    switch (at_) {
      case At::name: at_ = At::end; return true;
      case At::metadata_key: at_ = At::name; return true;
      case At::field: return end_entry();
      default: return unexpected();
    }
  }
  bool key(std::string& text) override {
    if (at_ == At::name) return begin_entry(text);
    if (at_ == At::field) return begin_field(text);
    if (at_ != At::metadata_key) return unexpected();
    if (index.metadata.contains(text)) return refuse("metadata key " + shown(text) + " occurs twice");
    metadata_key_ = text;
    at_ = At::metadata_value;
    return true;
  }
  bool string(std::string& text) override {
    if (at_ == At::metadata_value) {
      index.metadata.emplace(std::move(metadata_key_), text);
      at_ = At::metadata_key;
      return true;
    }
    if (at_ != At::dtype) return unexpected();
    for (const auto& [name, dtype] : kDTypes) {
      if (text == name) {
        entry_.dtype = dtype;
        at_ = At::field;
        return true;
      }
    }
    return refuse("tensor " + shown(entry_.name) + " has dtype " + shown(text) + ", which Sinew does not support");
  }
  bool start_array(size_t) override {
    if (at_ == At::shape)
      at_ = At::dimension;
    else if (at_ == At::offsets)
      at_ = At::offset;
    else
      return unexpected();
    return true;
  }
  bool end_array() override {
    if (at_ == At::offset && offsets_ != 2)
      return refuse("data_offsets of " + shown(entry_.name) + " are not two numbers");
    if (at_ != At::dimension && at_ != At::offset) return unexpected();
    at_ = At::field;
    return true;
  }
  bool number_unsigned(uint64_t value) override {
    if (at_ == At::dimension) {
      if (value > static_cast<uint64_t>(INT64_MAX)) return refuse("shape of " + shown(entry_.name) + " overflows");
      if (entry_.shape.size() == kMaxDimensions)
        return refuse("shape of " + shown(entry_.name) + " has more than 64 dimensions");
      entry_.shape.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (at_ != At::offset) return unexpected();
    if (offsets_ == 2) return refuse("data_offsets of " + shown(entry_.name) + " are not two numbers");
    (offsets_++ == 0 ? entry_.begin : entry_.end) = value;
    return true;
  }
  bool null() override {  // "__metadata__": null means no metadata, as in the stock library
    if (at_ != At::metadata) return unexpected();
    at_ = At::name;
    return true;
  }
  bool number_integer(int64_t) override { return unexpected(); }
  bool number_float(double, const std::string&) override { return unexpected(); }
  bool boolean(bool) override { return unexpected(); }
  bool binary(Json::binary_t&) override { return unexpected(); }
  bool parse_error(size_t position, const std::string&, const Json::exception& error) override {
    const std::string_view what = error.what();
    const size_t said = what.find("; last read");  // the rest repeats the input
    return refuse("header is not JSON at byte " + std::to_string(position) + ": " +
                  std::string(what.substr(0, std::min(said, size_t{120}))));
  }

 private:
  enum class At {
    start,
    name,
    entry,
    field,
    dtype,
    shape,
    dimension,
    offsets,
    offset,
    metadata,
    metadata_key,
    metadata_value,
    end
  };

  bool refuse(std::string why) {
    trouble = std::move(why);
    return false;
  }
  bool unexpected() {
    switch (at_) {
      case At::start: return refuse("header is not an object");
      case At::metadata:
      case At::metadata_key:
      case At::metadata_value: return refuse("__metadata__ is not a map from strings to strings");
      default: return refuse("entry of tensor " + shown(entry_.name) + " is not {dtype, shape, data_offsets}");
    }
  }
  bool begin_entry(const std::string& name) {
    if (name == "__metadata__") {
      if (std::exchange(has_metadata_, true)) return refuse("__metadata__ occurs twice");
      at_ = At::metadata;
      return true;
    }
    if (!names_.insert(name).second) return refuse("tensor " + shown(name) + " occurs twice");
    entry_ = TensorEntry();
    entry_.name = name;
    has_dtype_ = has_shape_ = has_offsets_ = false;
    offsets_ = 0;
    at_ = At::entry;
    return true;
  }
  bool begin_field(const std::string& field) {
    bool* seen = nullptr;
    if (field == "dtype")
      seen = &has_dtype_, at_ = At::dtype;
    else if (field == "shape")
      seen = &has_shape_, at_ = At::shape;
    else if (field == "data_offsets")
      seen = &has_offsets_, at_ = At::offsets;
    else
      return refuse("entry of tensor " + shown(entry_.name) + " has an unknown field " + shown(field));
    if (std::exchange(*seen, true)) return refuse("entry of tensor " + shown(entry_.name) + " has " + field + " twice");
    return true;
  }
  bool end_entry() {
    if (!has_dtype_ || !has_shape_ || !has_offsets_) return unexpected();
    entry_.shape.shrink_to_fit();
    index.tensors.push_back(std::move(entry_));
    at_ = At::name;
    return true;
  }

  At at_ = At::start;
  std::set<std::string> names_;
  std::string metadata_key_;
  TensorEntry entry_;
  int offsets_ = 0;
  bool has_metadata_ = false, has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
};

// Returns the number of bytes that the shape needs. Returns nullopt if that number does not fit 63 bits, or if a
// product of leading dimensions does not.
std::optional<uint64_t> byte_count(const TensorEntry& tensor) {
  int64_t count = 1;
  for (const int64_t size : tensor.shape) {
    if (__builtin_mul_overflow(count, size, &count)) return std::nullopt;
  }
  if (__builtin_mul_overflow(count, static_cast<int64_t>(size_of(tensor.dtype)), &count)) return std::nullopt;
  return static_cast<uint64_t>(count);
}

// Returns why the tensors do not cover the data exactly, or an empty string if they do.
std::string cover_trouble(const std::vector<TensorEntry>& tensors, uint64_t data_bytes) {
  uint64_t end = 0;
  for (const TensorEntry& tensor : tensors) {
    if (tensor.begin != end || tensor.end < tensor.begin) {
      return "tensor " + shown(tensor.name) + " is at " + std::to_string(tensor.begin) + ".." +
             std::to_string(tensor.end) + ", but the one before it ends at " + std::to_string(end) +
             ": a hole or an overlap";
    }
    const auto bytes = byte_count(tensor);
    if (!bytes) return "shape of " + shown(tensor.name) + " overflows";
    if (*bytes != tensor.end - tensor.begin) {
      return "tensor " + shown(tensor.name) + " has " + std::to_string(tensor.end - tensor.begin) +
             " bytes, but its shape needs " + std::to_string(*bytes);
    }
    end = tensor.end;
  }
  if (end == data_bytes) return "";
  return "tensors end at byte " + std::to_string(end) + " of the data, which has " + std::to_string(data_bytes) +
         " bytes";
}

}  // namespace

std::string_view safetensors_name(DType dtype) {
  for (const auto& entry : kDTypes) {
    if (entry.dtype == dtype) return entry.name;
  }
  return "";
}

std::expected<uint64_t, std::string> header_length(std::span<const std::byte, 8> first, uint64_t file_bytes) {
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = (length << 8) | static_cast<uint8_t>(first[static_cast<size_t>(i)]);
  if (length > kMaxHeaderBytes)
    return std::unexpected("header of " + std::to_string(length) + " bytes is over 100,000,000");
  if (length > file_bytes - 8) {
    return std::unexpected("header of " + std::to_string(length) + " bytes does not fit into a file of " +
                           std::to_string(file_bytes));
  }
  return length;
}

std::expected<SafetensorsIndex, std::string> parse_header(std::span<const std::byte> json, uint64_t data_bytes) {
  const auto* begin = reinterpret_cast<const char*>(json.data());
  if (json.empty() || *begin != '{') return std::unexpected("header does not start with {");
  // The JSON parser treats a zero byte as the end of its input.
  if (std::memchr(begin, 0, json.size()) != nullptr) return std::unexpected("header has a zero byte");
  HeaderReader reader;
  if (!Json::sax_parse(begin, begin + json.size(), &reader)) return std::unexpected(reader.trouble);
  auto& tensors = reader.index.tensors;
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  if (auto trouble = cover_trouble(tensors, data_bytes); !trouble.empty()) return std::unexpected(std::move(trouble));
  reader.index.data_offset = 8 + json.size();
  return std::move(reader.index);
}

std::expected<SafetensorsIndex, std::string> parse_safetensors(std::span<const std::byte> file) {
  if (file.size() < 8) return std::unexpected("file of " + std::to_string(file.size()) + " bytes has no header");
  const auto length = header_length(file.first<8>(), file.size());
  if (!length) return std::unexpected(length.error());
  return parse_header(file.subspan(8, *length), file.size() - 8 - *length);
}

std::expected<SafetensorsIndex, std::string> read_safetensors_index(Disk& disk, const std::string& path,
                                                                    uint64_t max_header_bytes) {
  const uint64_t bytes = disk.size(path);
  std::array<std::byte, 8> first{};
  if (disk.read_at(path, 0, first) < first.size()) return std::unexpected("file too short to have a header");
  const auto length = header_length(first, bytes);
  if (!length) return std::unexpected(length.error());
  if (*length > max_header_bytes) return std::unexpected("header of " + std::to_string(*length) + " bytes is too long");
  std::vector<std::byte> json(*length);
  if (disk.read_at(path, 8, json) < json.size()) return std::unexpected("file ends within its header");
  return parse_header(json, bytes - 8 - *length);
}

}  // namespace sinew::checkpoint
