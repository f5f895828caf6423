#include "study/directory.h"

#include <sstream>

#include "study/page.h"
#include "study/text.h"

namespace sinew::study {
namespace {

std::string copy_path(const std::string& directory, size_t place) {
  return directory + "/earlier/" + std::to_string(place) + ".jsonl";
}

}  // namespace

std::string study_path(const std::string& directory) {
  return directory + "/study.jsonl";
}

spec::Job study_job(const StudyHead& head, const std::string& where, const spec::Environment& environment) {
  const spec::Reading reading = spec::read_job(head.job, where, head.overrides, environment);
  if (reading.problems.empty()) return reading.job;
  throw Error("the study's job file is not good any more: " + to_string(reading.problems[0]),
              "set the environment as it was when the study began");
}

void keep_earlier(Disk& disk, const std::string& directory, const spec::Job& job, const StudyHead& head) {
  const auto& studies = job.tune.warm_start;
  if (studies.empty()) return;
  for (const std::string& study : studies) {
    const StudyHead theirs = read_study_head(disk, study_path(study));
    if (theirs.aim.objectives == head.aim.objectives) continue;
    throw Error("tune.warm_start: " + study + " searched for the " + aim_text({theirs.aim.objectives, {}}) +
                    ", this study for the " + aim_text({head.aim.objectives, {}}),
                "leave it out, or set tune.monitor");
  }
  disk.make_directories(directory + "/earlier");
  for (size_t k = 0; k < studies.size(); ++k)
    write_durably(disk, copy_path(directory, k), read_text(disk, study_path(studies[k])));
}

std::vector<tune::EarlierStudy> earlier_studies(Disk& disk, const std::string& directory, const spec::Job& job,
                                                const tune::Space& space, const spec::Environment& environment) {
  std::vector<tune::EarlierStudy> all;
  for (size_t k = 0; k < job.tune.warm_start.size(); ++k) {
    const std::string path = copy_path(directory, k);
    const StudyHead head = read_study_head(disk, path);
    const spec::Job their_job = study_job(head, path, environment);
    const tune::Space their_space = space_of(their_job.tune);
    tune::Study then(study_options(head, their_space, their_job.tune.seed));
    for (StudyEvent& event : read_study(disk, path, their_space).events) {
      if (head.aim.constraints != job.tune.constraints)
        event.outcome.constraints.clear();  // they wanted something else
      apply(then, event);
    }
    all.push_back(tune::make_earlier_study(space, then, job.tune.warm_start[k]));
  }
  return all;
}

void show_study(const Options& options, const std::string& directory, const tune::Study& study, const StudyHead& head) {
  const std::string page = directory + "/report.html";
  if (options.output) {
    std::istringstream lines(study_summary(directory, study, head));
    for (std::string line; std::getline(lines, line);) options.output(line);
  }
  write_durably(options.disk, page, study_page(directory, study, head));
  if (options.output) options.output("as a page: " + page);
}

}  // namespace sinew::study
