// Inside image folders and lists: which files there are and what they are called. Private to the room.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/data.h"
#include "data/image_decode.h"

namespace sinew::data {

// One image on disk and its target. Millions are kept in memory, so nothing is stored twice.
struct ImageFile {
  std::string path;    // to open it
  size_t name_at = 0;  // where in path begins what people call it: relative to the folder, or as the list has it
  uint64_t bytes = 0;  // size when it was listed
  std::string label;   // class name, or the number as written
  int64_t line = 0;    // of the list; 0 for a folder
  std::string name() const { return path.substr(name_at); }
  std::string place() const { return line == 0 ? path : path + " (line " + std::to_string(line) + " of the list)"; }
};

// Files in a fixed order: folders sort by class name and then by file name (bytes), lists keep their order.
std::vector<ImageFile> list_image_folder(const std::string& folder);
std::vector<ImageFile> list_image_list(const std::string& path);

// Names with jpg, jpeg or png at the end, in any case.
bool is_image_name(const std::string& name);

// Class names in the order of their indices: by bytes for folders (as torchvision's ImageFolder), by number for a list
// whose labels are all whole numbers.
std::vector<std::string> class_names_of(const std::vector<ImageFile>& files);

// The bytes of one file. Throws Error when it cannot be read: that is never the same as a file that does not decode.
std::vector<std::byte> read_image_file(const ImageFile& file);

}  // namespace sinew::data
