#include "base/trusted_file.h"

#include <unistd.h>

#include "base/error.h"

namespace sinew {

std::string why_untrusted(const struct stat& facts, uid_t user) {
  if (facts.st_uid != user && facts.st_uid != 0)
    return "belongs to another user (number " + std::to_string(facts.st_uid) + ")";
  const bool is_shared = S_ISDIR(facts.st_mode) && (facts.st_mode & S_ISGID) != 0;
  if ((facts.st_mode & S_IWOTH) != 0 || ((facts.st_mode & S_IWGRP) != 0 && !is_shared))
    return "can be changed by other users";
  return "";
}

void check_trusted(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return;  // whoever opens it tells why
  const std::string why = why_untrusted(facts, ::geteuid());
  if (why.empty()) return;
  throw Error("FILE_UNTRUSTED", path + " " + why,
              "look at what is in it, then make it yours alone (chown, chmod go-w); or remove it");
}

}  // namespace sinew
