// Implements the detectors that recognise a dataset by its file names: IDX, CIFAR, NumPy, images.
#include <algorithm>
#include <filesystem>
#include <map>

#include "base/disk.h"
#include "base/error.h"
#include "base/printable.h"
#include "data/files.h"
#include "data/image_files.h"
#include "data/propose.h"
#include "data/table_files.h"
#include "data/text_folder.h"
#include "data/webdataset.h"

namespace sinew::data {
namespace {

namespace fs = std::filesystem;

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::string below(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

// Returns the sorted names of the visible files in a folder, or an empty list if `folder` is not a folder.
std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> names;
  if (!is_folder(folder)) return names;
  for (const Disk::Entry& entry : system_disk().list(folder)) {
    if (!entry.directory && !entry.name.starts_with('.')) names.push_back(entry.name);
  }
  return names;
}

bool holds(const std::string& text, std::string_view word) {
  return text.find(word) != std::string::npos;
}

// Returns the sizes of up to 32 images spread over the files. Sets `grey` to whether the first few images have no
// colour.
std::vector<ImageSize> some_sizes(const std::vector<ImageFile>& files, bool& grey) {
  std::vector<ImageSize> sizes;
  grey = true;
  const size_t count = std::min<size_t>(32, files.size());
  std::vector<std::byte> buffer;
  for (size_t i = 0; i < count; ++i) {
    const ImageFile& file = files[i * files.size() / count];
    const std::span<const std::byte> bytes = read_image_file(file, buffer);
    if (!refused_array(file, bytes).empty()) continue;
    const Decoded<ImageSize> size = image_size(bytes);
    if (!size) continue;
    sizes.push_back(*size);
    if (i >= 8 || !grey) continue;
    const Decoded<Pixels> pixels = decode_image(bytes, 3, {8, 8});
    for (size_t j = 0; pixels && j + 2 < pixels->bytes.size(); j += 3) {
      grey = grey && pixels->bytes[j] == pixels->bytes[j + 1] && pixels->bytes[j] == pixels->bytes[j + 2];
    }
  }
  return sizes;
}

// Chooses the size and the channels of the model's input from a few of the images.
void choose_image_options(const std::vector<ImageFile>& files, Detection& detection) {
  bool grey = false;
  const std::vector<ImageSize> sizes = some_sizes(files, grey);
  if (sizes.empty()) return;
  if (grey) detection.data.image.channels = 1;
  const bool equal = std::all_of(sizes.begin(), sizes.end(), [&](const ImageSize& size) { return size == sizes[0]; });
  if (equal && std::max(sizes[0].height, sizes[0].width) <= 64) {
    detection.data.image.size = {sizes[0].height, sizes[0].width};
    return;
  }
  std::vector<int64_t> sides;
  for (const ImageSize& size : sizes) sides.push_back(std::min(size.height, size.width));
  std::nth_element(sides.begin(), sides.begin() + static_cast<int64_t>(sides.size() / 2), sides.end());
  int64_t side = 32;
  for (const int64_t usual : {64, 96, 128, 160, 224}) side = sides[sides.size() / 2] >= usual ? usual : side;
  detection.data.image.size = {side, side};
  detection.remarks.push_back(std::string(equal ? "the images are larger than needed" : "the images differ in size") +
                              "; data.image.size stretches them to " + std::to_string(side) + " x " +
                              std::to_string(side));
}

// Returns whether a folder has a sub-folder that contains an image. Stops at the first such sub-folder.
bool has_image_classes(const std::string& folder) {
  if (!is_folder(folder)) return false;
  for (const Disk::Entry& entry : system_disk().list(folder)) {
    if (!entry.directory || entry.name.starts_with('.')) continue;
    for (const Disk::Entry& inner : system_disk().list(below(folder, entry.name))) {
      if (!inner.directory && is_image_name(inner.name)) return true;
    }
  }
  return false;
}

constexpr int kMostWrapped = 4;

// Returns the only visible entry of a folder if it is a folder; else "".
std::string only_folder_in(const std::string& folder) {
  if (!is_folder(folder)) return "";
  std::string found;
  for (const Disk::Entry& entry : system_disk().list(folder)) {
    if (entry.name.starts_with('.') || entry.name == "__MACOSX") continue;
    if (!entry.directory || !found.empty()) return "";
    found = entry.name;
  }
  return found.empty() ? "" : below(folder, found);
}

// Names the folders with images beside those of the splits.
void note_other_folders(const std::string& root, Detection& detection) {
  const spec::DataOptions& data = detection.data;
  for (const Disk::Entry& entry : system_disk().list(root)) {
    const std::string folder = below(root, entry.name);
    if (folder == data.train.path || folder == data.val.path || folder == data.test.path) continue;
    if (!entry.directory || !has_image_classes(folder)) continue;
    detection.remarks.push_back("the images of " + printable_start(folder, 200) +
                                " are left out: the name is not that of a split (train, val or test)");
  }
}

// Returns the list with one of these names, without the extension, or "".
std::string list_named(const std::vector<std::string>& lists, std::span<const std::string_view> names) {
  for (const std::string& list : lists) {
    const std::string stem = lower_case(fs::path(list).stem().string());
    if (std::ranges::find(names, stem) != names.end()) return list;
  }
  return "";
}

// Finds the file of targets that belongs to the file of inputs `name`. Its name is `name` with the word for inputs
// replaced by a word for targets. Returns "" if there is no such file.
std::string partner_of(const std::string& folder, const std::string& name, const std::vector<std::string>& names) {
  static const std::map<std::string, std::vector<std::string>> kPartners = {{"images", {"labels", "targets"}},
                                                                            {"inputs", {"targets", "labels"}},
                                                                            {"features", {"targets", "labels"}},
                                                                            {"data", {"labels", "targets"}},
                                                                            {"x", {"y"}}};
  for (const auto& [word, partners] : kPartners) {
    for (size_t at = lower_case(name).find(word); at != std::string::npos; at = lower_case(name).find(word, at + 1)) {
      for (const std::string& partner : partners) {
        const std::string other = lower_case(name).replace(at, word.size(), partner);
        for (const std::string& candidate : names) {
          if (candidate != name && lower_case(candidate) == other) return below(folder, candidate);
        }
      }
    }
  }
  return "";
}

std::optional<Detection> detect_npz(const std::string& path) {
  Detection detection;
  detection.data.format = "npz";
  detection.data.train.path = path;
  // The central directory, with the names of all members, is at the end of a ZIP archive, so the rest is not read.
  const uint64_t size = system_disk().size(path);
  std::string tail(std::min<uint64_t>(size, 1 << 16), '\0');
  tail.resize(system_disk().read_at(path, size - tail.size(), std::as_writable_bytes(std::span(tail))));
  if (holds(tail, "x_test")) detection.data.test.path = path;
  detection.remarks.push_back("a NumPy archive");
  return detection;
}

}  // namespace

std::string first_folder(const std::string& root, std::span<const std::string_view> names,
                         bool (*fits)(const std::string&)) {
  for (const std::string_view name : names) {
    const std::string folder = below(root, std::string(name));
    if (fits(folder)) return folder;
  }
  return "";
}

std::optional<Detection> detect_idx(const std::string& path) {
  Detection detection;
  detection.data.format = "idx";
  for (const std::string& name : files_of(path)) {
    const bool images = holds(name, "images") && holds(name, "idx"),
               labels = holds(name, "labels") && holds(name, "idx");
    if (!images && !labels) continue;
    const bool test = name.starts_with("t10k") || name.starts_with("test"), val = name.starts_with("val");
    spec::DataSource& source = test ? detection.data.test : val ? detection.data.val : detection.data.train;
    std::string& file = images ? source.images : source.labels;
    if (file.empty()) file = below(path, name);
  }
  if (detection.data.train.images.empty() || detection.data.train.labels.empty()) return std::nullopt;
  for (spec::DataSource* source : {&detection.data.val, &detection.data.test}) {
    if (source->images.empty() || source->labels.empty()) *source = {};
  }
  detection.remarks.push_back("IDX files, the format of MNIST");
  return detection;
}

std::optional<Detection> detect_cifar(const std::string& path) {
  const std::vector<std::string> names = files_of(path);
  const auto has = [&](const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  Detection detection;
  if (has("data_batch_1.bin")) {
    detection.data.format = "cifar10";
    if (has("test_batch.bin")) detection.data.test.path = path;
  } else if (has("train.bin") && (has("fine_label_names.txt") || has("test.bin"))) {
    detection.data.format = "cifar100";
    if (has("test.bin")) detection.data.test.path = path;
  } else if (has("data_batch_1") || is_folder(below(path, "cifar-10-batches-bin"))) {
    throw Error("DATA_WRONG_FORMAT",
                path + (has("data_batch_1") ? " holds CIFAR as Python pickles" : " holds a folder of CIFAR files"),
                has("data_batch_1") ? "download the binary version, cifar-10-binary.tar.gz"
                                    : "give the path " + below(path, "cifar-10-batches-bin"));
  } else {
    return std::nullopt;
  }
  detection.data.train.path = path;
  detection.remarks.push_back(detection.data.format == "cifar10" ? "CIFAR-10, binary version"
                                                                 : "CIFAR-100, binary version");
  return detection;
}

std::optional<Detection> detect_image_folder(const std::string& path) {
  Detection detection;
  detection.data.format = "image_folder";
  std::string root = path;  // of folders within each other, each the only one
  const auto splits = [&] {
    detection.data.train.path = first_folder(root, kTrainNames, has_image_classes);
    return !detection.data.train.path.empty();
  };
  for (int depth = 0; !splits() && !has_image_classes(root); ++depth) {
    root = depth < kMostWrapped ? only_folder_in(root) : "";
    if (root.empty()) return std::nullopt;
  }
  if (detection.data.train.path.empty()) {
    detection.data.train.path = root;
  } else {
    detection.data.val.path = first_folder(root, kValNames, has_image_classes);
    detection.data.test.path = first_folder(root, kTestNames, has_image_classes);
    note_other_folders(root, detection);
  }
  ImageTexts texts;
  const std::vector<ImageFile> files = list_image_folder(detection.data.train.path, texts).files;
  detection.remarks.push_back(std::to_string(files.size()) + " images in one folder for each class");
  choose_image_options(files, detection);
  return detection;
}

std::optional<Detection> detect_image_list(const std::string& path) {
  Detection detection;
  std::string list = path;
  if (is_folder(path)) {
    const std::vector<std::string> lists = image_lists_in(path);
    if (lists.empty()) return std::nullopt;
    list = lists.size() == 1 ? lists[0] : list_named(lists, kTrainNames);
    if (list.empty())
      throw Error("DATA_BAD_SOURCE",
                  path + ": holds several lists of images: " + file_name(lists[0]) + ", " + file_name(lists[1]) +
                      (lists.size() > 2 ? ", ..." : ""),
                  "name one: sinew init " + shell_quoted(lists[0]));
    if (lists.size() > 1) {
      detection.data.val.path = list_named(lists, kValNames);
      detection.data.test.path = list_named(lists, kTestNames);
    }
  } else {
    const std::string extension = file_extension(path);
    if (extension != "csv" && extension != "tsv" && extension != "txt" && extension != "lst") return std::nullopt;
    if (!begins_image_list(text_of(read_head(path, 1 << 16)))) return std::nullopt;
  }
  detection.data.format = "image_list";
  detection.data.train.path = list;
  ImageTexts texts;
  const std::vector<ImageFile> files = list_image_list(list, texts);
  detection.remarks.push_back("a list of " + std::to_string(files.size()) + " images");
  choose_image_options(files, detection);
  return detection;
}

std::optional<Detection> detect_webdataset(const std::string& path) {
  if (!names_tars(path)) return std::nullopt;
  // A folder that holds other data keeps its format when somebody puts a tar beside them.
  if (is_folder(path) && (detect_numpy(path) || detect_image_list(path) || !tables_of_folder(path).format.empty() ||
                          has_text_classes(path)))
    return std::nullopt;
  Detection detection;
  detection.data.format = "webdataset";
  detection.data.train.path = path;
  ImageTexts texts;
  const std::vector<ImageFile> files = list_webdataset(path, Split::train, texts).files;
  const std::set<Split> splits = is_folder(path) ? splits_of_tars(path) : std::set<Split>();
  if (splits.contains(Split::val)) detection.data.val.path = path;
  if (splits.contains(Split::test)) detection.data.test.path = path;
  detection.remarks.push_back(std::to_string(files.size()) + " images in tars, the layout of WebDataset");
  choose_image_options(files, detection);
  return detection;
}

std::optional<Detection> detect_numpy(const std::string& path) {
  if (!is_folder(path) && file_extension(path) == "npz") return detect_npz(path);
  const bool folder = is_folder(path);
  if (!folder && file_extension(path) != "npy") return std::nullopt;
  const std::string parent = folder ? path : fs::path(path).parent_path().string();
  const std::vector<std::string> names = files_of(parent.empty() ? "." : parent);
  Detection detection;
  detection.data.format = "npy";
  for (const std::string& name : names) {
    if (file_extension(name) != "npy" || (!folder && name != fs::path(path).filename().string())) continue;
    const std::string partner = partner_of(parent, name, names);
    if (partner.empty()) continue;
    const std::string lower = lower_case(name);
    spec::DataSource& source = holds(lower, "test")  ? detection.data.test
                               : holds(lower, "val") ? detection.data.val
                                                     : detection.data.train;
    if (!source.given()) source.images = below(parent, name), source.labels = partner;
  }
  if (!detection.data.train.given()) {
    if (folder) return std::nullopt;
    throw Error("DATA_MISSING_FILES", "there is no file with the targets beside " + path,
                "name the two files alike: x.npy and y.npy, or images.npy and labels.npy");
  }
  detection.remarks.push_back("NumPy arrays: inputs " + detection.data.train.images + ", targets " +
                              detection.data.train.labels);
  return detection;
}

}  // namespace sinew::data
