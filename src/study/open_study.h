// A study as its directory had it when this leader joined.
#pragma once

#include <string>
#include <vector>

#include "spec/spec.h"
#include "study/event.h"

namespace sinew::study {

struct OpenStudy {
  std::string directory;
  spec::Job job;
  StudyHead head;
  std::vector<StudyEvent> events;
};

}  // namespace sinew::study
