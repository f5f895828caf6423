// Defines OpenStudy: a study as this leader read it from the directory when it joined.
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
