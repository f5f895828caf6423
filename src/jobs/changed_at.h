// Reads the modification time of a file or directory, or of a link itself.
#pragma once

#include <sys/stat.h>

#include <string>

namespace sinew::jobs {

// Returns seconds since 1970, or 0 if the path does not exist.
inline double changed_at(const std::string& path) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) return 0;
  return static_cast<double>(facts.st_mtim.tv_sec) + 1e-9 * static_cast<double>(facts.st_mtim.tv_nsec);
}

}  // namespace sinew::jobs
