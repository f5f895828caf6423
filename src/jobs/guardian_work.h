// What the warden and the guardian do, each in a process of its own that never returns. Private to guardian.cpp.
#pragma once

#include "jobs/guardian.h"

namespace sinew::jobs {

// Between sinew and the guardian, one datagram each. From the guardian: W (its pid), S (a rank was started), F, D and C
// (errno of a program, a directory or a control group that could not be had), E (a rank's wait status), G (everything
// is gone). To it: T (a signal for all ranks), K (kill everything).
struct Word {
  char kind = 'G';
  int rank = 0;
  int value = 0;
};

[[noreturn]] void be_warden(const AttemptStart& start, int words, int line);

}  // namespace sinew::jobs
