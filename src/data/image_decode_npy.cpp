// Images as NumPy arrays of bytes: what `sinew data pack --decode` writes, and what other programs put into tars.
#include <cstring>
#include <string_view>

#include "data/arrays.h"
#include "data/image_decode.h"

namespace sinew::data {
namespace {

constexpr std::string_view kNpyStart = "\x93NUMPY";

// Where the pixels of an array are: that of (c, y, x) is at offset + c * of_channel + (y * width + x) * of_pixel.
struct NpyLayout {
  int64_t height = 0, width = 0, channels = 0;
  size_t offset = 0;
  int64_t of_channel = 0, of_pixel = 0;
};

bool is_channel_count(int64_t count) {
  return count == 1 || count == 3;
}

Decoded<NpyLayout> layout_of(std::span<const std::byte> file) {
  ArrayHeader header;
  try {
    header = parse_npy(file, "the array");
  } catch (const Error& error) {
    return Undecodable{error.what()};
  }
  if (header.kind != 'u' || header.width != 1) return Undecodable{"the array holds no bytes (uint8)"};
  if (header.fortran) return Undecodable{"the array is in Fortran's order"};
  const Shape& shape = header.shape;
  NpyLayout layout;
  layout.offset = header.offset;
  if (shape.size() == 2) {
    layout = {shape[0], shape[1], 1, header.offset, 0, 1};
  } else if (shape.size() == 3 && is_channel_count(shape[0])) {
    layout = {shape[1], shape[2], shape[0], header.offset, shape[1] * shape[2], 1};
  } else if (shape.size() == 3 && is_channel_count(shape[2])) {
    layout = {shape[0], shape[1], shape[2], header.offset, 1, shape[2]};
  } else {
    return Undecodable{"the array has not the shape of an image: [height, width], or with 1 or 3 channels"};
  }
  if (std::string why = refused_size({layout.height, layout.width}); !why.empty()) return Undecodable{std::move(why)};
  return layout;
}

}  // namespace

bool is_npy(std::span<const std::byte> file) {
  return text_of(file).starts_with(kNpyStart);
}

Decoded<ImageSize> npy_size(std::span<const std::byte> file) {
  const Decoded<NpyLayout> layout = layout_of(file);
  if (!layout) return Undecodable{layout.error()};
  return ImageSize{layout->height, layout->width};
}

Decoded<Pixels> decode_npy(std::span<const std::byte> file, int64_t channels) {
  const Decoded<NpyLayout> layout = layout_of(file);
  if (!layout) return Undecodable{layout.error()};
  Pixels pixels{layout->height, layout->width, layout->channels, {}};
  const int64_t count = layout->height * layout->width;
  pixels.bytes.resize(static_cast<size_t>(count * layout->channels));
  const auto* from = reinterpret_cast<const uint8_t*>(file.data()) + layout->offset;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < layout->channels; ++c)
      pixels.bytes[static_cast<size_t>(i * layout->channels + c)] = from[c * layout->of_channel + i * layout->of_pixel];
  }
  return with_channels(std::move(pixels), channels);
}

bool npy_planes_to_floats(std::span<const std::byte> file, int64_t channels, ImageSize size, std::span<float> out) {
  if (!is_npy(file)) return false;
  const Decoded<NpyLayout> layout = layout_of(file);
  const bool planes = layout && layout->of_pixel == 1 && layout->channels == channels &&
                      layout->height == size.height && layout->width == size.width;
  if (!planes) return false;
  bytes_to_floats({reinterpret_cast<const uint8_t*>(file.data()) + layout->offset, out.size()}, out);
  return true;
}

std::string npy_of_planes(std::span<const uint8_t> planes, int64_t channels, ImageSize size) {
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(channels) + ", " +
                       std::to_string(size.height) + ", " + std::to_string(size.width) + "), }";
  constexpr size_t kStart = 10;  // the signature, the version and the length
  header.resize((kStart + header.size() + 1 + 63) / 64 * 64 - kStart - 1, ' ');
  header += '\n';
  std::string file(kNpyStart);
  file += std::string_view("\x01\x00", 2);  // the version
  file += static_cast<char>(header.size() & 0xFF);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  file.append(reinterpret_cast<const char*>(planes.data()), planes.size());
  return file;
}

}  // namespace sinew::data
