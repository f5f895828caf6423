// Implements `sinew eval`, which writes the metrics of a trained model on one split of the data, as text or JSON.
#include <algorithm>
#include <cstdio>

#include "base/disk.h"
#include "base/error.h"
#include "base/printable.h"
#include "report/report.h"
#include "sandbox/sandbox.h"
#include "train/train.h"
#include "worker/tasks.h"

namespace sinew::worker {
namespace {

constexpr int64_t kShownClasses = 20;

data::Split part_named(const std::string& name) {
  return name == "train" ? data::Split::train : name == "val" ? data::Split::val : data::Split::test;
}

std::string class_name(const train::Evaluation& result, int64_t index) {
  return report::name_of_class(result.class_names, static_cast<size_t>(index));
}

// `given` has the overrides with which the caller replaces data of the job.
report::EvaluationRecord record_of(const train::Trained& trained, const std::string& part,
                                   const std::vector<std::string>& given, const train::Evaluation& result) {
  return {.part = part,
          .weights = trained.weights,
          .step = trained.step,
          .data = given,
          .samples = result.samples,
          .skipped = result.skipped,
          .classes = result.classes,
          .metrics = result.metrics,
          .class_names = result.class_names,
          .confusion = result.confusion,
          .thresholds = result.thresholds,
          .threshold = result.threshold};
}

void print_classes(const train::Evaluation& result) {
  size_t label = 5;
  for (int64_t c = 0; c < result.classes; ++c)
    label = std::max(label, std::min<size_t>(class_name(result, c).size(), 16));
  std::printf("\n  %-*s  precision  recall      f1  support\n", static_cast<int>(label), "class");
  for (int64_t c = 0; c < result.classes; ++c) {
    const train::ClassQuality& one = result.by_class[static_cast<size_t>(c)];
    std::printf("  %-*s  %9.4f  %6.4f  %6.4f  %7lld\n", static_cast<int>(label),
                printable(class_name(result, c).substr(0, label)).c_str(), one.precision, one.recall, one.f1,
                static_cast<long long>(one.support));
  }
}

void print_confusion(const train::Evaluation& result) {
  size_t label = 5, width = 5;
  for (int64_t c = 0; c < result.classes; ++c)
    label = std::max(label, std::min<size_t>(class_name(result, c).size(), 16));
  for (const int64_t count : result.confusion) width = std::max(width, std::to_string(count).size());
  std::printf("\nconfusion (rows: truth; columns: predicted, in the same order)\n");
  for (int64_t truth = 0; truth < result.classes; ++truth) {
    std::printf("  %-*s", static_cast<int>(label), printable(class_name(result, truth).substr(0, label)).c_str());
    for (int64_t guess = 0; guess < result.classes; ++guess) {
      std::printf(" %*lld", static_cast<int>(width),
                  static_cast<long long>(result.confusion[static_cast<size_t>(truth * result.classes + guess)]));
    }
    std::printf("\n");
  }
}

void print_for_people(const train::Trained& trained, const std::string& part, const train::Evaluation& result) {
  std::printf("%s on %s: %lld samples\n", printable(trained.description).c_str(), part.c_str(),
              static_cast<long long>(result.samples));
  if (result.skipped > 0) {
    std::fprintf(stderr, "%lld samples cannot be decoded and are in no metric, one of them: %s\n",
                 static_cast<long long>(result.skipped), printable(result.skipped_names.front()).c_str());
  }
  if (result.threshold)
    std::printf("  threshold %.4g of '%s'\n", *result.threshold, printable(class_name(result, 1)).c_str());
  for (const auto& [name, value] : result.metrics) std::printf("  %-17s %.6g\n", printable(name).c_str(), value);
  if (result.confusion.empty() || result.classes > kShownClasses) return;
  print_classes(result);
  print_confusion(result);
}

// Writes the results into the run's directory, or warns. The run may be in an archive that this user cannot write to,
// and the results are still worth showing. A confined process writes through `outside`.
void keep_in_run(const std::string& path, const std::string& text, sandbox::OutsideFile* outside) {
  try {
    if (outside == nullptr) return write_durably(system_disk(), path, text);
    outside->write(text);
    outside->commit();
  } catch (const Error& error) {
    std::fprintf(stderr, "warning: the run does not keep these results: %s\n",
                 printable(to_string(error), true).c_str());
  }
}

}  // namespace

int run_eval(const task::Evaluate& task) {
  const std::string& part = task.split;
  const train::Trained trained = train::find_trained(task.model, system_disk());
  std::vector<std::string> overrides = task.overrides;
  // If the caller gives files for a split, the split takes no samples from the training data.
  for (const std::string name : {"val", "test"}) {
    const bool named = std::any_of(overrides.begin(), overrides.end(),
                                   [&](const std::string& word) { return word.starts_with("data." + name); });
    if (!named) continue;
    const bool replaces_fold = name == "val" && read_job_text(trained.job_yaml, trained.weights, {}).data.folds > 0;
    overrides.push_back(replaces_fold ? "data.split={}" : "data.split." + name + "=0");
  }
  if (!trained.remark.empty()) std::fprintf(stderr, "warning: %s\n", printable(trained.remark).c_str());
  const spec::Job job = read_job_text(trained.job_yaml, trained.weights + ": job", overrides);
  const std::string kept = trained.run_given ? trained.run_directory + "/eval-" + part + ".json" : "";
  const auto outside = confine(task.sandbox, kept, sandbox::OutsideFile::Kind::result);
  const train::Evaluation result = train::evaluate(trained, job, part_named(part), system_disk());
  for (const std::string& note : result.notes) std::fprintf(stderr, "%s\n", printable(note).c_str());
  const std::string text = report::evaluation_json(record_of(trained, part, task.overrides, result));
  if (!kept.empty()) keep_in_run(kept, text, outside.get());
  if (task.json) {
    std::fputs(text.c_str(), stdout);
  } else {
    print_for_people(trained, part, result);
  }
  flush_stdout();
  return 0;
}

}  // namespace sinew::worker
