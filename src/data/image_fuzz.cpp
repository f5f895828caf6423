// Fuzzes image files: reads the header, decodes at full and at reduced size, and resizes. The first byte of the input
// chooses the options.
#include <algorithm>

#include "base/check.h"
#include "data/image_decode.h"

namespace sinew::data {
namespace {

constexpr int64_t kMaxPixelsTried = 1 << 20;  // larger images are valid, but they only slow the fuzzer down

void try_file(uint8_t options, std::span<const std::byte> file) {
  const int64_t channels = (options & 1) != 0 ? 3 : 1;
  const ImageSize target{1 + (options >> 4), 1 + ((options >> 1) & 15)};
  const Decoded<ImageSize> size = image_size(file);
  if (!size) SINEW_CHECK(!size.error().empty());
  if (size && size->height > kMaxPixelsTried / size->width) return;
  const Decoded<Pixels> whole = decode_image(file, channels);
  const Decoded<Pixels> reduced = decode_image(file, channels, target);
  if (whole) {
    SINEW_CHECK(size && whole->height == size->height && whole->width == size->width);
    SINEW_CHECK(static_cast<int64_t>(whole->bytes.size()) == whole->height * whole->width * channels);
  } else {
    SINEW_CHECK(!whole.error().empty());
  }
  if (!reduced) return;
  SINEW_CHECK(reduced->height >= std::min(size->height, target.height), reduced->height, target.height);
  SINEW_CHECK(reduced->width >= std::min(size->width, target.width), reduced->width, target.width);
  std::vector<float> out(static_cast<size_t>(channels * target.height * target.width));
  resize_to_floats(*reduced, target, out);
  for (const float value : out) SINEW_CHECK(value >= 0 && value <= 1.00001f, value);
}

}  // namespace
}  // namespace sinew::data

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  sinew::data::try_file(data[0], std::as_bytes(std::span(data + 1, size - 1)));
  return 0;
}
