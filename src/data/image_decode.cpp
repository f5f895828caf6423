#include "data/image_decode.h"

#include <cstdio>
#include <cstring>

#include "base/check.h"

namespace sinew::data {
namespace {

enum class Kind { jpeg, png };

Decoded<Kind> kind_of(std::span<const std::byte> file) {
  constexpr unsigned char kPng[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  constexpr unsigned char kJpeg[] = {0xFF, 0xD8};
  if (file.empty()) return Undecodable{"the file is empty"};
  if (file.size() >= sizeof kPng && std::memcmp(file.data(), kPng, sizeof kPng) == 0) return Kind::png;
  if (file.size() >= sizeof kJpeg && std::memcmp(file.data(), kJpeg, sizeof kJpeg) == 0) return Kind::jpeg;
  std::string start;
  for (size_t i = 0; i < std::min<size_t>(4, file.size()); ++i) {
    char text[8];
    std::snprintf(text, sizeof text, "%s%02x", i == 0 ? "" : " ", static_cast<unsigned>(file[i]));
    start += text;
  }
  return Undecodable{"neither JPEG nor PNG (it begins with " + start + ")"};
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

Decoded<ImageSize> image_size(std::span<const std::byte> file) {
  const Decoded<Kind> kind = kind_of(file);
  if (!kind) return Undecodable{kind.error()};
  return *kind == Kind::jpeg ? jpeg_size(file) : png_size(file);
}

Decoded<Pixels> decode_image(std::span<const std::byte> file, int64_t channels, ImageSize at_least) {
  SINEW_CHECK(channels == 1 || channels == 3, channels);
  const Decoded<Kind> kind = kind_of(file);
  if (!kind) return Undecodable{kind.error()};
  return *kind == Kind::jpeg ? decode_jpeg(file, channels, at_least) : decode_png(file, channels);
}

}  // namespace sinew::data
