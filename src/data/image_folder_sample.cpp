// Turns one file into one sample.
#include <optional>

#include "base/error.h"
#include "data/image_folder.h"

namespace sinew::data {
namespace {

std::string decode_bytes(const ImageFile& file, std::span<const std::byte> bytes, const ImageShape& shape,
                         std::span<float> out) {
  if (file.checksum != 0 && checksum_of(bytes) != file.checksum)
    return "the bytes are not those that were packed: their checksum is wrong";
  if (std::string why = refused_array(file, bytes); !why.empty()) return why;
  if (npy_planes_to_floats(bytes, shape.channels, shape.size, out)) return "";
  const Decoded<Pixels> pixels = decode_image(bytes, shape.channels, shape.stretch ? shape.size : ImageSize{});
  if (!pixels) return pixels.error();
  if (!shape.stretch && ImageSize{pixels->height, pixels->width} != shape.size) {
    throw Error("DATA_SHAPE_MISMATCH",
                file.path() + " is " + std::to_string(pixels->width) + " x " + std::to_string(pixels->height) +
                    ", but the first training image is " + std::to_string(shape.size.width) + " x " +
                    std::to_string(shape.size.height) + " (width x height)",
                "set data.image.size: [height, width], for example [224, 224]");
  }
  resize_to_floats(*pixels, shape.size, out);
  return "";
}

}  // namespace

void fail_corrupt(const ImageFile& file, const std::string& why) {
  const bool tar = file.home->tar != nullptr;
  throw Error("DATA_CORRUPT_IMAGE", file.place() + ": " + why,
              tar ? "write the tar again, or set data.on_corrupt: skip"
                  : "repair or remove the file, or set data.on_corrupt: skip");
}

std::string decode_sample(const ImageFile& file, const ImageShape& shape, std::span<float> out,
                          std::vector<std::byte>& buffer, LoadUse* use) {
  std::optional<LoadWatch> watch;
  if (use != nullptr) watch.emplace(*use);
  const std::span<const std::byte> bytes = read_image_file(file, buffer);
  if (watch) {
    watch->ended(LoadStage::read);
    use->read_bytes += static_cast<int64_t>(bytes.size());
  }
  std::string why = decode_bytes(file, bytes, shape, out);
  if (watch) watch->ended(LoadStage::decode);
  return why;
}

void Normalization::apply(std::span<float> pixels) const {
  if (mean.empty()) return;
  const size_t plane = pixels.size() / mean.size();
  for (size_t c = 0; c < mean.size(); ++c) standardize(pixels.subspan(c * plane, plane), mean[c], std[c]);
}

}  // namespace sinew::data
