// Reads the EXIF orientation of an image file, and turns pixels upright. EXIF is a small TIFF file inside the image
// file (Exif 2.3, 4.5); JPEG has it in the segment APP1, PNG in the chunk eXIf, WebP in the chunk EXIF.
#include <cstring>
#include <string_view>

#include "data/image_decode.h"

namespace sinew::data {
namespace {

using ImageBytes = std::span<const std::byte>;

// Reads whole numbers of either byte order. Beyond the end of the file, all numbers are 0.
struct ExifNumbers {
  ImageBytes file;
  bool big_endian = false;

  uint32_t at(size_t place, size_t bytes) const {
    if (place > file.size() || bytes > file.size() - place) return 0;
    uint32_t number = 0;
    for (size_t i = 0; i < bytes; ++i) {
      number = number << 8 | static_cast<uint32_t>(file[place + (big_endian ? i : bytes - 1 - i)]);
    }
    return number;
  }
};

bool has_bytes(ImageBytes file, size_t place, std::string_view bytes) {
  return place <= file.size() && bytes.size() <= file.size() - place &&
         std::memcmp(file.data() + place, bytes.data(), bytes.size()) == 0;
}

// `exif` is the TIFF file, perhaps after the bytes "Exif\0\0".
int orientation_in(ImageBytes exif) {
  using namespace std::string_view_literals;
  constexpr uint32_t kOrientation = 0x0112, kShort = 3;
  if (has_bytes(exif, 0, "Exif\0\0"sv)) exif = exif.subspan(6);
  const bool big_endian = has_bytes(exif, 0, "MM\0*"sv);
  if (!big_endian && !has_bytes(exif, 0, "II*\0"sv)) return 1;
  const ExifNumbers numbers{exif, big_endian};
  const size_t directory = numbers.at(4, 4);
  const uint32_t entries = numbers.at(directory, 2);
  for (uint32_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + size_t{12} * i;
    if (entry + 12 > exif.size()) return 1;
    if (numbers.at(entry, 2) != kOrientation) continue;
    const uint32_t value = numbers.at(entry + 8, 2);
    return numbers.at(entry + 2, 2) == kShort && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace

int jpeg_orientation(ImageBytes file) {
  using namespace std::string_view_literals;
  constexpr uint32_t kApp1 = 0xE1, kScan = 0xDA;
  const ExifNumbers numbers{file, true};
  size_t place = 2;  // after the marker that begins the file
  while (numbers.at(place, 1) == 0xFF) {
    const uint32_t marker = numbers.at(place + 1, 1);
    if (marker == 0xFF) {  // a fill byte
      ++place;
      continue;
    }
    const uint32_t size = numbers.at(place + 2, 2);  // with these two bytes
    if (marker == kScan || size < 2) return 1;
    if (marker == kApp1 && has_bytes(file, place + 4, "Exif\0\0"sv)) {
      const size_t left = file.size() - (place + 4);
      return orientation_in(file.subspan(place + 4, std::min<size_t>(size - 2, left)));
    }
    place += 2 + size;
  }
  return 1;
}

int png_orientation(ImageBytes file) {
  const ExifNumbers numbers{file, true};
  for (size_t place = 8; place + 12 <= file.size();) {
    const size_t size = numbers.at(place, 4);
    if (size > file.size() - place - 12) return 1;
    if (has_bytes(file, place + 4, "eXIf")) return orientation_in(file.subspan(place + 8, size));
    place += 12 + size;
  }
  return 1;
}

int webp_orientation(ImageBytes file) {
  const ExifNumbers numbers{file, false};
  for (size_t place = 12; place + 8 <= file.size();) {
    const size_t size = numbers.at(place + 4, 4);
    if (size > file.size() - place - 8) return 1;
    if (has_bytes(file, place, "EXIF")) return orientation_in(file.subspan(place + 8, size));
    place += 8 + size + size % 2;
  }
  return 1;
}

Pixels upright(Pixels from, int orientation) {
  if (orientation <= 1 || orientation > 8) return from;
  const bool transposed = is_transposed(orientation);
  const bool from_bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  Pixels to{transposed ? from.width : from.height, transposed ? from.height : from.width, from.channels, {}};
  to.bytes.resize(from.bytes.size());
  const auto channels = static_cast<size_t>(from.channels);
  size_t at = 0;
  for (int64_t y = 0; y < to.height; ++y) {
    for (int64_t x = 0; x < to.width; ++x) {
      const int64_t row = transposed ? x : y, column = transposed ? y : x;
      const int64_t stored_row = from_bottom ? from.height - 1 - row : row;
      const int64_t stored_column = from_right ? from.width - 1 - column : column;
      const uint8_t* pixel =
          from.bytes.data() + static_cast<size_t>(stored_row * from.width + stored_column) * channels;
      for (size_t c = 0; c < channels; ++c) to.bytes[at++] = pixel[c];
    }
  }
  return to;
}

}  // namespace sinew::data
