// Inside image reading: from the bytes of one JPEG or PNG file to pixels. Private to the room.
//
// Any bytes whatsoever give pixels or a sentence saying why not; memory is bounded by kMaxPixels. What PIL and
// torchvision's ImageFolder do is followed: the EXIF orientation is not applied, colour profiles and gamma are ignored,
// alpha is dropped without blending, grey is ITU-R 601 luma, CMYK is taken as Adobe writes it (inverted). 16-bit PNG is
// scaled to 8 bits (PIL clips it). Every warning of the JPEG library that pixels may be wrong counts as corrupt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sinew::data {

constexpr int64_t kMaxPixels = 178'956'970;  // PIL's limit for a decompression bomb

struct ImageSize {
  int64_t height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};

struct Pixels {
  int64_t height = 0, width = 0, channels = 0;  // channels 1 or 3
  std::vector<uint8_t> bytes;                   // [height, width, channels]
};

// A value, or the sentence saying why there is none: "premature end of JPEG data". (clang 14, which builds the fuzzers,
// has no std::expected of types with destructors.)
struct Undecodable {
  std::string why;
};
template <typename T>
class Decoded {
 public:
  Decoded(T value) : value_(std::move(value)) {}
  Decoded(Undecodable problem) : why_(std::move(problem.why)) {}
  explicit operator bool() const { return value_.has_value(); }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  const T* operator->() const { return &*value_; }
  const std::string& error() const { return why_; }

 private:
  std::optional<T> value_;
  std::string why_;
};

// The size in the header; the rest of the file is not looked at.
Decoded<ImageSize> image_size(std::span<const std::byte> file);

// `at_least`: a size both sides of which the result must reach where the file does. A JPEG is then decoded at the
// smallest of 1, 1/2, 1/4 and 1/8 that does so: faster, and the transform's own low pass stands in for averaging.
// {0, 0}: full size.
Decoded<Pixels> decode_image(std::span<const std::byte> file, int64_t channels, ImageSize at_least = {});

// Pixels as floats in [0, 1], [channels, height, width], stretched to `size`: bilinear, with the triangle widened when
// shrinking (antialias), as torchvision's Resize and PIL's BILINEAR do, without rounding to bytes on the way.
void resize_to_floats(const Pixels& pixels, ImageSize size, std::span<float> out);

// ---- one format each -----------------------------------------------------------------------------------------------

Decoded<ImageSize> jpeg_size(std::span<const std::byte> file);
Decoded<Pixels> decode_jpeg(std::span<const std::byte> file, int64_t channels, ImageSize at_least);
Decoded<ImageSize> png_size(std::span<const std::byte> file);
Decoded<Pixels> decode_png(std::span<const std::byte> file, int64_t channels);

// "" or why an image of this size is refused.
std::string refused_size(ImageSize size);
// ITU-R 601-2 luma in PIL's fixed point.
inline uint8_t luma(uint32_t red, uint32_t green, uint32_t blue) {
  return static_cast<uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

}  // namespace sinew::data
