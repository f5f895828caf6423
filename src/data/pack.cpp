// Writes the images of a job into tars with an index.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <unordered_set>

#include "base/disk.h"
#include "base/error.h"
#include "base/lower_case.h"
#include "base/printable.h"
#include "base/size_text.h"
#include "data/formats.h"
#include "data/image_folder.h"
#include "data/in_order.h"
#include "data/pack_index.h"
#include "data/tar.h"
#include "data/webdataset.h"

namespace sinew::data {
namespace {

namespace fs = std::filesystem;

// Gives each image the name of its member. The name is that of the image, if it is one that WebDataset can read: no
// point before the ending, no part that leads out of the folder, and of no other image of the split.
class MemberNames {
 public:
  // Returns the name without the ending.
  std::string next(std::string_view name) {
    std::string key = plain(name);
    const std::string number = std::to_string(count_++);
    while (!used_.insert(digest_of(key).low).second) key += '-' + number;
    return key;
  }

 private:
  static std::string plain(std::string_view name) {
    const size_t point = name.rfind('.');
    if (point != std::string_view::npos && name.find('/', point) == std::string_view::npos)
      name = name.substr(0, point);
    std::string key;
    for (const fs::path& part : fs::path(name)) {
      const std::string word = part.string();
      if (word.empty() || word == "." || word == ".." || word == "/") continue;
      key += (key.empty() ? "" : "/") + word;
    }
    const size_t slash = key.rfind('/');
    std::replace(key.begin() + static_cast<std::ptrdiff_t>(slash == std::string::npos ? 0 : slash), key.end(), '.',
                 '_');
    for (char& c : key) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '_';  // the index has a name on each line
    }
    return key.empty() ? "_" : key;
  }

  std::unordered_set<uint64_t> used_;  // two names with equal digests only get numbers that they would not need
  uint64_t count_ = 0;
};

// The endings by which WebDataset finds its decoders.
std::string ending_of(std::string_view name) {
  std::string ending = lower_case(fs::path(name).extension().string());
  if (ending == ".jpe" || ending == ".jfif") return "jpg";
  if (ending == ".dib") return "bmp";
  return ending.empty() ? "jpg" : ending.substr(1);
}

// What is written of one image.
struct PackedImage {
  std::string bytes;
  uint64_t checksum = 0;
  std::string ending;
  bool left_encoded = false, rounded = false;
};

class ImagePacker {
 public:
  ImagePacker(const spec::DataOptions& options, const PackRequest& request, const ImageShape& shape)
      : skip_corrupt_(options.on_corrupt == "skip"), decode_(request.decode), shape_(shape) {}

  PackedImage pack(const ImageFile& file) const {
    std::vector<std::byte> buffer;
    const std::span<const std::byte> bytes = read_image_file(file, buffer);
    if (file.checksum != 0 && checksum_of(bytes) != file.checksum)
      throw Error(
          "DATA_CORRUPT_IMAGE", file.place() + ": the bytes are not those that were packed: their checksum is wrong",
          "copy the tar again, or pack the original images: damaged bytes are not packed as if they were right");
    PackedImage image;
    image.ending = ending_of(file.name);
    if (!decode_ || !take_pixels(file, bytes, image))
      image.bytes.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    image.checksum = checksum_of(std::as_bytes(std::span(image.bytes)));
    return image;
  }

 private:
  // Returns false if the image does not decode. Its bytes are kept then: a training that skips it must find it at its
  // place, or all later samples would have other numbers.
  bool take_pixels(const ImageFile& file, std::span<const std::byte> bytes, PackedImage& image) const {
    const std::string refused = refused_array(file, bytes);
    const Decoded<Pixels> pixels =
        refused.empty() ? decode_image(bytes, shape_.channels, shape_.stretch ? shape_.size : ImageSize{})
                        : Undecodable{refused};
    if (!pixels && !skip_corrupt_) fail_corrupt(file, pixels.error());
    image.left_encoded = !pixels;
    if (!pixels) return false;
    const bool scaled = ImageSize{pixels->height, pixels->width} != shape_.size;
    if (scaled && !shape_.stretch)
      throw Error("DATA_SHAPE_MISMATCH", file.path() + " has another size than the first training image",
                  "set data.image.size: [height, width], for example [224, 224]");
    std::vector<float> floats(static_cast<size_t>(shape_.count()));
    resize_to_floats(*pixels, shape_.size, floats);
    std::vector<uint8_t> planes(floats.size());
    for (size_t i = 0; i < floats.size(); ++i)
      planes[i] = static_cast<uint8_t>(std::lround(std::clamp(floats[i], 0.0f, 1.0f) * 255.0f));
    image.bytes = npy_of_planes(planes, shape_.channels, shape_.size);
    image.ending = "npy";
    image.rounded = scaled;
    return true;
  }

  const bool skip_corrupt_, decode_;
  const ImageShape shape_;
};

// Writes the tars of one split.
class ShardWriter {
 public:
  ShardWriter(std::string folder, Split split, int64_t most, PackIndexWriter& index)
      : folder_(std::move(folder)), split_(to_string(split)), most_(static_cast<uint64_t>(most)), index_(index) {}

  // `label` is that of the index, `text` that of the tar.
  void add(std::string_view name, const PackedImage& image, const std::string& label, const std::string& text) {
    const std::string key = names_.next(name), member = key + '.' + image.ending;
    std::string head = tar_header(member, image.bytes.size());
    std::string tail(tar_padding(image.bytes.size()));
    tail += tar_header(key + ".cls", text.size()) + text;
    tail += tar_padding(text.size());
    const uint64_t all = head.size() + image.bytes.size() + tail.size();
    if (file_ != nullptr && size_ + all + tar_end().size() > most_) close();
    if (file_ == nullptr) open();
    index_.sample({size_ + head.size(), image.bytes.size(), image.checksum, label, member});
    for (const std::string* part :
         {&static_cast<const std::string&>(head), &image.bytes, &static_cast<const std::string&>(tail)})
      file_->write(std::as_bytes(std::span(*part)));
    size_ += all;
  }
  void close() {
    if (file_ == nullptr) return;
    file_->write(std::as_bytes(std::span(tar_end())));
    file_->sync();
    file_->close();
    file_ = nullptr;
    size_ += tar_end().size();
    index_.end_shard({name_, size_, 0});
    bytes_ += static_cast<int64_t>(size_);
  }
  int64_t shards() const { return shards_; }
  int64_t bytes() const { return bytes_; }

 private:
  void open() {
    char number[32];
    std::snprintf(number, sizeof number, "-%06lld.tar", static_cast<long long>(shards_++));
    name_ = split_ + number;
    size_ = 0;
    file_ = system_disk().create_new((fs::path(folder_) / name_).string());
  }

  const std::string folder_, split_;
  const uint64_t most_;
  PackIndexWriter& index_;
  MemberNames names_;
  std::string name_;
  std::unique_ptr<Disk::File> file_;
  uint64_t size_ = 0;
  int64_t shards_ = 0, bytes_ = 0;
};

spec::DataOptions resolved_for_packing(const spec::DataOptions& options) {
  spec::DataOptions resolved = options;
  if (options.format == "auto") resolved.format = detect_format(options.train, options).format;
  const auto of_images = [&](const Format& format) {
    return format.name == resolved.format && format.open == open_images;
  };
  if (std::ranges::none_of(formats(), of_images))
    throw Error("DATA_BAD_OPTION",
                "data.format: " + resolved.format + " needs no packing: its files are read into memory once",
                "sinew data pack takes images: image_folder, image_list or webdataset");
  if (options.folds > 0)
    throw Error("DATA_BAD_OPTION",
                "data.split.folds divides the data anew for each training, but packed splits are fixed",
                "pack with data.split.val instead");
  return resolved;
}

// An estimate: names take some more.
uint64_t bytes_of_pack(const ListedImages& images, const ImageShape& shape, bool decode) {
  uint64_t bytes = 0;
  for (const ImageSplit& split : images.splits) {
    for (const ImageFile& file : split.files)
      bytes += 4 * kTarBlock + (decode ? static_cast<uint64_t>(shape.count()) : file.bytes);
  }
  return bytes;
}

void check_space(const std::string& folder, uint64_t needed) {
  std::error_code code;
  const fs::space_info space = fs::space(folder, code);
  if (code || space.available >= needed) return;
  throw DiskError("the pack takes about " + size_text(static_cast<int64_t>(needed)) + ", but the disk of " + folder +
                      " has " + size_text(static_cast<int64_t>(space.available)) + " free",
                  "name a folder on another disk", ENOSPC);
}

// The folder in which the pack is written. It gets its name when everything is durable.
class PackingFolder {
 public:
  explicit PackingFolder(std::string folder) : folder_(fs::path(std::move(folder)).lexically_normal().string()) {
    while (folder_.size() > 1 && folder_.ends_with('/')) folder_.pop_back();
    refuse_fixed_place();
    Disk& disk = system_disk();
    if (disk.exists(folder_) && !(fs::is_directory(folder_) && disk.list(folder_).empty()))
      throw Error("FILE_EXISTS", folder_ + " exists and is not an empty folder", "name a folder that does not exist");
    path_ = folder_ + ".packing";
    const std::string parent = fs::path(folder_).parent_path().string();
    parent_ = parent.empty() ? "." : parent;
    make_directories_durably(disk, parent_);
    try {
      disk.make_directory(path_);
    } catch (const DiskError& error) {
      if (error.system_code != EEXIST) throw;
      throw Error("FILE_EXISTS", path_ + " exists: another pack is writing it, or one was interrupted",
                  "remove it if no pack runs");
    }
  }
  ~PackingFolder() {
    if (done_) return;
    try {
      system_disk().remove_all(path_);
    } catch (const Error&) {  // the next pack names it
    }
  }
  PackingFolder(const PackingFolder&) = delete;
  PackingFolder& operator=(const PackingFolder&) = delete;

  const std::string& path() const { return path_; }
  const std::string& parent() const { return parent_; }
  void finish() {
    system_disk().sync_directory(path_);
    done_ = true;  // all of it is written: it is never removed again
    try {
      system_disk().rename(path_, folder_);
    } catch (const DiskError& error) {
      throw DiskError("the pack is complete in " + path_ + ", but cannot be renamed: " + error.what(),
                      "rename it yourself: mv " + shell_quoted(path_) + " " + shell_quoted(folder_), error.system_code);
    }
    system_disk().sync_directory(parent_);
  }

 private:
  // The pack gets its name by a rename at the end. Refuses a name that no rename can give, before hours of work.
  void refuse_fixed_place() const {
    const std::string name = fs::path(folder_).filename().string();
    const auto refuse = [&](const std::string& why) {
      throw Error("DATA_BAD_OPTION", (folder_.empty() ? "\"\"" : folder_) + ": " + why,
                  "name a folder that does not exist, in a folder of the disk");
    };
    if (name.empty() || name == "." || name == "..") refuse("names no folder that can be made");
    struct stat own {
    }, above{};
    if (::lstat(folder_.c_str(), &own) != 0) return;
    if (S_ISLNK(own.st_mode)) refuse("is a symbolic link");
    const fs::path parent = fs::path(folder_).parent_path();
    if (::stat(parent.empty() ? "." : parent.c_str(), &above) == 0 && above.st_dev != own.st_dev)
      refuse("is the mount point of a disk");
  }

  std::string folder_, path_, parent_;
  bool done_ = false;
};

}  // namespace

PackResult pack_images(const spec::DataOptions& options, uint64_t seed, const PackRequest& request) {
  const spec::DataOptions resolved = resolved_for_packing(options);
  PackingFolder folder(request.folder);
  ListedImages images = list_images(resolved, seed);
  const bool classes = images.info.task == Task::classification;
  ImageShape shape;
  if (request.decode) shape = shape_of(resolved, images.splits[0].files, images.info.reasons);
  check_space(folder.parent(), bytes_of_pack(images, shape, request.decode));

  const auto file = system_disk().create_new((fs::path(folder.path()) / kPackIndex).string());
  PackIndexWriter index(*file, {images.info.class_names});
  const bool names = are_whole_numbers(images.info.class_names);
  const ImagePacker packer(resolved, request, shape);
  PackResult result;
  DigestStream source;
  int64_t done = 0;
  const int64_t all = images.info.train_size + images.info.val_size + images.info.test_size;
  for (const Split split : {Split::train, Split::val, Split::test}) {
    const ImageSplit& of = images.splits[static_cast<size_t>(split)];
    if (of.files.empty()) continue;
    ShardWriter writer(folder.path(), split, request.shard_bytes, index);
    const auto count = static_cast<int64_t>(of.files.size());
    in_order<PackedImage>(
        count, std::max<int64_t>(1, request.threads),
        [&](int64_t i) { return packer.pack(of.files[static_cast<size_t>(i)]); },
        [&](int64_t i, const PackedImage& image) {
          const ImageFile& from = of.files[static_cast<size_t>(i)];
          const std::string label = classes ? std::to_string(of.classes[static_cast<size_t>(i)]) : *from.label;
          writer.add(from.name, image, label, names ? *from.label : label);
          const std::string line = std::string(from.name) + '\t' + label + '\t' + std::to_string(image.checksum) + '\n';
          source.update(std::as_bytes(std::span(line)));
          result.left_encoded += image.left_encoded ? 1 : 0;
          result.rounded = result.rounded || image.rounded;
          if (request.progress) request.progress(++done, all);
        });
    writer.close();
    result.splits.push_back({to_string(split), count, writer.shards(), writer.bytes()});
  }
  index.end(source.digest());
  file->sync();
  file->close();
  folder.finish();
  result.info = std::move(images.info);
  return result;
}

}  // namespace sinew::data
