// Describes a process as the holder of a lease, and tells whether the process that holds a lease has certainly ended.
//
// server/ and registry/ use it to take over the lease of a dead process of the same machine at once, without waiting
// until the lease expires.
#pragma once

#include <string>

namespace sinew {

// Returns a JSON object that identifies this process among all processes of all machines and containers: "host",
// "numbers" (the PID namespace), "pid" and "began" (when the kernel started the process). Adds "url", the address at
// which the process can be reached, unless it is empty.
std::string lease_holder(const std::string& url = "");

// Returns whether the process that `holder` describes has certainly ended. Returns false if that cannot be checked: the
// process is on another machine or in another container, /proc hides it, or the text has another format, such as
// "host:pid" of earlier versions.
bool has_surely_ended(const std::string& holder);

// Returns the holder as a message names it: "process 4711 on host at URL". Returns a text of another format as it is.
std::string describe_holder(const std::string& holder);

}  // namespace sinew
