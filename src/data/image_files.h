// Private to data/, for image folders and image lists: finds the image files and their labels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/data.h"
#include "data/image_decode.h"

namespace sinew::data {

// One image on disk and its label. A dataset keeps millions of these in memory, so nothing is stored twice.
struct ImageFile {
  std::string path;    // opens the file
  size_t name_at = 0;  // where in `path` the name for users begins: relative to the folder, or as listed
  uint64_t bytes = 0;  // size when the file was listed
  std::string label;   // class name, or the number as written
  int64_t line = 0;    // line of the list; 0 for a folder
  std::string name() const { return path.substr(name_at); }
  std::string place() const { return line == 0 ? path : path + " (line " + std::to_string(line) + " of the list)"; }
  std::optional<double> label_number() const;  // nullopt: the label is not a finite number
};

struct ImageListing {
  std::vector<ImageFile> files;
  // The files beside the images. Hidden files do not count.
  int64_t left_out = 0;
  std::vector<std::string> first_left_out;  // the names of the first of them
  int64_t loose = 0;                        // images that are in no folder of a class, which are left out, too
  std::string first_loose;
  std::string left_out_text() const;  // one sentence, or "" if none is left out
};

// Lists the images in a fixed order: by class name, then by file name (bytes).
ImageListing list_image_folder(const std::string& folder);
// Keeps the order of the list.
std::vector<ImageFile> list_image_list(const std::string& path);
// Returns whether the text begins like a list of images: the second line, or the only one, begins with the name of one.
bool begins_image_list(std::string_view head);
// Returns the files of the folder that list images, sorted by name.
std::vector<std::string> image_lists_in(const std::string& folder);

// Appends the images anywhere below `root`/`folder`; their names are relative to `root`. `folder` may be "".
void collect_images(const std::string& root, const std::string& folder, const std::string& label,
                    ImageListing& listing);
// Throws the Error for a folder without an image. `listing` has the files that are there instead.
[[noreturn]] void refuse_no_images(const std::string& folder, const ImageListing& listing, const std::string& hint);

// Returns whether a name has the ending of an image format that decode_image() reads, in upper or lower case.
bool is_image_name(const std::string& name);

// Returns the class names in the order of their indices. A folder's classes are sorted by bytes, as torchvision's
// ImageFolder sorts them. If all labels of a list are whole numbers, they are sorted by value.
std::vector<std::string> class_names_of(const std::vector<ImageFile>& files);

// Returns the bytes of one file. Throws Error if the file cannot be read, whatever data.on_corrupt says: that option is
// only for files that do not decode.
std::vector<std::byte> read_image_file(const ImageFile& file);

}  // namespace sinew::data
