// Resolves data.format: auto. The signature of IDX decides first. Otherwise the file name decides if it tells the
// format, because the user chose the name; the rest of the content only allows a guess.
#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/file_pattern.h"
#include "data/files.h"
#include "data/foreign_file.h"
#include "data/formats.h"
#include "data/image_files.h"
#include "data/table_files.h"
#include "data/text_folder.h"
#include "data/webdataset.h"

namespace sinew::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHeadBytes = 1 << 16;

bool is_idx(std::span<const std::byte> head) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(head[i]); };
  return head.size() >= 4 && at(0) == 0 && at(1) == 0 && at(2) >= 8 && at(2) <= 14 && at(3) >= 1 && at(3) <= 8;
}

std::optional<DetectedFormat> by_folder(const std::string& path) {
  bool folders = false, images = false;
  std::string first_image_folder;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = lower_case(entry.path().filename().string());
    if (name.starts_with("data_batch_") && name.ends_with(".bin")) {
      return DetectedFormat{"cifar10", "the folder holds " + name};
    }
    if (name == "train.bin" &&
        (fs::exists(entry.path().parent_path() / "fine_label_names.txt") || fs::file_size(entry.path()) % 3074 == 0)) {
      return DetectedFormat{"cifar100", "the folder holds " + name + " with records of 3,074 bytes"};
    }
    if (name.find("-images-idx") != std::string::npos) return DetectedFormat{"idx", "the folder holds " + name};
    images = images || is_image_name(name);
    if (entry.is_directory() && !folders) {
      for (const auto& inner : fs::directory_iterator(entry.path())) {
        if (is_image_name(inner.path().filename().string())) {
          folders = true;
          first_image_folder = entry.path().filename().string();
          break;
        }
      }
    }
  }
  if (folders) {
    return DetectedFormat{"image_folder", "the folder holds sub-folders of images (" + first_image_folder + ")"};
  }
  if (images) {
    if (const auto lists = image_lists_in(path); !lists.empty())
      throw Error("DATA_BAD_SOURCE", path + ": the images are labelled by the list " + lists[0],
                  "name the list as the path: data.train.path: " + lists[0]);
    throw Error("DATA_UNKNOWN_FORMAT", path + ": holds images without labels",
                "put each class into its own sub-folder, or write an image_list");
  }
  const TablesOfFolder tables = tables_of_folder(path);
  if (tables.format.empty() && has_text_classes(path))
    return DetectedFormat{std::string(kTextFolder), "the folder holds sub-folders of texts"};
  if (tables.format.empty() && names_tars(path)) return DetectedFormat{"webdataset", "the folder holds tars"};
  if (tables.format.empty()) return std::nullopt;
  return DetectedFormat{tables.format, "the folder holds " + with_commas(tables.count) + " files of this format"};
}

std::optional<DetectedFormat> by_name(const std::string& path, std::string_view head,
                                      const spec::DataOptions& options) {
  struct Named {
    std::string_view extension, format;
  };
  constexpr auto kOtherNames = std::to_array<Named>(
      {{"npz", "npz"}, {"npy", "npy"}, {"txt", "text"}, {"text", "text"}, {"md", "text"}, {"lst", "image_list"}});
  const std::string extension = file_extension(path);
  std::string format = table_format_of(path);
  for (const Named& named : kOtherNames) {
    if (named.extension == extension) format = named.format;
  }
  const bool lines = format == "csv" || format == "tsv" || format == "text";
  if (lines && options.columns.target.empty() && begins_image_list(head))
    return DetectedFormat{"image_list", "the lines of " + file_name(path) + " begin with names of images"};
  const bool table_as_text = format == "text" && !options.columns.target.empty();  // then the content decides
  if (!format.empty() && !table_as_text) return DetectedFormat{format, "the name ends in ." + extension};
  if (extension == "bin") {
    const auto size = fs::file_size(path);
    if (size > 0 && size % 3073 == 0) return DetectedFormat{"cifar10", "a .bin of records of 3,073 bytes"};
    if (size > 0 && size % 3074 == 0) return DetectedFormat{"cifar100", "a .bin of records of 3,074 bytes"};
  }
  return std::nullopt;
}

std::optional<DetectedFormat> by_content(std::string_view head, const spec::DataOptions& options) {
  if (head.starts_with("\x93NUMPY")) return DetectedFormat{"npy", "it begins like a NumPy array"};
  if (head.starts_with("PK\x03\x04")) return DetectedFormat{"npz", "it begins like a ZIP archive"};
  const size_t start = head.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (start != std::string_view::npos && head[start] == '{')
    return DetectedFormat{"jsonl", "its first line begins with {"};
  if (head.find('\0') != std::string_view::npos) return std::nullopt;
  if (!options.columns.target.empty()) {
    const std::string_view line = head.substr(0, head.find('\n'));
    const bool tabs = std::count(line.begin(), line.end(), '\t') > std::count(line.begin(), line.end(), ',');
    return DetectedFormat{tabs ? "tsv" : "csv",
                          "columns.target is given and the first line has " + std::string(tabs ? "tabs" : "commas")};
  }
  return std::nullopt;
}

}  // namespace

DetectedFormat detect_format(const spec::DataSource& train, const spec::DataOptions& options) {
  const std::string& path = train.path.empty() ? train.images : train.path;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    if (auto found = by_folder(path)) return *found;
    throw Error("DATA_UNKNOWN_FORMAT", path + ": Sinew does not recognise the data in this folder",
                "set data.format and name the files");
  }
  if (is_file_pattern(path)) {
    const std::string format = names_tars(path) ? "webdataset" : table_format_of(path);
    if (!format.empty()) return {format, "the pattern ends in ." + file_extension(path)};
    throw Error("DATA_UNKNOWN_FORMAT", path + ": the pattern does not tell the format", "set data.format");
  }
  const std::vector<std::byte> head = read_head(path, kHeadBytes);
  refuse_foreign_file(path, text_of(head));
  if (names_tars(path)) return {"webdataset", "the name ends in .tar"};
  if (is_idx(head)) return {"idx", file_name(path) + " begins like an IDX file"};
  if (auto found = by_name(path, text_of(head), options)) return *found;
  if (auto found = by_content(text_of(head), options)) return *found;
  throw Error("DATA_UNKNOWN_FORMAT", path + ": neither its name nor its content tells the format", "set data.format");
}

}  // namespace sinew::data
