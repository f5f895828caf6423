// What a program needs of the machine around it: standard streams, open files, stack, threads, memory and /proc.
//
// Main programs call begin_program() first, so that a poor environment gives one sentence at the start and not a crash
// later. The other functions turn a limit that is met later into an Error that names the limit.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "base/error.h"

namespace sinew {

// Opens /dev/null in place of each standard stream that the parent process has closed. Otherwise the next file that
// this process opens would get the number of a standard stream, and messages would be written into that file.
void open_standard_streams();

// Raises the soft limits of open files and of the stack to what the program needs, as
// far as the hard limits allow it. Throws UsageError if a limit is too low, or if /proc is not mounted: the programs
// find each other and their children there. Call it before the first thread starts.
void begin_program();

// Throws UsageError if the working directory of this process has been removed. Relative paths have no meaning then.
void check_working_directory();

// Throws UsageError if the limit of address space (ulimit -v) is too low for sinew-worker, which maps libtorch and
// would end before its first statement.
void check_address_space();

// Raises the soft limit of open files to `files`, or to the hard limit if that is lower.
void allow_open_files(uint64_t files);

// Returns what to do about a call that failed for want of open files, threads, processes or memory: it names the limit
// and its present value. `code` is an errno.
std::string hint_of_limit(int code);

// Returns the Error that tells the user which resource was used up, if that is what the exception means: no memory, no
// thread, no open file. Returns nullopt for every other exception.
std::optional<Error> shortage_of(const std::exception& error);

}  // namespace sinew
