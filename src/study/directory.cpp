#include "study/directory.h"

#include <cstdio>
#include <sstream>

#include "rundir/rundir.h"
#include "study/page.h"
#include "study/record_file.h"
#include "study/search_space.h"
#include "study/text.h"

namespace sinew::study {
namespace {

std::string copy_path(const std::string& directory, size_t number) {
  return directory + "/earlier/" + std::to_string(number) + ".jsonl";
}

}  // namespace

std::string study_path(const std::string& directory) {
  return directory + "/study.jsonl";
}

std::string trial_directory(const std::string& directory, int64_t id) {
  char name[32];
  std::snprintf(name, sizeof name, "%05lld", static_cast<long long>(id));
  return directory + "/" + rundir::kTrials + "/" + name;
}

spec::Job study_job(const StudyHead& head, const std::string& where, const spec::Environment& environment) {
  const spec::Reading reading = spec::read_job(head.job, where, head.overrides, environment);
  if (reading.problems.empty()) return reading.job;
  throw Error("STUDY_JOB_INVALID", "the study's job is no longer valid: " + to_string(reading.problems[0]),
              "set the environment variables as they were when the study began");
}

void copy_earlier_studies(Disk& disk, const std::string& directory, const spec::Job& job, const StudyHead& head) {
  const auto& studies = job.tune.warm_start;
  if (studies.empty()) return;
  for (const std::string& study : studies) {
    const StudyHead earlier = read_study_head(disk, study_path(study));
    if (earlier.aim.objectives == head.aim.objectives) continue;
    throw Error("STUDY_OTHER_OBJECTIVES",
                "tune.warm_start: " + study + " has other objectives (" + aim_text({earlier.aim.objectives, {}}) +
                    ") than this study (" + aim_text({head.aim.objectives, {}}) + ")",
                "remove it from tune.warm_start, or set tune.monitor");
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
    const spec::Job earlier_job = study_job(head, path, environment);
    const tune::Space earlier_space = space_of(earlier_job.tune);
    tune::Study earlier(study_options(head, earlier_space, earlier_job.tune.seed));
    // If the earlier study had other constraints, its violations say nothing about the constraints of this study.
    const bool same_constraints = head.aim.constraints == job.tune.constraints;
    for (StudyEvent& event : read_study(disk, path, earlier_space).events) {
      if (!same_constraints) event.outcome.constraints.clear();
      apply(earlier, event);
    }
    all.push_back(tune::make_earlier_study(space, earlier, job.tune.warm_start[k]));
  }
  return all;
}

void output_lines(const Options& options, const std::string& text) {
  if (!options.output) return;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) options.output(line);
}

void show_study(const Options& options, const std::string& directory, const tune::Study& study, const StudyHead& head,
                const std::string& summary) {
  const std::string page = rundir::file_in(directory, rundir::kRunPageFile);
  write_durably(options.disk, page, study_page(summary, study, head));
  output_lines(options, summary + "the study as a page: " + page + "\n");
}

}  // namespace sinew::study
