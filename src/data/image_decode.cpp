#include "data/image_decode.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/check.h"

namespace sinew::data {
namespace {

using ImageBytes = std::span<const std::byte>;

// What the readers of one format offer.
struct ImageFormat {
  Decoded<ImageSize> (*size)(ImageBytes);
  Decoded<Pixels> (*decode)(ImageBytes, int64_t channels);  // null: the format has a decoder that scales
  Decoded<Pixels> (*decode_scaled)(ImageBytes, int64_t channels, ImageSize at_least);
  int (*orientation)(ImageBytes);
};

constexpr ImageFormat kJpeg = {jpeg_size, nullptr, decode_jpeg, jpeg_orientation};
constexpr ImageFormat kPng = {png_size, decode_png, nullptr, png_orientation};
constexpr ImageFormat kWebp = {webp_size, decode_webp, nullptr, webp_orientation};
constexpr ImageFormat kGif = {gif_size, decode_gif, nullptr, [](ImageBytes) { return 1; }};
constexpr ImageFormat kBmp = {bmp_size, decode_bmp, nullptr, [](ImageBytes) { return 1; }};
constexpr ImageFormat kTiff = {tiff_size, decode_tiff, nullptr, tiff_orientation};
constexpr ImageFormat kNpy = {npy_size, decode_npy, nullptr, [](ImageBytes) { return 1; }};

bool image_begins_with(ImageBytes file, std::string_view bytes, size_t at = 0) {
  return file.size() >= at + bytes.size() && std::memcmp(file.data() + at, bytes.data(), bytes.size()) == 0;
}

Decoded<ImageFormat> image_format_of(ImageBytes file) {
  using namespace std::string_view_literals;
  if (file.empty()) return Undecodable{"the file is empty"};
  if (image_begins_with(file, "\x89PNG\r\n\x1A\n"sv)) return kPng;
  if (image_begins_with(file, "\xFF\xD8"sv)) return kJpeg;
  if (image_begins_with(file, "RIFF"sv) && image_begins_with(file, "WEBP"sv, 8)) return kWebp;
  if (image_begins_with(file, "GIF87a"sv) || image_begins_with(file, "GIF89a"sv)) return kGif;
  if (image_begins_with(file, "BM"sv)) return kBmp;
  if (image_begins_with(file, "II*\0"sv) || image_begins_with(file, "MM\0*"sv) || image_begins_with(file, "II+\0"sv) ||
      image_begins_with(file, "MM\0+"sv)) {
    return kTiff;
  }
  if (is_npy(file)) return kNpy;
  std::string start;
  for (size_t i = 0; i < std::min<size_t>(4, file.size()); ++i) {
    char text[8];
    std::snprintf(text, sizeof text, "%s%02x", i == 0 ? "" : " ", static_cast<unsigned>(file[i]));
    start += text;
  }
  return Undecodable{"not a JPEG, PNG, WebP, GIF, BMP or TIFF image (it begins with " + start + ")"};
}

ImageSize exchanged(ImageSize size) {
  return {size.width, size.height};
}

}  // namespace

std::string refused_size(ImageSize size) {
  if (size.height <= 0 || size.width <= 0) return "the header gives no size";
  if (size.width > kMaxPixels || size.height > kMaxPixels / size.width) {
    return "the header says " + std::to_string(size.width) + " x " + std::to_string(size.height) +
           " pixels, more than the limit of " + std::to_string(kMaxPixels);
  }
  return "";
}

Pixels with_channels(Pixels from, int64_t channels) {
  if (from.channels == channels) return from;
  Pixels to{from.height, from.width, channels, {}};
  const auto count = static_cast<size_t>(from.height * from.width);
  to.bytes.resize(count * static_cast<size_t>(channels));
  for (size_t i = 0; i < count; ++i) {
    if (channels == 1) {
      to.bytes[i] = luma(from.bytes[3 * i], from.bytes[3 * i + 1], from.bytes[3 * i + 2]);
    } else {
      to.bytes[3 * i] = to.bytes[3 * i + 1] = to.bytes[3 * i + 2] = from.bytes[i];
    }
  }
  return to;
}

Decoded<ImageSize> image_size(std::span<const std::byte> file) {
  const Decoded<ImageFormat> format = image_format_of(file);
  if (!format) return Undecodable{format.error()};
  const Decoded<ImageSize> size = format->size(file);
  if (!size || !is_transposed(format->orientation(file))) return size;
  return exchanged(*size);
}

Decoded<Pixels> decode_image(std::span<const std::byte> file, int64_t channels, ImageSize at_least) {
  SINEW_CHECK(channels == 1 || channels == 3, channels);
  const Decoded<ImageFormat> format = image_format_of(file);
  if (!format) return Undecodable{format.error()};
  const int orientation = format->orientation(file);
  if (is_transposed(orientation)) at_least = exchanged(at_least);
  Decoded<Pixels> pixels = format->decode_scaled != nullptr ? format->decode_scaled(file, channels, at_least)
                                                            : format->decode(file, channels);
  if (!pixels || orientation == 1) return pixels;
  return upright(std::move(*pixels), orientation);
}

}  // namespace sinew::data
