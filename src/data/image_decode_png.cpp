// Decodes PNG through libpng: every colour type and depth, interlaced or not.
//
// libpng reports errors through longjmp. So everything that must be freed lives in a PngReader that the caller's frame
// owns. The functions that call setjmp have no local variable with a destructor, and none that changes after setjmp.
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "data/image_decode.h"

namespace sinew::data {
namespace {

struct PngReader {
  explicit PngReader(std::span<const std::byte> file) : file(file) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png != nullptr) info = png_create_info_struct(png);
  }
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  [[noreturn]] static void on_error(png_structp png, png_const_charp text) {
    auto* self = static_cast<PngReader*>(png_get_error_ptr(png));
    std::snprintf(self->problem, sizeof self->problem, "%s", text);
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}  // warnings concern colour profiles and text, not pixels
  static void read(png_structp png, png_bytep to, size_t count) {
    auto* self = static_cast<PngReader*>(png_get_io_ptr(png));
    if (count > self->file.size() - self->position) png_error(png, "premature end of PNG data");
    std::memcpy(to, self->file.data() + self->position, count);
    self->position += count;
  }

  std::span<const std::byte> file;
  size_t position = 0;
  png_structp png = nullptr;
  png_infop info = nullptr;
  ImageSize size;
  size_t row_bytes = 0;
  int passes = 1;
  char problem[128] = "the PNG data do not decode";
};

bool read_header(PngReader& reader) {
  if (reader.png == nullptr || reader.info == nullptr) return false;
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_set_read_fn(reader.png, &reader, PngReader::read);
  png_set_user_limits(reader.png, 0x7FFFFFFF, 0x7FFFFFFF);  // kMaxPixels bounds the product below
  png_set_chunk_malloc_max(reader.png, 8 << 20);
  png_read_info(reader.png, reader.info);
  reader.size = {static_cast<int64_t>(png_get_image_height(reader.png, reader.info)),
                 static_cast<int64_t>(png_get_image_width(reader.png, reader.info))};
  return true;
}

// Makes libpng convert to 8 bits without alpha: to grey if the file is grey, else to RGB.
bool set_transforms(PngReader& reader) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_set_scale_16(reader.png);
  png_set_palette_to_rgb(reader.png);
  if ((png_get_color_type(reader.png, reader.info) & PNG_COLOR_MASK_COLOR) == 0) {
    png_set_expand_gray_1_2_4_to_8(reader.png);
  }
  png_set_strip_alpha(reader.png);
  reader.passes = png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  reader.row_bytes = png_get_rowbytes(reader.png, reader.info);
  return true;
}

bool read_rows(PngReader& reader, uint8_t* to) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  for (int pass = 0; pass < reader.passes; ++pass) {
    for (int64_t row = 0; row < reader.size.height; ++row) {
      png_read_row(reader.png, to + static_cast<size_t>(row) * reader.row_bytes, nullptr);
    }
  }
  png_read_end(reader.png, nullptr);  // fails for a file that is cut off after its pixels
  return true;
}

Decoded<ImageSize> header_of(PngReader& reader) {
  if (!read_header(reader)) return Undecodable{reader.problem};
  if (std::string problem = refused_size(reader.size); !problem.empty()) return Undecodable{std::move(problem)};
  return reader.size;
}

}  // namespace

Decoded<ImageSize> png_size(std::span<const std::byte> file) {
  PngReader reader(file);
  return header_of(reader);
}

Decoded<Pixels> decode_png(std::span<const std::byte> file, int64_t channels) {
  PngReader reader(file);
  const Decoded<ImageSize> size = header_of(reader);
  if (!size) return Undecodable{size.error()};
  if (!set_transforms(reader)) return Undecodable{reader.problem};
  Pixels pixels{size->height, size->width, static_cast<int64_t>(reader.row_bytes) / size->width, {}};
  if (pixels.channels * size->width != static_cast<int64_t>(reader.row_bytes) ||
      (pixels.channels != 1 && pixels.channels != 3)) {
    return Undecodable{"an unknown kind of PNG"};
  }
  pixels.bytes.resize(static_cast<size_t>(size->height) * reader.row_bytes);
  if (!read_rows(reader, pixels.bytes.data())) return Undecodable{reader.problem};
  return with_channels(std::move(pixels), channels);
}

}  // namespace sinew::data
