// Checks and obtains what a program needs from the machine: standard streams, open files, stack, threads, memory and
// /proc.
//
// Main programs call begin_program() first, so that a poor environment gives one sentence at the start and not a crash
// later. Other functions turn a limit that the program meets later into an Error that names the limit.
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

// Raises the soft limits of open files and of the stack to what the program needs, as far as the hard limits allow it.
// Throws UsageError if a limit is too low, or if /proc is not mounted, where the programs look for each other and for
// their children. Call it before the first thread starts.
void begin_program();

// Throws UsageError if the working directory of this process has been removed. Relative paths have no meaning then.
void check_working_directory();

// Throws UsageError if the limit of address space (ulimit -v) is too low for sinew-worker. A worker maps libtorch and
// would die of that limit before its first statement.
void check_address_space();

// Returns the memory of this machine in bytes, or that of the container if it is less; 0 if it is unknown.
uint64_t machine_memory();

// Raises the soft limit of open files to `files`, or to the hard limit if that is lower.
void allow_open_files(uint64_t files);

// Returns what to do if a call failed because open files, threads, processes or memory ran out: names the limit and its
// present value. `code` is the errno of the call.
std::string hint_of_limit(int code);

// If the exception means that memory, threads or open files ran out, returns an Error that names this resource. Returns
// nullopt for every other exception.
std::optional<Error> shortage_of(const std::exception& error);

}  // namespace sinew
