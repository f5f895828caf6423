#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/error.h"
#include "data/arrays.h"

namespace sinew::data {
namespace {

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

float half_to_float(uint16_t half) {
  const int exponent = (half >> 10) & 31, mantissa = half & 1023;
  const float sign = (half & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) return mantissa == 0 ? sign * std::numeric_limits<float>::infinity() : std::nanf("");
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

void swap_elements(std::byte* bytes, size_t count, int width) {
  for (size_t i = 0; i < count; ++i, bytes += width) {
    for (int low = 0, high = width - 1; low < high; ++low, --high) std::swap(bytes[low], bytes[high]);
  }
}

// Converts from Fortran order (the first axis varies fastest) to C order (the last axis varies fastest).
std::vector<std::byte> to_c_order(const std::byte* from, const Shape& shape, int width) {
  const auto count = static_cast<size_t>(element_count(shape));
  std::vector<std::byte> out(count * static_cast<size_t>(width));
  std::vector<size_t> index(shape.size(), 0), step(shape.size(), 1);
  for (size_t d = 1; d < shape.size(); ++d) step[d] = step[d - 1] * static_cast<size_t>(shape[d - 1]);
  size_t source = 0;
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(out.data() + i * static_cast<size_t>(width), from + source * static_cast<size_t>(width),
                static_cast<size_t>(width));
    for (size_t d = shape.size(); d-- > 0;) {
      source += step[d];
      if (++index[d] < static_cast<size_t>(shape[d])) break;
      source -= index[d] * step[d];
      index[d] = 0;
    }
  }
  return out;
}

// Converts a type that DType does not have to the next wider type that holds all its values.
template <typename From, typename To, typename Convert>
void widen(FileArray& array, DType to, Convert convert) {
  const auto count = static_cast<size_t>(element_count(array.shape));
  std::vector<std::byte> out(count * sizeof(To));
  for (size_t i = 0; i < count; ++i) {
    const To value = convert(load<From>(array.bytes.data() + array.offset + i * sizeof(From)));
    std::memcpy(out.data() + i * sizeof(To), &value, sizeof(To));
  }
  array.bytes = std::move(out);
  array.offset = 0;
  array.dtype = to;
}

void set_type(FileArray& array, char kind, int width) {
  const auto same = [](auto value) { return value; };
  switch (kind) {
    case 'b': array.dtype = DType::boolean; return;
    case 'i':
      array.dtype = width == 1 ? DType::i8 : width == 2 ? DType::i16 : width == 4 ? DType::i32 : DType::i64;
      return;
    case 'u':
      if (width == 1) array.dtype = DType::u8;
      if (width == 2) widen<uint16_t, int32_t>(array, DType::i32, same);
      if (width == 4) widen<uint32_t, int64_t>(array, DType::i64, same);
      if (width == 8) {
        widen<uint64_t, int64_t>(array, DType::i64, [&](uint64_t value) {
          if (value >> 63 != 0) {
            throw Error("DATA_BAD_VALUE", array.name + ": holds a value of 2^63 or more",
                        "save it as int64 or float64");
          }
          return static_cast<int64_t>(value);
        });
      }
      return;
    default:
      if (width == 2) widen<uint16_t, float>(array, DType::f32, half_to_float);
      if (width == 4) array.dtype = DType::f32;
      if (width == 8) array.dtype = DType::f64;
  }
}

// Works in blocks of a fixed size, which the compiler vectorises, and converts the rest one by one. `Real` is wide
// enough to subtract the mean without losing digits of the value.
template <typename T, typename Real>
void convert(const std::byte* row, int64_t count, double mean, double factor, float* out) {
  constexpr int64_t kBlock = 32;
  const auto center = static_cast<Real>(mean), scale = static_cast<Real>(factor);
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    T values[kBlock];
    std::memcpy(values, row + static_cast<size_t>(i) * sizeof(T), sizeof values);
    for (int64_t j = 0; j < kBlock; ++j) {
      out[i + j] = static_cast<float>((static_cast<Real>(values[j]) - center) * scale);
    }
  }
  for (; i < count; ++i) {
    const T value = load<T>(row + static_cast<size_t>(i) * sizeof(T));
    out[i] = static_cast<float>((static_cast<Real>(value) - center) * scale);
  }
}

}  // namespace

void check_size(const ArrayHeader& header, uint64_t file_size, const std::string& name) {
  const uint64_t found = file_size - header.offset;
  std::string product;
  auto bytes = static_cast<unsigned __int128>(header.width);
  for (const int64_t size : header.shape) {
    product += std::to_string(size) + " x ";
    if (size == 0) {
      throw Error("DATA_EMPTY", name + ": holds no values: one of its sizes is 0",
                  "write the file again with values in it");
    }
    // No file has 2^63 bytes, so capping the product there keeps the comparison right. The cap keeps the next product
    // within 128 bits.
    bytes = std::min(bytes * static_cast<uint64_t>(size), static_cast<unsigned __int128>(1) << 63);
  }
  if (bytes == found) return;
  const bool huge = bytes >> 63 != 0;
  throw Error("DATA_DAMAGED_FILE",
              name + ": its header declares " + product + std::to_string(header.width) +
                  (header.width == 1 ? " byte" : " bytes") +
                  (huge ? "" : " = " + with_commas(static_cast<int64_t>(bytes))) + " of data, but the file has " +
                  with_commas(static_cast<int64_t>(found)),
              "the file is damaged or cut off; download it or write it again");
}

FileArray make_array(std::vector<std::byte> file, const ArrayHeader& header, const std::string& name) {
  FileArray array;
  array.name = name;
  array.shape = header.shape;
  array.offset = header.offset;
  array.bytes = std::move(file);
  const auto count = static_cast<size_t>(element_count(header.shape));
  SINEW_CHECK(array.offset + count * static_cast<size_t>(header.width) <= array.bytes.size(), name);
  if (header.width > 1 && header.big_endian != (std::endian::native == std::endian::big)) {
    swap_elements(array.bytes.data() + array.offset, count, header.width);
  }
  if (header.fortran && header.shape.size() > 1 && count > 0) {
    array.bytes = to_c_order(array.bytes.data() + array.offset, header.shape, header.width);
    array.offset = 0;
  }
  set_type(array, header.kind, header.width);
  if (!array.shape.empty() && array.rows() > 0) {
    array.stride = static_cast<size_t>(element_count(array.row_shape())) * size_of(array.dtype);
  }
  return array;
}

void put_channels_first(FileArray& array) {
  const auto like_channels = [](int64_t size) { return size == 1 || size == 3 || size == 4; };
  if (array.shape.size() != 4 || !like_channels(array.shape[3]) || like_channels(array.shape[1])) return;
  const auto channels = static_cast<size_t>(array.shape[3]),
             area = static_cast<size_t>(array.shape[1] * array.shape[2]);
  const size_t width = size_of(array.dtype);
  std::vector<std::byte> image(channels * area * width);
  for (int64_t i = 0; i < array.rows(); ++i) {
    std::byte* row = array.bytes.data() + array.offset + static_cast<size_t>(i) * array.stride;
    for (size_t c = 0; c < channels; ++c) {
      for (size_t p = 0; p < area; ++p) {
        std::memcpy(image.data() + (c * area + p) * width, row + (p * channels + c) * width, width);
      }
    }
    std::memcpy(row, image.data(), image.size());
  }
  array.shape = {array.shape[0], array.shape[3], array.shape[1], array.shape[2]};
}

// Calls visit(T{}) with the C++ type of `dtype`.
namespace {
template <typename Visit>
void with_type(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::boolean:
    case DType::u8: return visit(uint8_t{});
    case DType::i8: return visit(int8_t{});
    case DType::i16: return visit(int16_t{});
    case DType::i32: return visit(int32_t{});
    case DType::i64: return visit(int64_t{});
    case DType::f32: return visit(float{});
    case DType::f64: return visit(double{});
    case DType::f16:
    case DType::bf16: break;
  }
  SINEW_CHECK(false, name_of(dtype));
}
}  // namespace

void convert_row(DType dtype, const std::byte* row, int64_t count, double mean, double factor, float* out) {
  with_type(dtype, [&]<typename T>(T) {
    constexpr bool kNarrow = sizeof(T) <= 2 || std::is_same_v<T, float>;
    convert<T, std::conditional_t<kNarrow, float, double>>(row, count, mean, factor, out);
  });
}

void convert_columns(DType dtype, const std::byte* row, std::span<const double> mean, std::span<const double> factor,
                     float* out) {
  with_type(dtype, [&]<typename T>(T) {
    for (size_t i = 0; i < mean.size(); ++i) {
      out[i] = static_cast<float>((static_cast<double>(load<T>(row + i * sizeof(T))) - mean[i]) * factor[i]);
    }
  });
}

double value_at(DType dtype, const std::byte* row, int64_t index) {
  double value = 0;
  with_type(dtype,
            [&]<typename T>(T) { value = static_cast<double>(load<T>(row + static_cast<size_t>(index) * sizeof(T))); });
  return value;
}

}  // namespace sinew::data
