#include "base/file_pattern.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/wildcards.h"

namespace sinew {
namespace {

namespace fs = std::filesystem;

}  // namespace

bool is_file_pattern(const std::string& path) {
  std::error_code ignored;
  return path.find_first_of("*?") != std::string::npos && !fs::exists(path, ignored);
}

std::vector<std::string> files_of_pattern(const std::string& path) {
  const fs::path whole(path);
  const std::string pattern = whole.filename().string();
  const bool here = !whole.has_parent_path();
  std::vector<std::string> files;
  std::error_code code;
  for (fs::directory_iterator it(here ? fs::path(".") : whole.parent_path(), code), end; !code && it != end;
       it.increment(code)) {
    const std::string name = it->path().filename().string();
    std::error_code ignored;
    if (name.starts_with('.') != pattern.starts_with('.') || !fits_wildcards(name, pattern, {'*', '?'})) continue;
    if (it->is_regular_file(ignored)) files.push_back(here ? name : (whole.parent_path() / name).string());
  }
  if (code)
    throw Error("DATA_FILE_UNREADABLE", "cannot list the folder of " + path + ": " + code.message(),
                "check the path: it is relative to the directory in which the command runs");
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace sinew
