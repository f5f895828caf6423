// Reads IDX, the format of MNIST and similar datasets: 00 00, type, number of dimensions, the dimensions as big-endian
// u32, then the elements, big-endian.
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "data/arrays.h"

namespace sinew::data {
namespace {

namespace fs = std::filesystem;

struct Element {
  char kind;
  int width;
};

std::optional<Element> element_of(uint8_t type) {
  switch (type) {
    case 0x08: return Element{'u', 1};
    case 0x09: return Element{'i', 1};
    case 0x0B: return Element{'i', 2};
    case 0x0C: return Element{'i', 4};
    case 0x0D: return Element{'f', 4};
    case 0x0E: return Element{'f', 8};
    default: return std::nullopt;
  }
}

// Finds a file by its usual name, such as "train-images-idx3-ubyte.gz" for kind "images".
std::string find_in_folder(const std::string& folder, Split split, const std::string& kind) {
  const std::string prefix = split == Split::train ? "train" : split == Split::test ? "t10k" : "val";
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix + "-" + kind) || (split != Split::train && name.starts_with("test-" + kind))) {
      found.push_back(entry.path().string());
    }
  }
  if (found.empty()) {
    throw Error("DATA_MISSING_FILES", folder + ": no file " + prefix + "-" + kind + "*",
                "name the two files as images: and labels:");
  }
  return *std::min_element(found.begin(), found.end());
}

}  // namespace

ArrayHeader parse_idx(std::span<const std::byte> file, const std::string& name) {
  const auto byte_at = [&](size_t i) { return static_cast<uint8_t>(file[i]); };
  if (file.size() < 4) {
    throw Error("DATA_DAMAGED_FILE", name + ": " + std::to_string(file.size()) + " bytes are too few for an IDX header",
                "the file is cut off; download it or write it again");
  }
  const auto element = element_of(byte_at(2));
  if (byte_at(0) != 0 || byte_at(1) != 0 || !element || byte_at(3) == 0) {
    throw Error("DATA_WRONG_FORMAT",
                name + ": not an IDX file: it begins " + std::to_string(byte_at(0)) + ' ' + std::to_string(byte_at(1)) +
                    ' ' + std::to_string(byte_at(2)) + ' ' + std::to_string(byte_at(3)) +
                    "; an IDX file begins 0 0, a type from 8 to 14, and a number of dimensions",
                "set data.format to the format of the file, or write the file again");
  }
  const size_t dimensions = byte_at(3), header_size = 4 + 4 * dimensions;
  if (file.size() < header_size) {
    throw Error("DATA_DAMAGED_FILE",
                name + ": cut off within its IDX header: it has " + std::to_string(file.size()) +
                    " bytes, but the header alone needs " + std::to_string(header_size),
                "download the file or write it again");
  }
  ArrayHeader header{element->kind, element->width, {}, header_size, true, false};
  for (size_t d = 0; d < dimensions; ++d) {
    uint32_t size = 0;
    for (size_t i = 0; i < 4; ++i) size = (size << 8) | byte_at(4 + 4 * d + i);
    header.shape.push_back(size);
  }
  check_size(header, file.size(), name);
  return header;
}

ArraySplit read_idx(const spec::DataSource& source, Split split) {
  std::string images = source.images, labels = source.labels;
  if (images.empty() && !source.path.empty()) {
    if (!fs::is_directory(source.path)) {
      throw Error("DATA_BAD_SOURCE",
                  "data." + to_string(split) + ": IDX needs two files, but only " + source.path + " is given",
                  "name the two files as images: and labels:, or give their folder as path:");
    }
    images = find_in_folder(source.path, split, "images");
    labels = find_in_folder(source.path, split, "labels");
  }
  if (images.empty() || labels.empty()) {
    throw Error("DATA_BAD_SOURCE",
                "data." + to_string(split) + ": IDX needs both images: and labels:", "name the two files");
  }
  auto files = read_files({images, labels});
  ArraySplit result;
  result.files = {{0, images}};
  result.digests = {files[0].digest, files[1].digest};
  const ArrayHeader image_header = parse_idx(files[0].bytes, images), label_header = parse_idx(files[1].bytes, labels);
  result.inputs = make_array(std::move(files[0].bytes), image_header, images);
  result.targets = make_array(std::move(files[1].bytes), label_header, labels);
  return result;
}

}  // namespace sinew::data
