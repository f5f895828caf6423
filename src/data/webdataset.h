// Private to data/: reads image data sets in tars, in the layout of WebDataset. The files of one sample have the same
// name up to the first point, and follow each other: cats/17.jpg, cats/17.cls.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "data/image_files.h"

namespace sinew::data {

// Returns whether the path is a tar, a pattern of tars, or a folder of tars, or of folders train, val and test of tars.
bool names_tars(const std::string& path);

// The splits that a folder of tars, for which names_tars() is true, has by the names of its tars or folders. Empty if
// the names say nothing.
std::set<Split> splits_of_tars(const std::string& folder);

// Lists the samples in the order of the tars. A folder may hold the tars of several splits: the names of the tars, or
// of the folders within it, then say which tars belong to `split`; without a split, all tars of the folder are read. If
// the tars have an index (data/pack_index.h), it is used instead of reading their headers. If `labelled` is false,
// samples need no label.
ImageListing list_webdataset(const std::string& path, std::optional<Split> split, ImageTexts& texts,
                             bool labelled = true);

// Divides the name of a member into the name of its sample and its ending in lower case: "a.b/17" and "seg.png" of
// "a.b/17.Seg.png". Both are empty if the name has no such parts.
struct SampleName {
  std::string_view sample;
  std::string ending;
};
SampleName sample_name(std::string_view member);

}  // namespace sinew::data
