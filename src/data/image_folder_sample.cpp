// One file becomes one sample.
#include "base/error.h"
#include "data/image_folder.h"

namespace sinew::data {

void fail_corrupt(const ImageFile& file, const std::string& why) {
  throw Error(file.place() + ": " + why, "repair or remove the file, or set data.on_corrupt: skip");
}

std::string decode_sample(const ImageFile& file, const ImageShape& shape, std::span<float> out) {
  const std::vector<std::byte> bytes = read_image_file(file);
  const Decoded<Pixels> pixels = decode_image(bytes, shape.channels, shape.stretch ? shape.size : ImageSize{});
  if (!pixels) return pixels.error();
  if (!shape.stretch && ImageSize{pixels->height, pixels->width} != shape.size) {
    throw Error(file.path + " is " + std::to_string(pixels->width) + " x " + std::to_string(pixels->height) +
                    ", the first training image " + std::to_string(shape.size.width) + " x " +
                    std::to_string(shape.size.height) + " (width x height)",
                "set data.image.size: [height, width], for example [224, 224]");
  }
  resize_to_floats(*pixels, shape.size, out);
  return "";
}

}  // namespace sinew::data
