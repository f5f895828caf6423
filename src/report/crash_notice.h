// Inside report/: what a terminal shows if a signal such as SIGSEGV ends the process while it draws a live line.
// Without this, the shell's prompt would follow the line, and nothing would say what has happened.
#pragma once

#include <string>

namespace sinew::report {

// From now on, a signal of a crash ends the live line and prints a sentence that names the signal and how to resume the
// run. The signal then has its default effect, so the exit status does not change. A signal that has a handler already,
// of a sanitizer for example, keeps it.
void tell_crash(const std::string& run_directory);
void forget_crash();
// Says whether a live line is on the screen. leave_live_line() needs it.
void show_live_line(bool shown);

}  // namespace sinew::report
