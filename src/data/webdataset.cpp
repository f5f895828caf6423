#include "data/webdataset.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/disk.h"
#include "base/error.h"
#include "base/file_pattern.h"
#include "base/lower_case.h"
#include "base/printable.h"
#include "base/wildcards.h"
#include "data/files.h"
#include "data/in_order.h"
#include "data/pack_index.h"
#include "data/tar.h"

namespace sinew::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLongestLabel = 1024;
constexpr int64_t kScanThreads = 16;  // they wait for the disk

bool is_tar_name(const std::string& name) {
  return !name.starts_with('.') && lower_case(fs::path(name).extension().string()) == ".tar";
}

bool is_tar_folder(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return false;
  bool tars = false;
  for (const Disk::Entry& entry : system_disk().list(path)) {
    if (entry.name.starts_with('.')) continue;
    if (entry.directory || is_image_name(entry.name)) return false;
    tars = tars || is_tar_name(entry.name);
  }
  return tars;
}

std::span<const std::string_view> names_of(Split split) {
  if (split == Split::train) return kTrainNames;
  if (split == Split::val) return kValNames;
  return kTestNames;
}

// Returns the split that a name has as one of its words: "imagenet-train-000001.tar".
std::optional<Split> split_in(const std::string& name) {
  const std::string stem = fs::path(name).stem().string();
  for (size_t begin = 0; begin < stem.size();) {
    const size_t end = std::min(stem.find_first_of("-_. ", begin), stem.size());
    const std::string_view word = std::string_view(stem).substr(begin, end - begin);
    for (const Split split : {Split::train, Split::val, Split::test}) {
      if (std::ranges::find(names_of(split), word) != names_of(split).end()) return split;
    }
    begin = end + 1;
  }
  return std::nullopt;
}

std::string folder_of_split(const std::string& path, Split split) {
  for (const std::string_view name : names_of(split)) {
    const std::string folder = (fs::path(path) / name).string();
    if (is_tar_folder(folder)) return folder;
  }
  return "";
}

// Returns the tars of a folder that belong to the split, or all if there is no split.
std::vector<std::string> tars_in_folder(const std::string& path, std::optional<Split> split, ImageListing& listing) {
  std::vector<std::string> all, chosen, unnamed;
  for (const Disk::Entry& entry : system_disk().list(path)) {
    if (entry.directory || !is_tar_name(entry.name)) continue;
    const std::optional<Split> of = split_in(entry.name);
    all.push_back((fs::path(path) / entry.name).string());
    if (!of) unnamed.push_back(entry.name);
    if (of && of == split) chosen.push_back(all.back());
  }
  if (!split || unnamed.size() == all.size()) return all;
  if (chosen.empty())
    throw Error("DATA_MISSING_FILES",
                path + ": holds no tar of " + to_string(*split) + ", such as " + to_string(*split) +
                    "-000000.tar, but tars of other splits",
                "name the tars as path:, for example " + path + "/NAME-{000000..000009}.tar, or leave data." +
                    to_string(*split) + " out");
  listing.unread_tars = std::move(unnamed);
  return chosen;
}

std::vector<std::string> tars_below(const std::string& path, std::optional<Split> split, ImageListing& listing) {
  std::vector<std::string> tars;
  for (const Split of : {Split::train, Split::val, Split::test}) {
    const std::string folder = split.value_or(of) == of ? folder_of_split(path, of) : "";
    if (folder.empty()) continue;
    const std::vector<std::string> some = tars_in_folder(folder, split, listing);
    tars.insert(tars.end(), some.begin(), some.end());
  }
  return tars.empty() ? tars_in_folder(path, split, listing) : tars;
}

std::vector<std::string> tars_of(const std::string& path, std::optional<Split> split, ImageListing& listing) {
  std::error_code ignored;
  std::vector<std::string> tars;
  if (is_file_pattern(path)) {
    tars = files_of_pattern(path);
  } else if (fs::is_directory(path, ignored)) {
    tars = tars_below(path, split, listing);
  } else {
    tars = {path};
  }
  if (tars.empty())
    throw Error("DATA_MISSING_FILES",
                path + (is_file_pattern(path) ? ": no file has a name that fits" : ": the folder holds no tar"),
                "a webdataset is one .tar, a folder of .tar files, or a pattern such as train-{000000..000009}.tar");
  return tars;
}

std::string_view label_in(std::string_view text) {
  constexpr std::string_view kSpace(" \t\r\n\0", 5);
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

// ---- tars without an index -----------------------------------------------------------------------------------------

struct TarSample {
  std::string name, label;
  uint64_t offset = 0, bytes = 0;
};

// Puts the members of one tar together to samples.
class TarScan {
 public:
  TarScan(const std::string& tar, const RangeReader& reader, bool labelled)
      : tar_(tar),
        labelled_(labelled),
        reader_(tar, system_disk().size(tar),
                [&](uint64_t offset, std::span<std::byte> out) { reader.read(tar_, offset, out); }) {}

  void run() {
    while (std::optional<TarMember> member = reader_.next()) take(std::move(*member));
    finish();
  }
  const TarLinks& links() const { return reader_.links(); }

  std::vector<TarSample> samples;
  ImageListing left_out;  // no files: only what is left out

 private:
  std::string place(const std::string& name) const { return tar_ + ':' + printable_start(name, 500); }
  [[noreturn]] void fail_double(const char* what, const std::string& one, const std::string& other) const {
    throw Error("DATA_BAD_SOURCE", place(one) + ": its sample has another " + what + ", " + printable_start(other, 500),
                "a sample has one image (or .npy) and one .cls; give other files an ending such as .mask.png");
  }

  void take(TarMember member) {
    const SampleName parts = sample_name(member.name);
    if (parts.sample.empty()) return left_out.leave_out(member.name);
    if (parts.sample != key_) {
      finish();
      key_ = parts.sample;
    }
    const bool simple = parts.ending.find('.') == std::string::npos;  // 17.mask.png is not the image of 17
    if (parts.ending == "npy" || (simple && is_image_name("x." + parts.ending))) {
      if (input_) fail_double("image", member.name, input_->name);
      input_ = std::move(member);
    } else if (parts.ending == "cls" || parts.ending == "class") {
      if (label_name_) fail_double("label", member.name, *label_name_);
      label_name_ = member.name;
      if (labelled_) label_ = read_label(member);
    } else {
      left_out.leave_out(member.name);
    }
  }

  std::string read_label(const TarMember& member) {
    const std::string where = place(member.name);
    if (member.size > kLongestLabel)
      throw Error("DATA_BAD_TARGET", where + ": a label of " + std::to_string(member.size) + " bytes",
                  "a .cls holds the number or the name of the class");
    const std::string_view text = label_in(text_of(reader_.bytes(member.offset, member.size)));
    if (text.empty())
      throw Error("DATA_BAD_TARGET", where + ": the label is empty",
                  "a .cls holds the number or the name of the class");
    check_label(text, where);
    return std::string(text);
  }

  void finish() {
    if (input_ && labelled_ && !label_name_)
      throw Error("DATA_BAD_TARGET", place(input_->name) + ": the image has no label: no .cls of its name follows it",
                  reader_.links().hard
                      ? "the tar holds hard links, which have no content: write it with tar --hard-dereference"
                      : "the files of one sample must follow each other in a tar: pack them with tar --sort=name, or "
                        "with sinew data pack; an archive of an image_folder has to be unpacked");
    if (input_) {
      samples.push_back({std::move(input_->name), std::move(label_), input_->offset, input_->size});
    } else if (label_name_) {
      left_out.leave_out(*label_name_);
    }
    input_.reset();
    label_name_.reset();
    label_.clear();
  }

  const std::string tar_;
  const bool labelled_;
  TarReader reader_;
  std::string key_;
  std::optional<TarMember> input_;
  std::optional<std::string> label_name_;
  std::string label_;
};

void list_scanned(std::span<const std::string> tars, ImageTexts& texts, bool labelled, ImageListing& listing) {
  const RangeReader reader;
  const auto scan = [&](int64_t i) {
    auto made = std::make_unique<TarScan>(tars[static_cast<size_t>(i)], reader, labelled);
    made->run();
    return made;
  };
  const auto take = [&](int64_t i, const std::unique_ptr<TarScan>& made) {
    const std::string& tar = tars[static_cast<size_t>(i)];
    const ImageHome* home = texts.home(tar, true);
    for (const TarSample& sample : made->samples)
      listing.files.push_back({.home = home,
                               .label = texts.label(sample.label),
                               .name = texts.name(sample.name),
                               .bytes = sample.bytes,
                               .offset = sample.offset});
    const TarLinks& links = made->links();
    if (listing.links == 0 && links.count > 0) listing.first_link = file_name(tar) + ':' + links.first;
    listing.links += links.count;
    listing.hard_links = listing.hard_links || links.hard;
    listing.leave_out_as(made->left_out, file_name(tar) + ':');
  };
  const auto count = static_cast<int64_t>(tars.size());
  in_order<std::unique_ptr<TarScan>>(count, std::min(kScanThreads, count), scan, take);
}

// ---- tars with an index --------------------------------------------------------------------------------------------

void check_size_of(const std::string& tar, uint64_t bytes) {
  const uint64_t found = system_disk().size(tar);
  if (found == bytes) return;
  throw Error("DATA_DAMAGED_FILE",
              tar + ": has " + std::to_string(found) + " bytes, but " + std::to_string(bytes) + " by " +
                  std::string(kPackIndex) + " beside it",
              "copy the tar again, or pack the data again");
}

// The labels of a pack of classes are numbers of its list of classes.
const std::string* label_of(const PackSample& sample, const PackHeader& header, const std::string& index,
                            ImageTexts& texts) {
  if (header.classes.empty()) {
    check_label(sample.label, index + ": " + printable_start(std::string(sample.name), 200));
    return texts.label(sample.label);
  }
  size_t number = 0;
  const auto [end, error] = std::from_chars(sample.label.data(), sample.label.data() + sample.label.size(), number);
  if (error != std::errc() || end != sample.label.data() + sample.label.size() || number >= header.classes.size())
    throw Error("DATA_DAMAGED_FILE", index + ": " + printable_start(std::string(sample.name), 200) + " has no class",
                "pack the data again");
  return texts.label(header.classes[number]);
}

// Returns whether the headers around an image in its tar are those that `sinew data pack` wrote for it.
bool fits_headers(const ImageFile& file, std::string_view label) {
  if (file.offset < kTarBlock) return false;
  const std::string& path = file.home->path;
  const uint64_t start = file.offset - kTarBlock;
  TarReader tar(path, system_disk().size(path) - start,
                [&](uint64_t offset, std::span<std::byte> out) { file.home->tar->read(path, start + offset, out); });
  try {
    const std::optional<TarMember> image = tar.next();
    // A long name stands in a header before this one, which has only its end.
    if (!image || image->offset != kTarBlock || image->size != file.bytes || !file.name.ends_with(image->name))
      return false;
    const std::optional<TarMember> text = tar.next();
    if (!text || text->size > kLongestLabel) return false;
    const SampleName name = sample_name(text->name);
    return name.sample == sample_name(file.name).sample && name.ending == "cls" &&
           label_in(text_of(tar.bytes(text->offset, text->size))) == label;
  } catch (const Error& error) {
    if (error.code != "DATA_DAMAGED_FILE" && error.code != "DATA_WRONG_FORMAT") throw;
    return false;
  }
}

// Returns whether the first images of a tar, up to three, all have other bytes than the index says. One such image is
// damaged, and data.on_corrupt says what happens then.
bool has_other_images(std::span<const ImageFile> files) {
  std::vector<std::byte> buffer;
  size_t others = 0;
  while (others < std::min<size_t>(3, files.size()) && files[others].home == files[0].home) {
    if (checksum_of(read_image_file(files[others], buffer)) == files[others].checksum) return false;
    ++others;
  }
  return others > 1;
}

// Looks at up to 64 samples in the tars. A tar that was written again, for example with corrected labels, can have the
// size of the old one; the index would then give the old labels.
void check_packed(std::span<const ImageFile> files, const PackHeader& header) {
  const size_t probes = std::min<size_t>(64, files.size());
  const bool names = are_whole_numbers(header.classes);
  const ImageHome* last = nullptr;
  for (size_t i = 0; i < probes; ++i) {
    const size_t at = i * files.size() / probes;
    const ImageFile& file = files[at];
    const auto number = std::ranges::find(header.classes, *file.label) - header.classes.begin();
    const bool fits = fits_headers(file, names ? *file.label : std::to_string(number)) &&
                      (file.home == last || !has_other_images(files.subspan(at)));
    last = file.home;
    if (fits) continue;
    throw Error("DATA_DAMAGED_FILE",
                file.home->path + ": the tar is not the one of " + std::string(kPackIndex) +
                    " beside it: " + printable_start(file.name, 200) + " is another sample there",
                "copy the tar and the index again, or pack the data again; to read a tar that was changed, move the "
                "tars without the index to another folder");
  }
}

// `tars` are tars of one folder that has an index. `meant` says whether the job means a tar of this name, if it exists.
void list_indexed(std::span<const std::string> tars, const std::string& index,
                  const std::function<bool(const std::string&)>& meant, ImageTexts& texts, ImageListing& listing) {
  std::map<std::string, size_t> wanted;  // name of each tar, and its place in `tars`
  for (size_t i = 0; i < tars.size(); ++i) wanted.emplace(file_name(tars[i]), i);
  std::vector<std::vector<ImageFile>> files(tars.size());
  std::vector<ImageFile>* current = nullptr;
  const ImageHome* home = nullptr;
  PackHeader header;
  const PackIndexTaker taker{[&](const PackHeader& found) { header = found; },
                             [&](const PackShard& shard) {
                               const auto found = wanted.find(shard.name);
                               if (found == wanted.end()) {
                                 if (meant(shard.name))
                                   check_size_of((fs::path(index).parent_path() / shard.name).string(),
                                                 shard.bytes);  // it is missing
                                 return false;
                               }
                               check_size_of(tars[found->second], shard.bytes);
                               home = texts.home(tars[found->second], true);
                               current = &files[found->second];
                               wanted.erase(found);
                               return true;
                             },
                             [&](const PackSample& sample) {
                               current->push_back({.home = home,
                                                   .label = label_of(sample, header, index, texts),
                                                   .name = texts.name(sample.name),
                                                   .bytes = sample.bytes,
                                                   .offset = sample.offset,
                                                   .checksum = sample.checksum});
                             }};
  read_pack_index(index, taker);
  if (!wanted.empty())
    throw Error("DATA_BAD_SOURCE",
                tars[wanted.begin()->second] + " is not in " + std::string(kPackIndex) + " beside it",
                "move it to another folder; or remove the index, then all tars are read without it");
  const size_t before = listing.files.size();
  for (std::vector<ImageFile>& some : files) {
    listing.files.insert(listing.files.end(), some.begin(), some.end());
    some = {};
  }
  check_packed(std::span(listing.files).subspan(before), header);
  listing.class_names = std::move(header.classes);
}

}  // namespace

bool names_tars(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return is_tar_name(fs::path(path).filename().string());
  const auto holds_tars = [&](Split split) { return !folder_of_split(path, split).empty(); };
  return is_tar_folder(path) || holds_tars(Split::train) || holds_tars(Split::val) || holds_tars(Split::test);
}

std::set<Split> splits_of_tars(const std::string& folder) {
  std::set<Split> found;
  for (const Split split : {Split::train, Split::val, Split::test}) {
    if (!folder_of_split(folder, split).empty()) found.insert(split);
  }
  if (!found.empty()) return found;
  for (const Disk::Entry& entry : system_disk().list(folder)) {
    const std::optional<Split> split = is_tar_name(entry.name) ? split_in(entry.name) : std::nullopt;
    if (split) found.insert(*split);
  }
  return found;
}

SampleName sample_name(std::string_view member) {
  const size_t slash = member.rfind('/');
  const size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
  const size_t point = member.find('.', begin);
  if (point == std::string_view::npos || point == begin || point + 1 == member.size()) return {};
  return {member.substr(0, point), lower_case(std::string(member.substr(point + 1)))};
}

ImageListing list_webdataset(const std::string& path, std::optional<Split> split, ImageTexts& texts, bool labelled) {
  ImageListing listing;
  const std::vector<std::string> tars = tars_of(path, split, listing);
  std::error_code ignored;
  const bool folder_named = fs::is_directory(path, ignored), wildcards = is_file_pattern(path);
  std::set<std::optional<Split>> splits = {split};
  if (!split) {  // somebody may have copied the tars of one split
    for (const std::string& tar : tars) splits.insert(split_in(file_name(tar)));
    splits.erase(std::nullopt);
  }
  // A range in braces names its tars one by one, so none of them can be missing unnoticed.
  const auto meant = [&](const std::string& name) {
    if (folder_named) return splits.contains(split_in(name));
    return wildcards && fits_wildcards(name, file_name(path), {'*', '?'});
  };
  std::optional<bool> with_index;
  for (size_t begin = 0, end = 0; begin < tars.size(); begin = end) {
    const fs::path folder = fs::path(tars[begin]).parent_path();
    while (end < tars.size() && fs::path(tars[end]).parent_path() == folder) ++end;
    const std::span<const std::string> some = std::span(tars).subspan(begin, end - begin);
    const std::string index = (folder / kPackIndex).string();
    const bool indexed = system_disk().exists(index);
    if (with_index.value_or(indexed) != indexed)
      throw Error("DATA_BAD_SOURCE",
                  path + ": names packed tars beside tars without an index: their classes may differ",
                  "pack all of the data together");
    with_index = indexed;
    if (!indexed) {
      list_scanned(some, texts, labelled, listing);
      continue;
    }
    const std::vector<std::string> before = std::move(listing.class_names);
    list_indexed(some, index, meant, texts, listing);
    if (begin > 0 && before != listing.class_names)
      throw Error("DATA_BAD_SOURCE", path + ": names packs with different classes", "pack all of the data together");
  }
  if (listing.files.empty())
    refuse_no_images(path, listing,
                     listing.links > 0 ? "it holds links, which have no content: write it with tar --dereference "
                                         "--hard-dereference"
                                       : "a sample of a webdataset is 17.jpg and 17.cls");
  return listing;
}

}  // namespace sinew::data
