// Private to data/, for image reading: decodes the bytes of one image file to pixels. The content decides the format:
// JPEG, PNG, WebP, GIF, BMP or TIFF, or a NumPy array of bytes. It decodes only the first image of an animation or of a
// file with several pages.
//
// Any input gives pixels or a message that says why not, and kMaxPixels bounds the memory. The decoder follows PIL's
// convert("RGB"): it ignores colour profiles and gamma, drops alpha without blending, computes grey as ITU-R 601 luma,
// and reads the CMYK of JPEG as Adobe writes it (inverted). It differs from torchvision's ImageFolder in two things: it
// turns and mirrors the image as the EXIF orientation says (as PIL's ImageOps.exif_transpose), and it scales 16 bits to
// 8 (PIL clips). When a library warns that pixels may be wrong, the file counts as corrupt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sinew::data {

constexpr int64_t kMaxPixels = 178'956'970;  // PIL's limit against decompression bombs

struct ImageSize {
  int64_t height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};

struct Pixels {
  int64_t height = 0, width = 0, channels = 0;  // 1 or 3 channels
  std::vector<uint8_t> bytes;                   // [height, width, channels]
};

// Holds a value, or the message that says why the file could not be decoded ("premature end of JPEG data"). clang 14,
// which builds the fuzzers, has no std::expected for types with destructors.
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

// Reads the size, after the EXIF orientation, from the header alone.
Decoded<ImageSize> image_size(std::span<const std::byte> file);

// The result is at least as large as `at_least` on both sides, unless the file itself is smaller; {0, 0} asks for the
// full size. A JPEG is decoded at the smallest of the scales 1, 1/2, 1/4 and 1/8 that is large enough. That is faster
// than decoding at full size, and the low-pass of the JPEG transform replaces averaging.
Decoded<Pixels> decode_image(std::span<const std::byte> file, int64_t channels, ImageSize at_least = {});

// Resizes to `size` and writes floats in [0, 1], laid out [channels, height, width]. The filter is bilinear with
// antialiasing: to shrink, it widens the triangle, as torchvision's Resize and PIL's BILINEAR do. Intermediate values
// are not rounded to bytes.
void resize_to_floats(const Pixels& pixels, ImageSize size, std::span<float> out);
// Writes out[i] = from[i] / 255, as resize_to_floats does for an image of the right size.
void bytes_to_floats(std::span<const uint8_t> from, std::span<float> out);
// Replaces each value by (value - mean) / std.
void standardize(std::span<float> values, float mean, float std);

bool is_npy(std::span<const std::byte> file);  // by its first bytes
// If the file is an array of bytes with exactly this shape, writes its elements as resize_to_floats would, in one pass,
// and returns true.
bool npy_planes_to_floats(std::span<const std::byte> file, int64_t channels, ImageSize size, std::span<float> out);
// Returns a .npy file of bytes of shape [channels, height, width].
std::string npy_of_planes(std::span<const uint8_t> planes, int64_t channels, ImageSize size);

// ---- one format each: sizes and pixels as stored, before the EXIF orientation --------------------------------------

Decoded<ImageSize> jpeg_size(std::span<const std::byte> file);
Decoded<Pixels> decode_jpeg(std::span<const std::byte> file, int64_t channels, ImageSize at_least);
Decoded<ImageSize> png_size(std::span<const std::byte> file);
Decoded<Pixels> decode_png(std::span<const std::byte> file, int64_t channels);
Decoded<ImageSize> webp_size(std::span<const std::byte> file);
Decoded<Pixels> decode_webp(std::span<const std::byte> file, int64_t channels);
Decoded<ImageSize> gif_size(std::span<const std::byte> file);
Decoded<Pixels> decode_gif(std::span<const std::byte> file, int64_t channels);
Decoded<ImageSize> bmp_size(std::span<const std::byte> file);
Decoded<Pixels> decode_bmp(std::span<const std::byte> file, int64_t channels);
Decoded<ImageSize> tiff_size(std::span<const std::byte> file);
Decoded<Pixels> decode_tiff(std::span<const std::byte> file, int64_t channels);
// An array of bytes: [height, width], [channels, height, width] or [height, width, channels].
Decoded<ImageSize> npy_size(std::span<const std::byte> file);
Decoded<Pixels> decode_npy(std::span<const std::byte> file, int64_t channels);

// The EXIF orientation (Exif 2.3, tag 0x0112): how the stored pixels must be turned and mirrored to be upright. 1: not
// at all. Each function returns 1 if the file does not say it, or if what it says is damaged.
int jpeg_orientation(std::span<const std::byte> file);
int png_orientation(std::span<const std::byte> file);
int webp_orientation(std::span<const std::byte> file);
int tiff_orientation(std::span<const std::byte> file);
// Returns whether the orientation exchanges height and width.
inline bool is_transposed(int orientation) {
  return orientation >= 5;
}
Pixels upright(Pixels pixels, int orientation);

// Returns why an image of this size is refused, or "" if it is accepted.
std::string refused_size(ImageSize size);
// Converts RGB to grey or grey to RGB, if needed.
Pixels with_channels(Pixels from, int64_t channels);
// ITU-R 601-2 luma in PIL's fixed point.
inline uint8_t luma(uint32_t red, uint32_t green, uint32_t blue) {
  return static_cast<uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

}  // namespace sinew::data
