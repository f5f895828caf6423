// Private to data/, for image folders, image lists and tars: finds the image files and their labels.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/data.h"
#include "data/image_decode.h"
#include "data/range_reader.h"

namespace sinew::data {

// Where images lie: a folder, the folder of a list, or a tar.
struct ImageHome {
  std::string path;
  const RangeReader* tar = nullptr;  // reads the tar; null: each image is a file
};

// The texts that images share. A data set keeps millions of images in memory, so each text is there once.
class ImageTexts {
 public:
  // What these functions return stays where it is as long as this object lives.
  const ImageHome* home(const std::string& path, bool tar);
  const std::string* label(std::string_view text);  // equal texts give one string
  std::string_view name(std::string_view text);

 private:
  RangeReader reader_;
  std::deque<ImageHome> homes_;
  std::set<std::string, std::less<>> labels_;
  std::deque<std::string> names_;  // many names in each
};

// One image and its label: 64 bytes. The texts belong to an ImageTexts.
struct ImageFile {
  const ImageHome* home = nullptr;
  const std::string* label = nullptr;          // class name, or the number as written
  std::string_view name;                       // for users: relative to the folder, as listed, or within the tar
  uint64_t bytes = 0;                          // size when the file was listed
  uint64_t offset = 0;                         // in a tar: where its bytes begin
  uint64_t checksum = 0;                       // checksum_of() its bytes; 0: not known
  int64_t line = 0;                            // line of the list; 0 for a folder and a tar
  std::string path() const;                    // names the file: "data/cat/1.jpg", "data/train-000000.tar:cat/1.jpg"
  std::string place() const;                   // the path, and the line of the list
  std::optional<double> label_number() const;  // nullopt: the label is not a finite number
};
// Returns the low half of the XXH3 digest; never 0.
uint64_t checksum_of(std::span<const std::byte> bytes);

struct ImageListing {
  std::vector<ImageFile> files;
  // The files beside the images. Hidden files do not count.
  int64_t left_out = 0;
  std::vector<std::string> first_left_out;  // the names of the first of them
  int64_t loose = 0;                        // images that are in no folder of a class, which are left out, too
  std::string first_loose;
  std::vector<std::string> unread_tars;  // tars of the folder whose names say no split, while those of others do
  int64_t links = 0;                     // links in tars, which are left out, too
  std::string first_link;
  bool hard_links = false;               // one of them is a hard link
  std::vector<std::string> class_names;  // all classes in their order, if the files say it; else class_names_of()
  void leave_out(const std::string& name);
  // Adds the files that `part` of the data leaves out. Their names get `before_names`.
  void leave_out_as(const ImageListing& part, const std::string& before_names);
  std::string left_out_text() const;  // one sentence, or "" if none is left out
};

// Lists the images in a fixed order: by class name, then by file name (bytes).
ImageListing list_image_folder(const std::string& folder, ImageTexts& texts);
// Keeps the order of the list.
std::vector<ImageFile> list_image_list(const std::string& path, ImageTexts& texts);
// Returns whether the text begins like a list of images: the second line, or the only one, begins with the name of one.
bool begins_image_list(std::string_view head);
// Returns the files of the folder that list images, sorted by name.
std::vector<std::string> image_lists_in(const std::string& folder);

// Appends the images anywhere below `root`/`folder`; their names are relative to `root`. `folder` may be "".
void collect_images(const std::string& root, const std::string& folder, const std::string& label, ImageListing& listing,
                    ImageTexts& texts);
// Throws the Error for a folder without an image. `listing` has the files that are there instead.
[[noreturn]] void refuse_no_images(const std::string& folder, const ImageListing& listing, const std::string& hint);

// Returns whether a name has the ending of an image format that decode_image() reads, in upper or lower case.
bool is_image_name(const std::string& name);

// Returns the class names in the order of their indices. A folder's classes are sorted by bytes, as torchvision's
// ImageFolder sorts them. If all labels of a list or of tars are whole numbers, they are sorted by value.
std::vector<std::string> class_names_of(const std::vector<ImageFile>& files);

// Returns whether each name is a whole number. Tars then hold the names of the classes, not their numbers: a reader
// could not tell which of the two a label is.
bool are_whole_numbers(const std::vector<std::string>& names);

// Refuses class names that are not UTF-8. Otherwise writing them to model.json would fail after the training.
void check_label(std::string_view label, const std::string& where);

// Returns the reason if the file is an array that is no sample: arrays are images only in tars, and a file of an
// image_folder that is none must stay corrupt for data.on_corrupt: skip.
std::string refused_array(const ImageFile& file, std::span<const std::byte> bytes);

// Returns the bytes of one image; they may be in `buffer`. Throws Error if they cannot be read, whatever
// data.on_corrupt says: that option is only for files that do not decode. Does not look at the checksum.
std::span<const std::byte> read_image_file(const ImageFile& file, std::vector<std::byte>& buffer);

}  // namespace sinew::data
