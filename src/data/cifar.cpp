// Reads CIFAR-10 and CIFAR-100, binary version. Each image has one label byte (CIFAR-10) or two (CIFAR-100: coarse,
// then fine). 3,072 pixels follow: a red, a green and a blue plane of 32 x 32.
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "data/arrays.h"

namespace sinew::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPixels = 3072;

std::vector<std::string> files_of(const std::string& path, Split split, bool hundred) {
  if (!fs::is_directory(path)) return {path};
  std::string folder = path;  // archives unpack into a folder of their own
  const std::string inner = path + (hundred ? "/cifar-100-binary" : "/cifar-10-batches-bin");
  if (fs::is_directory(inner)) folder = inner;
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool train = hundred ? name == "train.bin" : name.starts_with("data_batch_") && name.ends_with(".bin");
    const bool test = name == (hundred ? "test.bin" : "test_batch.bin");
    if (split == Split::train ? train : test) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    const std::string wanted = split == Split::train ? (hundred ? "train.bin" : "data_batch_*.bin")
                                                     : (hundred ? "test.bin" : "test_batch.bin");
    throw Error("DATA_MISSING_FILES", folder + ": no file " + wanted,
                "name the folder that holds the binary version, or the .bin file itself");
  }
  return files;
}

std::vector<std::string> class_names_beside(const std::string& file, bool hundred, size_t classes) {
  const fs::path path = fs::path(file).parent_path() / (hundred ? "fine_label_names.txt" : "batches.meta.txt");
  if (!fs::exists(path)) return {};
  const auto bytes = read_file(path.string(), 1 << 20).bytes;
  std::vector<std::string> names;
  std::string name;
  for (const char c : text_of(bytes)) {
    if (c == '\r') continue;
    if (c != '\n') {
      name.push_back(c);
    } else if (!name.empty()) {
      names.push_back(std::exchange(name, {}));
    }
  }
  if (!name.empty()) names.push_back(name);
  if (names.size() != classes) names.clear();  // the file does not list the names of these classes
  return names;
}

}  // namespace

ArraySplit read_cifar(const spec::DataSource& source, Split split, bool hundred) {
  if (source.path.empty()) {
    throw Error("DATA_BAD_SOURCE",
                "data." + to_string(split) + ": CIFAR needs a path:", "name the folder or a .bin file");
  }
  const size_t label_bytes = hundred ? 2 : 1, record = label_bytes + kPixels, classes = hundred ? 100 : 10;
  auto files = read_files(files_of(source.path, split, hundred));
  ArraySplit result;
  size_t total = 0;
  for (const FileBytes& file : files) {
    if (file.bytes.size() % record != 0 || file.bytes.empty()) {
      throw Error("DATA_DAMAGED_FILE",
                  file.path + ": has " + with_commas(static_cast<int64_t>(file.bytes.size())) +
                      " bytes, which is not a multiple of the record size " + with_commas(static_cast<int64_t>(record)),
                  "the file is cut off, or it is not the binary version of CIFAR-" + std::to_string(classes) +
                      "; download it again");
    }
    result.files.emplace_back(static_cast<int64_t>(total / record), file.path);
    result.digests.push_back(file.digest);
    total += file.bytes.size();
  }
  std::vector<std::byte> all = std::move(files[0].bytes);
  all.reserve(total);
  for (size_t i = 1; i < files.size(); ++i) {
    all.insert(all.end(), files[i].bytes.begin(), files[i].bytes.end());
    files[i].bytes = {};
  }
  const size_t count = total / record;
  std::vector<std::byte> labels(count);
  for (size_t i = 0; i < count; ++i) {
    labels[i] = all[i * record + label_bytes - 1];
    if (static_cast<size_t>(labels[i]) < classes) continue;
    auto file = std::find_if(result.files.rbegin(), result.files.rend(),
                             [&](const auto& f) { return f.first <= static_cast<int64_t>(i); });
    throw Error("DATA_DAMAGED_FILE",
                file->second + '[' + std::to_string(static_cast<int64_t>(i) - file->first) + "]: label " +
                    std::to_string(static_cast<int>(labels[i])) + " is not a class of CIFAR-" + std::to_string(classes),
                "the file is damaged, or it is not the binary version of CIFAR-" + std::to_string(classes) +
                    "; download it again");
  }
  const auto rows = static_cast<int64_t>(count);
  result.inputs = {result.files[0].second, DType::u8, {rows, 3, 32, 32}, std::move(all), label_bytes, record};
  result.targets = {result.files[0].second, DType::u8, {rows}, std::move(labels), 0, 1};
  result.class_names = class_names_beside(result.files[0].second, hundred, classes);
  if (result.class_names.empty()) {
    for (size_t c = 0; c < classes; ++c) result.class_names.push_back(std::to_string(c));
  }
  return result;
}

}  // namespace sinew::data
