// Inside sandbox/: what a confined process may write, by Landlock.
#pragma once

#include <string>

namespace sinew::sandbox {

int landlock_version();  // 0: the kernel has no Landlock, or does not use it

// The rules for one process. restrict_self() gives them to the calling thread and the threads that it starts.
class WriteRules {
 public:
  WriteRules();  // nothing may be written; throws Error
  ~WriteRules();
  WriteRules(const WriteRules&) = delete;
  WriteRules& operator=(const WriteRules&) = delete;

  // Lets the process make, write and remove files below this directory, and move files between its folders. It cannot
  // make a folder there, so it can also move none there: that could contain symbolic links.
  void allow_files(const std::string& directory);
  // Lets the process do the same, and also make, remove and rename folders and make symbolic links.
  void allow_all(const std::string& directory);
  void allow_file(const std::string& path);  // lets the process write this file or device
  void restrict_self() const;

 private:
  void allow(const std::string& path, int flags, unsigned long long access);
  int rules_ = -1;
  unsigned long long known_ = 0;  // the kinds of access that this kernel can forbid
};

}  // namespace sinew::sandbox
