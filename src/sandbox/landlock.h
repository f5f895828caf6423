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

  // Files below this directory may be made, written, removed and moved between its folders, and folders made.
  void allow_files(const std::string& directory);
  // Also folders may be removed and renamed, and symbolic links made.
  void allow_all(const std::string& directory);
  void allow_file(const std::string& path);  // this file, or device, may be written
  void restrict_self() const;

 private:
  void allow(const std::string& path, int flags, unsigned long long access);
  int rules_ = -1;
  unsigned long long known_ = 0;  // the kinds of access that this kernel can forbid
};

}  // namespace sinew::sandbox
