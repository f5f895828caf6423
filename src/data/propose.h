// Inside propose_job: what a look at a path told. Private to the room.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/data.h"

namespace sinew::data {

// What one recogniser found: data options, and sentences for the person.
struct Sighting {
  spec::DataOptions data;
  std::vector<std::string> remarks;
};

// Each looks for one kind of data and answers nothing where it sees none. Files are read only as far as needed.
std::optional<Sighting> see_idx(const std::string& path);
std::optional<Sighting> see_cifar(const std::string& path);
std::optional<Sighting> see_image_folder(const std::string& path);
std::optional<Sighting> see_image_list(const std::string& path);
std::optional<Sighting> see_numpy(const std::string& path);
std::optional<Sighting> see_table(const std::string& path);
std::optional<Sighting> see_text(const std::string& path);

// The first bytes of a file, gunzipped where it is gzipped; short or empty for a short file.
std::string head_of(const std::string& path, size_t limit);

std::string lower_case(std::string text);

// "data/b.CSV.gz" ends in "csv".
std::string ending_of(const std::string& path);

}  // namespace sinew::data
