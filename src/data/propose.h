// Private to data/: declares the detectors of propose_job, one for each kind of data.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/data.h"

namespace sinew::data {

// What a detector found: data options, and remarks for the user.
struct Detection {
  spec::DataOptions data;
  std::vector<std::string> remarks;
};

// Each detector recognises one kind of data and returns nullopt for any other.
std::optional<Detection> detect_idx(const std::string& path);
std::optional<Detection> detect_cifar(const std::string& path);
std::optional<Detection> detect_image_folder(const std::string& path);
std::optional<Detection> detect_image_list(const std::string& path);
std::optional<Detection> detect_webdataset(const std::string& path);
std::optional<Detection> detect_numpy(const std::string& path);
std::optional<Detection> detect_table(const std::string& path);  // without data.columns
std::optional<Detection> detect_text_folder(const std::string& path);
std::optional<Detection> detect_text(const std::string& path);

// Returns the first of the folders with these names below `root` that fits, or "".
std::string first_folder(const std::string& root, std::span<const std::string_view> names,
                         bool (*fits)(const std::string& folder));

// Chooses the column to predict. Throws Error if it is not clear which one that is.
void choose_target(Detection& table, const Wanted& wanted);

}  // namespace sinew::data
