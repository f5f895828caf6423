// `study_page_sample KIND OUT.html` writes the page of a made-up study, for page_test.py.
//
// KIND is plain (one objective, 40 trials), hostile (like plain, with markup in every text of the study), several (two
// objectives and a constraint) or empty (no trial yet).
#include <cmath>
#include <cstdio>
#include <string>

#include "base/disk.h"
#include "study/page.h"
#include "study/text.h"

namespace sinew::study {
namespace {

// If a browser runs one of these two texts, it sets an attribute of the document, and the test detects this.
constexpr const char* kScript = "<script>document.documentElement.dataset.injected='yes'</script>";
constexpr const char* kImage = "<img src=x onerror=\"document.documentElement.dataset.injected='yes'\">";

std::string space_json(bool hostile) {
  const std::string name = hostile ? R"(</script>)" + std::string(kScript) : "optimizer.name";
  const std::string choice = hostile ? R"(<b>&amp;"' --> {{script}})" : "sgd";
  std::string quoted;
  for (const char c : choice) quoted += c == '"' ? "\\\"" : std::string(1, c);
  return R"([{"name":"optimizer.lr","type":"float","low":1e-5,"high":1,"log":true},{"name":")" + name +
         R"(","type":"cat","choices":[")" + quoted + R"(","adam"]},
    {"name":"optimizer.momentum","type":"float","low":0,"high":1,"if":{")" +
         name + R"(":["adam"]}}])";
}

StudyHead head_of(const std::string& kind) {
  StudyHead head;
  const bool hostile = kind == "hostile";
  head.aim.objectives = {{hostile ? kImage : "val/loss", true}};
  if (kind == "several") {
    head.aim.objectives.push_back({"val/accuracy", false});
    head.aim.constraints = {{"model/size", false, 3}};
  }
  head.sampler = hostile ? kScript : "tpe";
  head.pruner = "asha";
  head.trials = 50;
  head.max_resource = 9;
  return head;
}

void add_trial(tune::Study& study, int64_t number, bool hostile) {
  const double lr = std::pow(10.0, -static_cast<double>(number % 5)), kind = static_cast<double>(number % 2);
  const double loss = std::abs(std::log10(lr) + 2) + 0.5 * kind + 0.01 * static_cast<double>(number % 7);
  const int64_t id = study.start(
      {{lr, kind, kind > 0 ? 0.5 : tune::kInactive}, hostile ? kImage : "tpe", hostile ? kScript : "explores", {}});
  for (int step = 1; step <= 4; ++step) study.report(id, step, number == 6 ? std::nan("") : loss + 1.0 / step);
  std::vector<double> values = {loss}, constraints;
  if (study.objectives() > 1) {
    values.push_back(1 / (1 + lr));
    constraints = {number % 4 == 0 ? 1.5 : -1.0};
  }
  if (number == 7)
    study.tell(id, tune::TrialState::failed);
  else if (number == 8)
    study.tell(id, tune::TrialState::pruned);
  else if (number == 9)
    study.pause(id);
  else if (number != 10)
    study.tell(id, tune::TrialState::complete, values, constraints);
}

int write_page(const std::string& kind, const std::string& path) {
  const StudyHead head = head_of(kind);
  tune::Study study(study_options(head, tune::read_space(space_json(kind == "hostile")), 7));
  if (kind != "empty") {
    for (int64_t number = 0; number < 40; ++number) add_trial(study, number, kind == "hostile");
  }
  write_durably(system_disk(), path, study_page(study_summary("runs/sample", study, head), study, head));
  return 0;
}

}  // namespace
}  // namespace sinew::study

int main(int argc, char** argv) {
  if (argc == 3) return sinew::study::write_page(argv[1], argv[2]);
  std::fputs("usage: study_page_sample KIND OUT.html\n", stderr);
  return 2;
}
