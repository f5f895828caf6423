// The seccomp filter of a confined process: a list of the system calls that training needs. Every other call fails
// with EPERM.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <vector>

namespace sinew::sandbox {

// Returns the filter for the process `self`. With `links`, it may use TCP sockets, and the listener of the filter is
// asked about each connect, bind and listen. Pure.
std::vector<sock_filter> filter_for(pid_t self, bool links);

// Returns whether the kernel has such filters for this processor.
bool has_filters();

// Installs the filter for this process and all threads that it starts later. Returns the listener's descriptor, or -1
// without `links`. Throws Error if the kernel refuses the filter.
int install(const std::vector<sock_filter>& filter, bool links);

}  // namespace sinew::sandbox
