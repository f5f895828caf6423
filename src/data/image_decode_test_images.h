// For tests: makes images that libjpeg-turbo and libpng encode.
#pragma once

#include <png.h>
#include <turbojpeg.h>

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

}  // namespace sinew::data
