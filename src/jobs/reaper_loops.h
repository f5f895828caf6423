// The two reaper processes. Private to reapers.cpp.
#pragma once

#include "jobs/reapers.h"

namespace sinew::jobs {

// A datagram between sinew and the inner reaper.
// From the inner reaper: W its pid; S a rank was started; F, D and C: a program, directory or control group could not
// be used (errno); E a rank ended (wait status); G no process remains. To the inner reaper: T send this signal to
// all ranks; K kill all processes.
struct ReaperMessage {
  char kind = 'G';
  int rank = 0;
  int value = 0;
};

// Runs the outer reaper, which forks the inner one, and never returns. `socket` connects the inner reaper with sinew;
// `pipe` ends when sinew dies or does not need the outer reaper any more.
[[noreturn]] void run_outer_reaper(const AttemptStart& start, int socket, int pipe);

}  // namespace sinew::jobs
