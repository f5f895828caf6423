// Declares the loops that the two reaper processes run. Private to reapers.cpp.
#pragma once

#include "jobs/reapers.h"

namespace sinew::jobs {

// A datagram between sinew and the inner reaper.
//
// From the inner reaper: W gives its pid. S: a rank was started. F, D and C: a program, directory or control group
// could not be used; `value` is errno. E: a rank ended; `value` is its wait status. G: no process remains. The outer
// reaper sends F if it cannot fork the inner one.
//
// To the inner reaper: T sends the signal `value` to all ranks. K kills all processes.
struct ReaperMessage {
  char kind = 'G';
  int rank = 0;
  int value = 0;
};

// Runs the outer reaper, which forks the inner one. Never returns. `socket` connects the inner reaper with sinew.
// `pipe` ends when sinew dies or no longer needs the outer reaper.
[[noreturn]] void run_outer_reaper(const AttemptStart& start, int socket, int pipe);

}  // namespace sinew::jobs
