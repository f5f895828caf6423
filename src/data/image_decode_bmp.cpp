// Decodes BMP: the headers of OS/2 and of Windows up to version 5, 1 to 32 bits a pixel, with a palette, with bit masks
// or run-length encoded. Source: Microsoft, "Bitmap Storage" and "Bitmap Compression" (Windows GDI).
#include <algorithm>
#include <array>
#include <bit>

#include "data/image_decode.h"

namespace sinew::data {
namespace {

constexpr uint32_t kUncompressed = 0, kRunLength8 = 1, kRunLength4 = 2, kBitFields = 3, kAlphaBitFields = 6;
constexpr size_t kBmpFileHeader = 14;

using BmpColour = std::array<uint8_t, 3>;

struct BmpHeader {
  ImageSize size;
  bool top_down = false;
  uint32_t bits = 0, compression = kUncompressed;
  std::array<uint32_t, 3> masks{};  // red, green, blue; of pixels with 16 or 32 bits
  std::vector<BmpColour> palette;   // of pixels with at most 8 bits
  size_t pixels_at = 0;
};

uint32_t bmp_number(std::span<const std::byte> file, size_t place, size_t bytes) {
  uint32_t number = 0;
  for (size_t i = bytes; i > 0; --i) number = number << 8 | static_cast<uint32_t>(file[place + i - 1]);
  return number;
}

const char kBmpEnds[] = "premature end of BMP data";

// Returns "", or why this kind of BMP is refused.
std::string refused_bmp(const BmpHeader& header) {
  const auto bits_are = [&](std::initializer_list<uint32_t> wanted) {
    return std::find(wanted.begin(), wanted.end(), header.bits) != wanted.end();
  };
  bool known = false;
  if (header.compression == kUncompressed) known = bits_are({1, 4, 8, 16, 24, 32});
  if (header.compression == kRunLength8) known = header.bits == 8 && !header.top_down;
  if (header.compression == kRunLength4) known = header.bits == 4 && !header.top_down;
  if (header.compression == kBitFields || header.compression == kAlphaBitFields) known = bits_are({16, 32});
  if (known) return "";
  return "an unknown kind of BMP: compression " + std::to_string(header.compression) + " with " +
         std::to_string(header.bits) + " bits a pixel";
}

void read_bmp_masks(std::span<const std::byte> file, BmpHeader& header) {
  if (header.compression == kBitFields || header.compression == kAlphaBitFields) {
    // The masks follow the first 40 bytes of the header. In the newer versions they are a part of it.
    for (size_t c = 0; c < 3; ++c) header.masks[c] = bmp_number(file, kBmpFileHeader + 40 + 4 * c, 4);
  } else if (header.bits == 16) {
    header.masks = {0x7C00, 0x03E0, 0x001F};
  } else {
    header.masks = {0xFF0000, 0x00FF00, 0x0000FF};
  }
}

void read_bmp_palette(std::span<const std::byte> file, size_t at, size_t entry_bytes, uint32_t used,
                      BmpHeader& header) {
  const size_t most = size_t{1} << header.bits;
  const size_t end = std::min(file.size(), std::max(header.pixels_at, at));
  const size_t count = std::min({used == 0 ? most : used, most, (end - at) / entry_bytes});
  for (size_t i = 0; i < count; ++i, at += entry_bytes) {
    header.palette.push_back(
        {static_cast<uint8_t>(file[at + 2]), static_cast<uint8_t>(file[at + 1]), static_cast<uint8_t>(file[at])});
  }
}

Decoded<BmpHeader> read_bmp_header(std::span<const std::byte> file) {
  if (file.size() < kBmpFileHeader + 12) return Undecodable{kBmpEnds};
  BmpHeader header;
  header.pixels_at = bmp_number(file, 10, 4);
  const size_t length = bmp_number(file, kBmpFileHeader, 4);
  const bool core = length == 12;
  if (!core && (length < 40 || length > 256)) return Undecodable{"an unknown kind of BMP header"};
  const bool masks =
      !core && file.size() >= kBmpFileHeader + 34 && bmp_number(file, kBmpFileHeader + 16, 4) != kUncompressed;
  if (file.size() < kBmpFileHeader + length || (masks && file.size() < kBmpFileHeader + 52))
    return Undecodable{kBmpEnds};

  uint32_t used = 0;
  if (core) {
    header.size = {bmp_number(file, 20, 2), bmp_number(file, 18, 2)};
    header.bits = bmp_number(file, 24, 2);
  } else {
    const auto height = static_cast<int32_t>(bmp_number(file, 22, 4));
    header.size = {std::abs(int64_t{height}), static_cast<int32_t>(bmp_number(file, 18, 4))};
    header.top_down = height < 0;
    header.bits = bmp_number(file, 28, 2);
    header.compression = bmp_number(file, 30, 4);
    used = bmp_number(file, 46, 4);
  }
  if (std::string problem = refused_size(header.size); !problem.empty()) return Undecodable{std::move(problem)};
  if (std::string problem = refused_bmp(header); !problem.empty()) return Undecodable{std::move(problem)};
  if (header.bits <= 8) {
    read_bmp_palette(file, kBmpFileHeader + length, core ? 3 : 4, used, header);
  } else {
    read_bmp_masks(file, header);
  }
  if (header.pixels_at > file.size()) return Undecodable{kBmpEnds};
  return header;
}

// Writes pixels by row and column of the file. The rows of most files begin at the bottom.
class BmpCanvas {
 public:
  explicit BmpCanvas(const BmpHeader& header) : header_(header), pixels_{header.size.height, header.size.width, 3, {}} {
    pixels_.bytes.resize(static_cast<size_t>(pixels_.height * pixels_.width * 3));
  }
  void put(int64_t row, int64_t column, const BmpColour& colour) {
    if (row < 0 || row >= pixels_.height || column < 0 || column >= pixels_.width) return;
    const int64_t y = header_.top_down ? row : pixels_.height - 1 - row;
    std::copy(colour.begin(), colour.end(), pixels_.bytes.begin() + 3 * (y * pixels_.width + column));
  }
  void put(int64_t row, int64_t column, size_t index) {
    put(row, column, index < header_.palette.size() ? header_.palette[index] : BmpColour{});
  }
  Pixels take() { return std::move(pixels_); }

 private:
  const BmpHeader& header_;
  Pixels pixels_;
};

uint8_t bmp_field(uint32_t pixel, uint32_t mask) {
  if (mask == 0) return 0;
  const int shift = std::countr_zero(mask);
  const uint64_t most = mask >> shift;
  return static_cast<uint8_t>(((pixel & mask) >> shift) * uint64_t{255} / most);
}

std::string read_bmp_rows(std::span<const std::byte> file, const BmpHeader& header, BmpCanvas& canvas) {
  const auto width = static_cast<uint64_t>(header.size.width), height = static_cast<uint64_t>(header.size.height);
  const uint64_t row_bytes = (width * header.bits + 31) / 32 * 4;
  if (row_bytes * height > file.size() - header.pixels_at) return kBmpEnds;
  for (uint64_t row = 0; row < height; ++row) {
    const size_t at = header.pixels_at + row * row_bytes;
    for (uint64_t x = 0; x < width; ++x) {
      const auto y = static_cast<int64_t>(row), column = static_cast<int64_t>(x);
      if (header.bits <= 8) {
        const uint64_t bit = x * header.bits;
        const auto byte = static_cast<uint32_t>(file[at + bit / 8]);
        canvas.put(y, column, (byte >> (8 - header.bits - bit % 8)) & ((1U << header.bits) - 1));
        continue;
      }
      const uint32_t pixel = bmp_number(file, at + x * header.bits / 8, header.bits / 8);
      canvas.put(y, column,
                 BmpColour{bmp_field(pixel, header.masks[0]), bmp_field(pixel, header.masks[1]),
                           bmp_field(pixel, header.masks[2])});
    }
  }
  return "";
}

// Runs and literal sequences of palette indices. Pixels that the file leaves out have index 0.
std::string read_bmp_runs(std::span<const std::byte> file, const BmpHeader& header, BmpCanvas& canvas) {
  const bool nibbles = header.compression == kRunLength4;
  const auto index_in = [&](uint32_t byte, uint32_t i) { return !nibbles ? byte : i % 2 == 0 ? byte >> 4 : byte & 15; };
  for (int64_t row = 0; row < header.size.height; ++row) {
    for (int64_t x = 0; x < header.size.width; ++x) canvas.put(row, x, size_t{0});
  }
  size_t at = header.pixels_at;
  int64_t row = 0, column = 0;
  while (true) {
    if (file.size() - at < 2) return kBmpEnds;
    const uint32_t count = bmp_number(file, at, 1), value = bmp_number(file, at + 1, 1);
    at += 2;
    if (count > 0) {  // a run
      for (uint32_t i = 0; i < count; ++i) canvas.put(row, column++, index_in(value, i));
    } else if (value == 0) {  // end of the row
      ++row;
      column = 0;
    } else if (value == 1) {  // end of the image
      return "";
    } else if (value == 2) {  // move right and up
      if (file.size() - at < 2) return kBmpEnds;
      column += bmp_number(file, at, 1);
      row += bmp_number(file, at + 1, 1);
      at += 2;
    } else {  // `value` indices, padded to an even number of bytes
      const size_t bytes = nibbles ? (value + 1) / 2 : value;
      if (file.size() - at < bytes + bytes % 2) return kBmpEnds;
      for (uint32_t i = 0; i < value; ++i) {
        canvas.put(row, column++, index_in(bmp_number(file, at + (nibbles ? i / 2 : i), 1), i));
      }
      at += bytes + bytes % 2;
    }
  }
}

}  // namespace

Decoded<ImageSize> bmp_size(std::span<const std::byte> file) {
  const Decoded<BmpHeader> header = read_bmp_header(file);
  if (!header) return Undecodable{header.error()};
  return header->size;
}

Decoded<Pixels> decode_bmp(std::span<const std::byte> file, int64_t channels) {
  const Decoded<BmpHeader> header = read_bmp_header(file);
  if (!header) return Undecodable{header.error()};
  BmpCanvas canvas(*header);
  const bool runs = header->compression == kRunLength8 || header->compression == kRunLength4;
  std::string problem = runs ? read_bmp_runs(file, *header, canvas) : read_bmp_rows(file, *header, canvas);
  if (!problem.empty()) return Undecodable{std::move(problem)};
  return with_channels(canvas.take(), channels);
}

}  // namespace sinew::data
