#include "study/event.h"

#include "base/error.h"

namespace sinew::study {

using Kind = StudyEvent::Kind;

bool starts_process(const StudyEvent& event) {
  return event.kind == Kind::start || event.kind == Kind::resume || event.kind == Kind::take ||
         event.kind == Kind::retry;
}

namespace {

void apply_start(tune::Study& study, const StudyEvent& event) {
  const std::string trial = "trial " + std::to_string(event.id);
  const std::string hint = "restore study.jsonl from a copy, or cut the file off before this event";
  if (study.next_id() != event.id)
    throw Error("STUDY_BAD_RECORD",
                trial + " starts out of order: the next trial is " + std::to_string(study.next_id()), hint);
  if (const auto from = event.suggestion.from; from && (*from < 0 || *from >= event.id))
    throw Error("STUDY_BAD_RECORD",
                trial + " starts from the state of trial " + std::to_string(*from) + ", which is no earlier trial",
                hint);
  study.start(event.suggestion);
}

}  // namespace

void apply(tune::Study& study, const StudyEvent& event) {
  switch (event.kind) {
    case Kind::start: return apply_start(study, event);
    case Kind::report: return study.report(event.id, event.step, event.value);
    case Kind::pause: return study.pause(event.id, event.estimate);
    case Kind::resume: return study.resume(event.id);
    case Kind::end: return study.tell(event.id, event.state, event.outcome.values, event.outcome.constraints);
    case Kind::extend: return study.extend(event.trials);
    case Kind::retry: return study.retry(event.id);
    case Kind::take:
    case Kind::leave: return;
  }
}

int64_t planned_trials(const StudyHead& head, const std::vector<StudyEvent>& events) {
  int64_t trials = head.trials;
  for (const StudyEvent& event : events) trials = event.kind == Kind::extend ? event.trials : trials;
  return trials;
}

tune::StudyOptions study_options(const StudyHead& head, const tune::Space& space, uint64_t seed) {
  std::vector<tune::Direction> directions;
  for (const auto& objective : head.aim.objectives)
    directions.push_back(objective.minimize ? tune::Direction::minimize : tune::Direction::maximize);
  return {space, std::move(directions), seed, head.trials, {}};
}

}  // namespace sinew::study
