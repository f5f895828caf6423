// For tests: makes images that the libraries encode, and uncompressed BMP and TIFF.
#pragma once

#include <gif_lib.h>
#include <png.h>
#include <turbojpeg.h>
#include <webp/encode.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/random.h"
#include "data/image_decode.h"

namespace sinew::data {

using Bytes = std::vector<std::byte>;

// Smooth shapes that a lossy codec preserves. They differ in every channel and for every seed.
inline Pixels smooth_pixels(uint64_t seed, int64_t height, int64_t width, int64_t channels) {
  Pixels pixels{height, width, channels, {}};
  RandomStream stream(random_key({seed, 1}));
  const double fx = stream.uniform(0.02, 0.09), fy = stream.uniform(0.02, 0.09), phase = stream.uniform(0, 6);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        const double wave = std::sin(fx * static_cast<double>(x) + phase + static_cast<double>(c)) *
                            std::cos(fy * static_cast<double>(y) - static_cast<double>(c));
        pixels.bytes.push_back(static_cast<uint8_t>(std::lround(128 + 110 * wave)));
      }
    }
  }
  return pixels;
}

inline Pixels noisy_pixels(uint64_t seed, int64_t height, int64_t width, int64_t channels) {
  Pixels pixels{height, width, channels, {}};
  RandomStream stream(random_key({seed, 2}));
  for (int64_t i = 0; i < height * width * channels; ++i) pixels.bytes.push_back(static_cast<uint8_t>(stream.bits32()));
  return pixels;
}

struct JpegForm {
  int subsampling = TJSAMP_420;
  int quality = 95;
  bool progressive = false;
};

// channels 1: grey; 3: YCbCr; 4: YCCK.
inline Bytes jpeg_of(const Pixels& pixels, JpegForm form = {}) {
  tjhandle handle = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const int format = pixels.channels == 1 ? TJPF_GRAY : (pixels.channels == 4 ? TJPF_CMYK : TJPF_RGB);
  const int done =
      tjCompress2(handle, pixels.bytes.data(), static_cast<int>(pixels.width), 0, static_cast<int>(pixels.height),
                  format, &bytes, &size, pixels.channels == 1 ? TJSAMP_GRAY : form.subsampling, form.quality,
                  form.progressive ? TJFLAG_PROGRESSIVE : 0);
  const auto* first = reinterpret_cast<const std::byte*>(bytes);
  Bytes file = done == 0 ? Bytes(first, first + size) : Bytes();
  tjFree(bytes);
  tjDestroy(handle);
  return file;
}

struct PngForm {
  int colour = PNG_COLOR_TYPE_RGB;
  int depth = 8;
  bool interlaced = false;
  bool transparent = false;  // a tRNS chunk: palette and grey
};

// Encodes rows that are already in the file's format (packed samples, big-endian 16 bit). Entry i of the palette is (i,
// 255 - i, 7 i mod 256).
inline Bytes png_of(const std::vector<std::vector<uint8_t>>& rows, int64_t width, PngForm form) {
  Bytes file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp writer, png_bytep bytes, size_t size) {
        auto* to = static_cast<Bytes*>(png_get_io_ptr(writer));
        const auto* first = reinterpret_cast<const std::byte*>(bytes);
        to->insert(to->end(), first, first + size);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<uint32_t>(width), static_cast<uint32_t>(rows.size()), form.depth, form.colour,
               form.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_color palette[256];
  png_byte alpha[256];
  for (int i = 0; i < 256; ++i) {
    palette[i] = {static_cast<uint8_t>(i), static_cast<uint8_t>(255 - i), static_cast<uint8_t>(7 * i)};
    alpha[i] = static_cast<uint8_t>(i);
  }
  if (form.colour == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette, 1 << form.depth);
  if (form.transparent) {
    png_color_16 clear{};
    clear.gray = 1;
    png_set_tRNS(png, info, alpha, form.colour == PNG_COLOR_TYPE_PALETTE ? 1 << form.depth : 0, &clear);
  }
  png_write_info(png, info);
  std::vector<png_const_bytep> pointers;
  for (const std::vector<uint8_t>& row : rows) pointers.push_back(row.data());
  png_write_image(png, const_cast<png_bytepp>(pointers.data()));
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

// 8-bit grey or RGB.
inline Bytes png_of(const Pixels& pixels, bool interlaced = false) {
  std::vector<std::vector<uint8_t>> rows;
  const int64_t row_size = pixels.width * pixels.channels;
  for (int64_t y = 0; y < pixels.height; ++y) {
    const auto first = pixels.bytes.begin() + y * row_size;
    rows.emplace_back(first, first + row_size);
  }
  return png_of(rows, pixels.width,
                {pixels.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, 8, interlaced, false});
}

// Lossless, from RGB.
inline Bytes webp_of(const Pixels& pixels) {
  uint8_t* encoded = nullptr;
  const size_t size =
      WebPEncodeLosslessRGB(pixels.bytes.data(), static_cast<int>(pixels.width), static_cast<int>(pixels.height),
                            static_cast<int>(3 * pixels.width), &encoded);
  const auto* first = reinterpret_cast<const std::byte*>(encoded);
  Bytes file(first, first + size);
  WebPFree(encoded);
  return file;
}

// A grey image as one frame, in the middle of a picture that is larger by `border` on each side.
inline Bytes gif_of(const Pixels& grey, bool interlaced = false, int border = 0) {
  Bytes file;
  int error = 0;
  GifFileType* gif = EGifOpen(
      &file,
      [](GifFileType* writer, const GifByteType* bytes, int size) {
        const auto* first = reinterpret_cast<const std::byte*>(bytes);
        auto* to = static_cast<Bytes*>(writer->UserData);
        to->insert(to->end(), first, first + size);
        return size;
      },
      &error);
  std::vector<GifColorType> greys(256);
  for (size_t i = 0; i < 256; ++i)
    greys[i] = {static_cast<uint8_t>(i), static_cast<uint8_t>(i), static_cast<uint8_t>(i)};
  ColorMapObject* colors = GifMakeMapObject(256, greys.data());
  const auto width = static_cast<int>(grey.width), height = static_cast<int>(grey.height);
  EGifPutScreenDesc(gif, width + 2 * border, height + 2 * border, 8, 77, colors);
  EGifPutImageDesc(gif, border, border, width, height, interlaced, nullptr);
  const auto put = [&](int first, int step) {
    for (int row = first; row < height; row += step) {
      std::vector<GifPixelType> line(grey.bytes.begin() + row * width, grey.bytes.begin() + (row + 1) * width);
      EGifPutLine(gif, line.data(), width);
    }
  };
  if (interlaced) {
    put(0, 8), put(4, 8), put(2, 4), put(1, 2);
  } else {
    put(0, 1);
  }
  EGifCloseFile(gif, &error);
  GifFreeMapObject(colors);
  return file;
}

inline void add_number(Bytes& file, uint64_t number, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) file.push_back(static_cast<std::byte>(number >> (8 * i)));
}

// 24 bits a pixel, rows from the bottom.
inline Bytes bmp_of(const Pixels& rgb) {
  Bytes file;
  for (const char c : {'B', 'M'}) file.push_back(static_cast<std::byte>(c));
  for (const uint64_t number : {0, 0, 54, 40}) add_number(file, number, 4);  // sizes and places
  add_number(file, static_cast<uint64_t>(rgb.width), 4);
  add_number(file, static_cast<uint64_t>(rgb.height), 4);
  add_number(file, 1, 2);
  add_number(file, 24, 2);
  for (int i = 0; i < 6; ++i) add_number(file, 0, 4);
  for (int64_t y = rgb.height - 1; y >= 0; --y) {
    for (int64_t x = 0; x < rgb.width; ++x) {
      for (const int64_t c : {2, 1, 0}) {
        file.push_back(static_cast<std::byte>(rgb.bytes[static_cast<size_t>((y * rgb.width + x) * 3 + c)]));
      }
    }
    while ((file.size() - 54) % 4 != 0) file.push_back(std::byte{0});
  }
  return file;
}

// One uncompressed strip of RGB, 8 bits a sample.
inline Bytes tiff_of(const Pixels& rgb, int orientation = 1) {
  const uint64_t pixels = rgb.bytes.size(), bits_at = 8, pixels_at = 14, directory_at = pixels_at + pixels + pixels % 2;
  Bytes file;
  for (const char c : {'I', 'I', '*', '\0'}) file.push_back(static_cast<std::byte>(c));
  add_number(file, directory_at, 4);
  for (int i = 0; i < 3; ++i) add_number(file, 8, 2);
  for (const uint8_t byte : rgb.bytes) file.push_back(static_cast<std::byte>(byte));
  add_number(file, 0, pixels % 2);
  struct Entry {
    uint64_t tag, type, count, value;
  };
  const Entry entries[] = {{256, 4, 1, static_cast<uint64_t>(rgb.width)},
                           {257, 4, 1, static_cast<uint64_t>(rgb.height)},
                           {258, 3, 3, bits_at},
                           {259, 3, 1, 1},
                           {262, 3, 1, 2},
                           {273, 4, 1, pixels_at},
                           {274, 3, 1, static_cast<uint64_t>(orientation)},
                           {277, 3, 1, 3},
                           {278, 4, 1, static_cast<uint64_t>(rgb.height)},
                           {279, 4, 1, pixels}};
  add_number(file, std::size(entries), 2);
  for (const Entry& entry : entries) {
    add_number(file, entry.tag, 2);
    add_number(file, entry.type, 2);
    add_number(file, entry.count, 4);
    add_number(file, entry.value, 4);
  }
  add_number(file, 0, 4);
  return file;
}

// A copy of a JPEG with an EXIF segment that says the orientation.
inline Bytes with_orientation(const Bytes& jpeg, int orientation) {
  Bytes exif;
  for (const char c : {'E', 'x', 'i', 'f', '\0', '\0', 'I', 'I', '*', '\0'}) exif.push_back(static_cast<std::byte>(c));
  add_number(exif, 8, 4);
  add_number(exif, 1, 2);
  add_number(exif, 0x0112, 2);
  add_number(exif, 3, 2);
  add_number(exif, 1, 4);
  add_number(exif, static_cast<uint64_t>(orientation), 4);
  add_number(exif, 0, 4);
  Bytes file(jpeg.begin(), jpeg.begin() + 2);
  file.push_back(std::byte{0xFF});
  file.push_back(std::byte{0xE1});
  file.push_back(static_cast<std::byte>((exif.size() + 2) >> 8));
  file.push_back(static_cast<std::byte>(exif.size() + 2));
  file.insert(file.end(), exif.begin(), exif.end());
  file.insert(file.end(), jpeg.begin() + 2, jpeg.end());
  return file;
}

}  // namespace sinew::data
