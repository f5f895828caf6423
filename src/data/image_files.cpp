#include "data/image_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "base/disk.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/utf8.h"

namespace sinew::data {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 16;                   // folders below a class: a circle of links ends here
constexpr uint64_t kLargestFile = 1ULL << 30;  // bytes of one image file

// Images below `folder`, sorted by their name relative to `root`.
void collect(const std::string& root, const std::string& folder, const std::string& label, int depth,
             std::vector<ImageFile>& files) {
  if (depth > kDeepest) throw Error(folder + " lies too many folders deep", "look for a link that leads back upwards");
  for (const Disk::Entry& entry : system_disk().list((fs::path(root) / folder).string())) {
    if (entry.name.starts_with('.')) continue;  // .DS_Store, ._photo.jpg and their like
    const std::string name = folder + "/" + entry.name;
    if (entry.directory) {
      collect(root, name, label, depth + 1, files);
    } else if (is_image_name(entry.name)) {
      const std::string path = (fs::path(root) / name).string();
      files.push_back({path, path.size() - name.size(), system_disk().size(path), label, 0});
    }
  }
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  return text;
}

bool is_heading(std::string_view first_field) {
  std::string word(first_field);
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return static_cast<char>(tolower(c)); });
  constexpr std::string_view kWords[] = {"path", "file", "filename", "file_name", "image", "image_path", "img"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

// One line of a list, or nothing for a blank line, a comment or a heading.
bool parse_line(std::string_view line, const std::string& where, bool first, std::string& name, std::string& label) {
  line = trimmed(line);
  if (line.empty() || line.front() == '#') return false;
  const size_t tab = line.find('\t');
  const size_t split = tab != std::string_view::npos ? tab : line.rfind(',');
  if (split == std::string_view::npos) {
    throw Error(where + ": no tab or comma between path and label", "each line is `path<TAB>label` or `path,label`");
  }
  const std::string_view path = trimmed(line.substr(0, split)), written = trimmed(line.substr(split + 1));
  if (path.empty() || written.empty()) {
    throw Error(where + ": " + (path.empty() ? "the path" : "the label") + " is empty",
                "each line is `path<TAB>label` or `path,label`");
  }
  if (first && is_heading(path)) return false;
  name = path;
  label = written;
  return true;
}

// Class names go into model.json and are printed: said now, and not when the training is over.
void check_label(std::string_view label, const std::string& where) {
  if (first_invalid_utf8(label) == std::string_view::npos) return;
  throw Error(where + ": the class '" + printable_start(label) + "' is not UTF-8",
              "rename it, for example with convmv or iconv");
}

bool whole_number(const std::string& text, int64_t& number) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  return result.ec == std::errc() && result.ptr == end;
}

}  // namespace

bool is_image_name(const std::string& name) {
  std::string extension = fs::path(name).extension().string();
  for (char& c : extension) c = static_cast<char>(tolower(static_cast<unsigned char>(c)));
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

std::vector<ImageFile> list_image_folder(const std::string& folder) {
  std::vector<ImageFile> files;
  bool loose = false;
  for (const Disk::Entry& entry : system_disk().list(folder)) {
    if (entry.name.starts_with('.')) continue;
    loose |= !entry.directory && is_image_name(entry.name);
    if (!entry.directory) continue;
    check_label(entry.name, printable_start(folder + "/" + entry.name, 4096));
    const size_t before = files.size();
    collect(folder, entry.name, entry.name, 0, files);
    if (files.size() == before) {
      throw Error(folder + "/" + entry.name + " holds no jpg, jpeg or png file",
                  "each folder of an image_folder is a class; remove the empty one");
    }
    std::sort(files.begin() + static_cast<int64_t>(before), files.end(),
              [](const ImageFile& a, const ImageFile& b) { return a.path < b.path; });
  }
  if (files.empty()) {
    throw Error(folder + (loose ? " holds images but no folder for each class" : " holds no folder of images"),
                loose ? "move each class into a folder of its own, or use data.format: image_list"
                      : "an image_folder looks like FOLDER/cat/1.jpg, FOLDER/dog/2.png");
  }
  return files;
}

std::vector<ImageFile> list_image_list(const std::string& path) {
  const std::vector<std::byte> bytes = system_disk().read(path);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const fs::path base = fs::path(path).parent_path();
  std::vector<ImageFile> files;
  bool first = true;
  for (int64_t line = 1; !text.empty(); ++line) {
    const size_t end = text.find('\n');
    const std::string where = path + ":" + std::to_string(line);
    std::string name, label;
    if (parse_line(text.substr(0, end), where, first, name, label)) {
      check_label(label, where);
      const std::string file = (base / name).string();
      try {
        files.push_back(
            {file, file.size() - std::min(file.size(), name.size()), system_disk().size(file), label, line});
      } catch (const Error& error) {
        throw Error(where + ": " + error.what(), "paths in a list are relative to the list's own folder");
      }
    }
    first = first && text.substr(0, end).find_first_not_of(" \t\r") == std::string_view::npos;
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  if (files.empty()) throw Error(path + " lists no image", "each line is `path<TAB>label` or `path,label`");
  return files;
}

std::vector<std::string> class_names_of(const std::vector<ImageFile>& files) {
  std::vector<std::string> names;
  for (const ImageFile& file : files) {
    if (names.empty() || names.back() != file.label) names.push_back(file.label);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  int64_t a = 0, b = 0;
  const bool folder = !files.empty() && files.front().line == 0;
  if (!folder &&
      std::all_of(names.begin(), names.end(), [&](const std::string& name) { return whole_number(name, a); })) {
    std::stable_sort(names.begin(), names.end(), [&](const std::string& left, const std::string& right) {
      return whole_number(left, a) && whole_number(right, b) && a < b;
    });
  }
  return names;
}

std::vector<std::byte> read_image_file(const ImageFile& file) {
  if (file.bytes > kLargestFile) {
    throw Error(file.path + " is " + std::to_string(file.bytes >> 20) + " MiB large, more than any image should be",
                "remove it from the data set");
  }
  return system_disk().read(file.path);
}

}  // namespace sinew::data
