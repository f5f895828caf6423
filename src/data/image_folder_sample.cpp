// Turns one file into one sample.
#include "base/error.h"
#include "data/image_folder.h"

namespace sinew::data {

void fail_corrupt(const ImageFile& file, const std::string& why) {
  throw Error("DATA_CORRUPT_IMAGE", file.place() + ": " + why,
              "repair or remove the file, or set data.on_corrupt: skip");
}

std::string decode_sample(const ImageFile& file, const ImageShape& shape, std::span<float> out) {
  const std::vector<std::byte> bytes = read_image_file(file);
  const Decoded<Pixels> pixels = decode_image(bytes, shape.channels, shape.stretch ? shape.size : ImageSize{});
  if (!pixels) return pixels.error();
  if (!shape.stretch && ImageSize{pixels->height, pixels->width} != shape.size) {
    throw Error("DATA_SHAPE_MISMATCH",
                file.path + " is " + std::to_string(pixels->width) + " x " + std::to_string(pixels->height) +
                    ", but the first training image is " + std::to_string(shape.size.width) + " x " +
                    std::to_string(shape.size.height) + " (width x height)",
                "set data.image.size: [height, width], for example [224, 224]");
  }
  resize_to_floats(*pixels, shape.size, out);
  return "";
}

void Normalization::apply(std::span<float> pixels) const {
  if (mean.empty()) return;
  const size_t plane = pixels.size() / mean.size();
  for (size_t c = 0; c < mean.size(); ++c) {
    const float center = mean[c], deviation = std[c];
    for (float& pixel : pixels.subspan(c * plane, plane)) pixel = (pixel - center) / deviation;
  }
}

}  // namespace sinew::data
