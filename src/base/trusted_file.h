// Tells whether other users may have written a file that this process is about to believe, such as a list of tokens.
#pragma once

#include <sys/stat.h>

#include <string>

namespace sinew {

// Returns why a process of `user` must not believe the file or directory with these facts, or "" if it may: this user
// or root owns it, and no one else may write to it. A directory with the set-group-ID bit is shared with its group on
// purpose, so the group may write to it.
std::string why_untrusted(const struct stat& facts, uid_t user);

// Throws Error (FILE_UNTRUSTED) if the file or directory exists and why_untrusted() has a reason.
void check_trusted(const std::string& path);

}  // namespace sinew
