// Decodes the first page of a TIFF through libtiff: every compression, photometric interpretation and layout that its
// RGBA interface reads, with up to 16 bits a sample.
#include <tiffio.h>

#include <cstdarg>
#include <cstring>
#include <memory>

#include "data/image_decode.h"

namespace sinew::data {
namespace {

constexpr tmsize_t kTiffMemory = tmsize_t{1} << 30;  // of one allocation in libtiff

// A file in memory, and the last error that libtiff reported for it.
struct TiffSource {
  std::span<const std::byte> file;
  toff_t position = 0;
  char problem[160] = "the TIFF data do not decode";
};

tmsize_t read_tiff(thandle_t handle, void* to, tmsize_t count) {
  auto* source = static_cast<TiffSource*>(handle);
  if (count < 0 || source->position >= source->file.size()) return 0;
  const size_t size = std::min(static_cast<size_t>(count), source->file.size() - source->position);
  std::memcpy(to, source->file.data() + source->position, size);
  source->position += size;
  return static_cast<tmsize_t>(size);
}

toff_t seek_tiff(thandle_t handle, toff_t to, int from) {
  auto* source = static_cast<TiffSource*>(handle);
  const toff_t base = from == SEEK_CUR ? source->position : from == SEEK_END ? source->file.size() : 0;
  return source->position = base + to;
}

toff_t tiff_bytes(thandle_t handle) {
  return static_cast<TiffSource*>(handle)->file.size();
}

int on_tiff_error(TIFF*, void* user, const char*, const char* format, va_list arguments) {
  auto* source = static_cast<TiffSource*>(user);
  std::vsnprintf(source->problem, sizeof source->problem, format, arguments);
  return 1;  // libtiff prints nothing
}

int on_tiff_warning(TIFF*, void*, const char*, const char*, va_list) {
  return 1;  // warnings concern unknown tags
}

struct FreeTiffOptions {
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
};
struct CloseTiff {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
using Tiff = std::unique_ptr<TIFF, CloseTiff>;

Tiff open_tiff(TiffSource& source) {
  const std::unique_ptr<TIFFOpenOptions, FreeTiffOptions> options(TIFFOpenOptionsAlloc());
  if (options == nullptr) return nullptr;
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kTiffMemory);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), on_tiff_error, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), on_tiff_warning, &source);
  // "m": no memory mapping, because the file is in memory already.
  return Tiff(TIFFClientOpenExt(
      "image", "rm", &source, read_tiff, [](thandle_t, void*, tmsize_t) -> tmsize_t { return 0; }, seek_tiff,
      [](thandle_t) { return 0; }, tiff_bytes, nullptr, nullptr, options.get()));
}

Decoded<ImageSize> size_in_tiff(TIFF* tiff, const TiffSource& source) {
  if (tiff == nullptr) return Undecodable{source.problem};
  uint32_t width = 0, height = 0;
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
  const ImageSize size{height, width};
  if (std::string problem = refused_size(size); !problem.empty()) return Undecodable{std::move(problem)};
  return size;
}

// libtiff multiplies colours by an alpha that is not premultiplied. The decoder drops alpha, so libtiff must not know
// of it.
void forget_alpha(TIFF* tiff) {
  uint16_t count = 0;
  uint16_t* kinds = nullptr;
  if (TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &count, &kinds) == 0 || count == 0) return;
  std::vector<uint16_t> unspecified(count, EXTRASAMPLE_UNSPECIFIED);
  TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, count, unspecified.data());
}

struct RgbaImage {
  ~RgbaImage() {
    if (open) TIFFRGBAImageEnd(&image);
  }
  TIFFRGBAImage image{};
  bool open = false;
};

// Returns the pixels as libtiff packs them, in the order of the file, or an empty vector.
std::vector<uint32_t> read_rgba(TIFF* tiff, ImageSize size, TiffSource& source) {
  RgbaImage rgba;
  char problem[1024] = "";
  rgba.open = TIFFRGBAImageOK(tiff, problem) != 0 && TIFFRGBAImageBegin(&rgba.image, tiff, 1, problem) != 0;
  if (!rgba.open) {
    std::snprintf(source.problem, sizeof source.problem, "TIFF: %.140s", problem);
    return {};
  }
  rgba.image.req_orientation = rgba.image.orientation;  // upright() turns the pixels
  std::vector<uint32_t> packed(static_cast<size_t>(size.height * size.width));
  const bool whole = TIFFRGBAImageGet(&rgba.image, packed.data(), static_cast<uint32_t>(size.width),
                                      static_cast<uint32_t>(size.height)) != 0;
  if (!whole) packed.clear();
  return packed;
}

}  // namespace

Decoded<ImageSize> tiff_size(std::span<const std::byte> file) {
  TiffSource source{file};
  const Tiff tiff = open_tiff(source);
  return size_in_tiff(tiff.get(), source);
}

int tiff_orientation(std::span<const std::byte> file) {
  TiffSource source{file};
  const Tiff tiff = open_tiff(source);
  uint16_t orientation = 1;
  if (tiff != nullptr) TIFFGetField(tiff.get(), TIFFTAG_ORIENTATION, &orientation);
  return orientation >= 1 && orientation <= 8 ? orientation : 1;
}

Decoded<Pixels> decode_tiff(std::span<const std::byte> file, int64_t channels) {
  TiffSource source{file};
  const Tiff tiff = open_tiff(source);
  const Decoded<ImageSize> size = size_in_tiff(tiff.get(), source);
  if (!size) return Undecodable{size.error()};
  forget_alpha(tiff.get());
  const std::vector<uint32_t> packed = read_rgba(tiff.get(), *size, source);
  if (packed.empty()) return Undecodable{source.problem};
  Pixels pixels{size->height, size->width, 3, {}};
  pixels.bytes.reserve(packed.size() * 3);
  for (const uint32_t pixel : packed) {
    for (const uint32_t value : {TIFFGetR(pixel), TIFFGetG(pixel), TIFFGetB(pixel)}) {
      pixels.bytes.push_back(static_cast<uint8_t>(value));
    }
  }
  return with_channels(std::move(pixels), channels);
}

}  // namespace sinew::data
