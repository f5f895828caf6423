// Names in a checkpoint root: which are steps, which are somebody's unfinished work, and whose.
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
std::optional<Step> parse_step_name(std::string_view name);  // only what step_name gives

bool part_name_ok(std::string_view part);
bool listed_name_ok(std::string_view file);  // may stand in a manifest: state.json or <part>.safetensors
// The part of "model.safetensors"; empty for other files.
std::string_view part_of(std::string_view file);

std::string join(const std::string& directory, std::string_view name);
std::string last_part(const std::string& path);  // of a path, without trailing slashes

// A hidden name that is this call's alone while the object lives; after that, or when the process is dead, whoever
// saves next may remove what stands under it.
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

// Is this a HiddenName of a process that died, or of a call of this process that is over?
bool left_behind(const std::string& name);

}  // namespace sinew::checkpoint
