#include "data/image_files.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <string_view>

#include "base/disk.h"
#include "base/error.h"
#include "base/joined.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "data/files.h"
#include "data/foreign_file.h"

namespace sinew::data {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 16;                   // nested folders; stops at links that form a cycle
constexpr uint64_t kMaxFileBytes = 1ULL << 30;  // the most bytes of one image file
constexpr size_t kNamedLeftOut = 3;             // files that left_out_text() names
constexpr char kListLine[] = "write each line as `path<TAB>label` or `path,label`";

uint64_t size_of_image(const std::string& path) {
  if (is_dead_link(path))
    throw Error("DATA_UNREADABLE_FILE", path + " is a link that leads to no file", "remove the link, or correct it");
  return system_disk().size(path);
}

// Where collect() puts what it finds, and what it says about it.
struct Collected {
  const ImageHome* home;
  const std::string* label;
  ImageListing& listing;
  ImageTexts& texts;
};

void collect(const std::string& folder, int depth, Collected& to) {
  const std::string& root = to.home->path;
  if (depth > kMaxDepth) {
    throw Error("DATA_BAD_SOURCE", (fs::path(root) / folder).string() + " is nested too deep",
                "look for a link that leads back to a parent folder");
  }
  for (const Disk::Entry& entry : system_disk().list((fs::path(root) / folder).string())) {
    if (entry.name.starts_with('.')) continue;  // hidden files such as .DS_Store and ._photo.jpg
    const std::string name = folder.empty() ? entry.name : folder + "/" + entry.name;
    if (entry.directory) {
      collect(name, depth + 1, to);
    } else if (is_image_name(entry.name)) {
      const uint64_t bytes = size_of_image((fs::path(root) / name).string());
      to.listing.files.push_back({.home = to.home, .label = to.label, .name = to.texts.name(name), .bytes = bytes});
    } else {
      to.listing.leave_out(name);
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
  const std::string word = lower_case(std::string(first_field));
  constexpr std::string_view kWords[] = {"path", "file", "filename", "file_name", "image", "image_path", "img"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

// Parses one line of a list. Returns false for a blank line, a comment or a heading.
bool parse_line(std::string_view line, const std::string& where, bool first, std::string& name, std::string& label) {
  line = trimmed(line);
  if (line.empty() || line.front() == '#') return false;
  const size_t tab = line.find('\t');
  const size_t separator = tab != std::string_view::npos ? tab : line.rfind(',');
  if (separator == std::string_view::npos) {
    throw Error("DATA_BAD_ROW", where + ": no tab or comma between path and label", kListLine);
  }
  const std::string_view path = trimmed(line.substr(0, separator)), written = trimmed(line.substr(separator + 1));
  if (path.empty() || written.empty()) {
    throw Error("DATA_BAD_ROW", where + ": " + (path.empty() ? "the path" : "the label") + " is empty", kListLine);
  }
  if (first && is_heading(path)) return false;
  name = path;
  label = written;
  return true;
}

bool whole_number(const std::string& text, int64_t& number) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  return result.ec == std::errc() && result.ptr == end;
}

}  // namespace

const ImageHome* ImageTexts::home(const std::string& path, bool tar) {
  homes_.push_back({path, tar ? &reader_ : nullptr});
  return &homes_.back();
}

const std::string* ImageTexts::label(std::string_view text) {
  const auto found = labels_.find(text);
  return found != labels_.end() ? &*found : &*labels_.emplace(text).first;
}

std::string_view ImageTexts::name(std::string_view text) {
  constexpr size_t kTogether = 1 << 16;
  if (names_.empty() || names_.back().capacity() - names_.back().size() < text.size())
    names_.emplace_back().reserve(std::max(kTogether, text.size()));
  std::string& block = names_.back();
  block += text;  // within the capacity, so that the names before it stay where they are
  return std::string_view(block).substr(block.size() - text.size());
}

std::string ImageFile::path() const {
  return home->tar != nullptr ? home->path + ':' + std::string(name) : (fs::path(home->path) / name).string();
}

std::string ImageFile::place() const {
  return line == 0 ? path() : path() + " (line " + std::to_string(line) + " of the list)";
}

uint64_t checksum_of(std::span<const std::byte> bytes) {
  return std::max<uint64_t>(1, digest_of(bytes).low);
}

void check_label(std::string_view label, const std::string& where) {
  if (first_invalid_utf8(label) == std::string_view::npos) return;
  throw Error("DATA_NOT_UTF8", where + ": the class '" + printable_start(label) + "' is not UTF-8",
              "rename it, for example with convmv or iconv");
}

std::optional<double> ImageFile::label_number() const {
  const char* end = label->data() + label->size();
  double number = 0;
  const auto result = std::from_chars(label->data(), end, number);
  if (result.ec != std::errc() || result.ptr != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

bool is_image_name(const std::string& name) {
  constexpr std::string_view kEndings[] = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp",
                                           ".gif", ".bmp",  ".dib", ".tif",  ".tiff"};
  const std::string extension = lower_case(fs::path(name).extension().string());
  return std::find(std::begin(kEndings), std::end(kEndings), extension) != std::end(kEndings);
}

void ImageListing::leave_out(const std::string& name) {
  ++left_out;
  if (first_left_out.size() < kNamedLeftOut) first_left_out.push_back(name);
}

void ImageListing::leave_out_as(const ImageListing& part, const std::string& before_names) {
  left_out += part.left_out;
  for (const std::string& name : part.first_left_out) {
    if (first_left_out.size() < kNamedLeftOut) first_left_out.push_back(before_names + name);
  }
}

std::string ImageListing::left_out_text() const {
  std::string text;
  if (loose > 0)
    text = with_commas(loose) + (loose == 1 ? " image is" : " images are") + " left out, because " +
           (loose == 1 ? "it is" : "they are") + " in no folder of a class: " + printable_start(first_loose, 200) +
           (loose > 1 ? ", ..." : "");
  if (!unread_tars.empty())
    text += (text.empty() ? "" : "; ") + with_commas(static_cast<int64_t>(unread_tars.size())) +
            (unread_tars.size() == 1 ? " tar is" : " tars are") +
            " left out, because the name has no word such as train, val or test, but those of others do: " +
            joined(std::span(unread_tars).first(std::min(unread_tars.size(), kNamedLeftOut)), ", ",
                   [](const std::string& name) { return printable_start(name, 200); }) +
            (unread_tars.size() > kNamedLeftOut ? ", ..." : "");
  if (links > 0)
    text += (text.empty() ? "" : "; ") + with_commas(links) + (links == 1 ? " link is" : " links are") +
            " left out, because a link in a tar has no content: " + printable_start(first_link, 200) +
            (links > 1 ? ", ..." : "") + " (write the tar with tar " +
            (hard_links ? "--hard-dereference)" : "--dereference)");
  if (left_out == 0) return text;
  text += (text.empty() ? "" : "; ") + std::to_string(left_out) + (left_out == 1 ? " file is" : " files are") +
          " left out, because the name is not that of a JPEG, PNG, WebP, GIF, BMP or TIFF image: ";
  for (size_t i = 0; i < first_left_out.size(); ++i)
    text += (i == 0 ? "" : ", ") + printable_start(first_left_out[i], 200);
  return text + (static_cast<size_t>(left_out) > first_left_out.size() ? ", ..." : "");
}

void refuse_no_images(const std::string& folder, const ImageListing& listing, const std::string& hint) {
  for (const std::string& name : listing.first_left_out) {
    const std::optional<ForeignFile> foreign = foreign_file(name, "");
    if (!foreign) continue;
    throw Error("DATA_EMPTY", folder + " holds no image that Sinew reads; " + name + " is " + foreign->what,
                foreign->cure);
  }
  throw Error("DATA_EMPTY", folder + " holds no image (JPEG, PNG, WebP, GIF, BMP or TIFF)", hint);
}

void collect_images(const std::string& root, const std::string& folder, const std::string& label, ImageListing& listing,
                    ImageTexts& texts) {
  Collected to{texts.home(root, false), texts.label(label), listing, texts};
  collect(folder, 0, to);
}

ImageListing list_image_folder(const std::string& folder, ImageTexts& texts) {
  ImageListing listing;
  for (const Disk::Entry& entry : system_disk().list(folder)) {
    if (entry.name.starts_with('.')) continue;
    if (!entry.directory) {
      if (!is_image_name(entry.name)) {
        listing.leave_out(entry.name);
      } else if (listing.loose++ == 0) {
        listing.first_loose = entry.name;
      }
      continue;
    }
    check_label(entry.name, printable_start(folder + "/" + entry.name, 4096));
    const size_t before = listing.files.size();
    ImageListing of_class;
    collect_images(folder, entry.name, entry.name, of_class, texts);
    if (of_class.files.empty()) {
      refuse_no_images(folder + "/" + entry.name, of_class,
                       "each folder of an image_folder is a class; remove the empty one");
    }
    listing.files.insert(listing.files.end(), std::make_move_iterator(of_class.files.begin()),
                         std::make_move_iterator(of_class.files.end()));
    listing.leave_out_as(of_class, "");
    std::sort(listing.files.begin() + static_cast<int64_t>(before), listing.files.end(),
              [](const ImageFile& a, const ImageFile& b) { return a.name < b.name; });
  }
  if (listing.files.empty()) {
    const bool loose = listing.loose > 0;
    throw Error("DATA_EMPTY",
                folder + (loose ? " holds images but no folder for each class" : " holds no folder of images"),
                loose ? "move each class into its own folder, or use data.format: image_list"
                      : "an image_folder looks like FOLDER/cat/1.jpg, FOLDER/dog/2.png");
  }
  return listing;
}

bool begins_image_list(std::string_view head) {
  size_t start = head.find('\n');
  start = start == std::string_view::npos || head.find_first_not_of("\r\n", start) == std::string_view::npos
              ? 0
              : start + 1;
  const std::string_view line = head.substr(start, head.find_first_of("\r\n", start) - start);
  return line.find_first_of(",\t") != std::string_view::npos &&
         is_image_name(std::string(trimmed(line.substr(0, line.find_first_of(",\t")))));
}

std::vector<std::string> image_lists_in(const std::string& folder) {
  std::vector<std::string> found;
  for (const Disk::Entry& entry : system_disk().list(folder)) {
    const std::string extension = file_extension(entry.name);
    const bool named = extension == "csv" || extension == "tsv" || extension == "txt" || extension == "lst";
    if (entry.directory || entry.name.starts_with('.') || !named) continue;
    const std::string path = (fs::path(folder) / entry.name).string();
    if (begins_image_list(text_of(read_head(path, 1 << 16)))) found.push_back(path);
  }
  std::ranges::sort(found);
  return found;
}

std::vector<ImageFile> list_image_list(const std::string& path, ImageTexts& texts) {
  const std::vector<std::byte> bytes = system_disk().read(path);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const ImageHome* base = texts.home(fs::path(path).parent_path().string(), false);
  std::vector<ImageFile> files;
  bool first = true;
  for (int64_t line = 1; !text.empty(); ++line) {
    const size_t end = text.find('\n');
    const std::string where = path + ":" + std::to_string(line);
    std::string name, label;
    if (parse_line(text.substr(0, end), where, first, name, label)) {
      check_label(label, where);
      ImageFile file{.home = base, .label = texts.label(label), .name = texts.name(name), .line = line};
      try {
        file.bytes = system_disk().size(file.path());
        files.push_back(file);
      } catch (const Error& error) {
        throw Error("DATA_UNREADABLE_FILE", where + ": " + error.what(),
                    "write the paths in a list relative to the folder of the list");
      }
    }
    first = first && text.substr(0, end).find_first_not_of(" \t\r") == std::string_view::npos;
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  if (files.empty()) throw Error("DATA_EMPTY", path + " lists no image", kListLine);
  return files;
}

bool are_whole_numbers(const std::vector<std::string>& names) {
  int64_t number = 0;
  return std::ranges::all_of(names, [&](const std::string& name) { return whole_number(name, number); });
}

std::vector<std::string> class_names_of(const std::vector<ImageFile>& files) {
  std::vector<std::string> names;
  for (const ImageFile& file : files) {
    if (names.empty() || names.back() != *file.label) names.push_back(*file.label);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  int64_t a = 0, b = 0;
  const bool folder = !files.empty() && files.front().line == 0 && files.front().home->tar == nullptr;
  if (!folder && are_whole_numbers(names)) {
    std::stable_sort(names.begin(), names.end(), [&](const std::string& left, const std::string& right) {
      return whole_number(left, a) && whole_number(right, b) && a < b;
    });
  }
  return names;
}

std::string refused_array(const ImageFile& file, std::span<const std::byte> bytes) {
  if (file.home->tar != nullptr || !is_npy(bytes)) return "";
  return "not a JPEG, PNG, WebP, GIF, BMP or TIFF image, but a NumPy array";
}

std::span<const std::byte> read_image_file(const ImageFile& file, std::vector<std::byte>& buffer) {
  if (file.bytes > kMaxFileBytes) {
    throw Error("DATA_FILE_TOO_LARGE",
                file.path() + " has " + std::to_string(file.bytes >> 20) + " MiB; Sinew reads images of up to " +
                    std::to_string(kMaxFileBytes >> 20) + " MiB",
                "remove it from the dataset");
  }
  if (file.home->tar == nullptr) {
    buffer = system_disk().read(file.path());
    return buffer;
  }
  if (buffer.size() < file.bytes) buffer.resize(static_cast<size_t>(file.bytes));
  const auto bytes = std::span(buffer).first(static_cast<size_t>(file.bytes));
  file.home->tar->read(file.home->path, file.offset, bytes);
  return bytes;
}

}  // namespace sinew::data
