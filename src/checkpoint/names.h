// Private to checkpoint/: makes and reads the names in a checkpoint root. A name tells whether it belongs to a step or
// to unfinished work, and to which process the unfinished work belongs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace sinew::checkpoint {

inline constexpr std::string_view kManifest = "manifest.json";
inline constexpr std::string_view kStateFile = "state.json";
inline constexpr std::string_view kTensorSuffix = ".safetensors";

std::string step_name(Step step);                            // step-00001000
std::optional<Step> parse_step_name(std::string_view name);  // accepts exactly the names that step_name makes

bool is_part_name(std::string_view part);
bool is_listed_name(std::string_view file);  // true if a manifest may list this file: state.json or <part>.safetensors
// Returns "model" for "model.safetensors"; returns "" for other files.
std::string_view part_of(std::string_view file);

std::string join(const std::string& directory, std::string_view name);
std::string base_name(const std::string& path);  // the last component of a path, without trailing slashes

// A hidden name for one call of save or delete, valid while this object lives. After that, or after the death of the
// process, the next save may remove the directory of that name.
class HiddenName {
 public:
  enum class Use { saving, removed };
  HiddenName(Use use, Step step);
  HiddenName(const HiddenName&) = delete;
  HiddenName& operator=(const HiddenName&) = delete;
  ~HiddenName();
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

// Returns whether the name belongs to a dead process, or to a finished call of this process.
bool is_leftover(const std::string& name);

}  // namespace sinew::checkpoint
