// The checks of `sinew check`, ordered so that a cause comes before its consequences.
#include "train/sanity.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace sinew::train {
namespace {

constexpr const char* kNoTime = "there was no time left";

using namespace sanity;

constexpr int64_t kMaxSamples = 100'000;  // most samples of each split that are examined
constexpr double kScanSeconds = 4;        // longest time for train and for val; only slow data sources reach it
constexpr double kTestSeconds = 2;        // the same for test

void skip_loss_only(Subject&, SanityFinding& finding) {
  finding.verdict = Verdict::skip;
  finding.what = "the model returns only its loss, so there are no predictions to check";
}

struct Entry {
  const char* name;
  Check run, run_loss_only;  // run_loss_only: for a model that returns only its loss
  bool trains;               // true: the check trains, so it is skipped once the data is known to be broken
  const char* help;
};

const Entry kChecks[] = {
    {"data", check_data, check_data, false, "inputs and targets are finite, in range, and not all equal"},
    {"classes", check_classes, skip_loss_only, false,
     "every validation class also occurs in training; no class outweighs all others"},
    {"duplicates", check_duplicates, check_duplicates, false, "validation and test samples are not training samples"},
    {"leak", check_leak, check_leak, true,
     "no column of a table alone predicts the target, and none is a counter that sorts it"},
    {"dates", check_dates, check_dates, true, "val and test are not older than train, nor mixed with it in time"},
    {"drift", check_drift, check_drift, true, "the files of val and test hold samples like those of train"},
    {"labels", check_labels, skip_loss_only, true, "inputs predict labels, in the same way in train, val and test"},
    {"outputs", check_outputs, skip_loss_only, true, "the outputs and the targets fit the loss"},
    {"initial_loss", check_initial_loss, skip_loss_only, true,
     "the untrained model has the loss of a model that knows nothing"},
    {"function", check_function, check_loss_only_function, true,
     "the output depends on the input, and not only linearly unless intended"},
    {"batch_leak", check_batch_leak, check_loss_only_batch, true,
     "a sample's output does not depend on other samples or on later tokens"},
    {"eval_mode", check_eval_mode, check_loss_only_eval_mode, true,
     "in evaluation mode the same input gives the same output"},
    {"frozen", check_frozen, check_frozen, true, "no layer is frozen at random values"},
    {"gradients", check_gradients, check_gradients, true,
     "every parameter has a gradient; none is dead, vanishing or exploding"},
    {"one_batch", check_one_batch, check_loss_only_one_batch, true,
     "the model and its optimizer can overfit one small batch"},
    {"first_steps", check_first_steps, check_first_steps, true, "the job's own schedule does not increase the loss"},
    {"learning_rate", check_learning_rate, skip_loss_only, true, "a smaller learning rate does not fit much better"},
    {"collapse", check_collapse, skip_loss_only, true, "the trained model names every class"},
    {"repeatable", check_repeatable, check_repeatable, true,
     "the same steps give the same bits twice and on other numbers of lanes"},
};

Subject subject_of(const SanityOptions& options, Clock& clock) {
  const data::DataInfo& info = options.dataset->info();
  Resolved resolved = resolve(options.job, info, this_machine());
  if (!options.make_model) fit_to_memory(resolved, options.job, *options.dataset);
  resolved.job.cluster.audit = 0;  // the check `repeatable` computes whole steps twice, and says more
  const spec::Job& job = resolved.job;
  loop::lengths_of(job, info.train_size, info.tokens_per_sample);  // throws if the job has no step
  auto make = options.make_model;
  if (!make)
    make = [job, info] {
      return model::make_model(job.model, info, outputs_for(job.loss.name, info), job.trainer.seed);
    };
  Subject subject{job,
                  *options.dataset,
                  std::move(make),
                  clock,
                  clock.monotonic_seconds() + options.seconds,
                  Loss(job, info),
                  {},
                  {},
                  {},
                  {},
                  {},
                  {},
                  {},
                  {}};
  subject.train = scan_data(subject.data, data::Split::train, kMaxSamples, subject.until(kScanSeconds), clock);
  subject.val = scan_data(subject.data, data::Split::val, kMaxSamples, subject.until(kScanSeconds), clock);
  subject.test = scan_data(subject.data, data::Split::test, kMaxSamples, subject.until(kTestSeconds), clock);
  subject.reads_indices = uses_indices(subject);
  return subject;
}

SanityFinding run_one(const Entry& entry, Subject& subject) {
  SanityFinding finding;
  finding.check = entry.name;
  const double began = subject.now();
  if (entry.trains && !subject.no_training.empty()) {
    finding.verdict = Verdict::skip;
    finding.what = subject.no_training;
  } else if (began >= subject.deadline) {
    finding.verdict = Verdict::skip;
    finding.what = kNoTime;
  } else {
    try {
      (subject.returns_only_loss() ? entry.run_loss_only : entry.run)(subject, finding);
    } catch (const std::exception& error) {
      const std::string text = error.what();
      finding.what = "the check failed to run: " + text.substr(0, text.find('\n'));
      judge(finding, Verdict::fail, "error", "the model or the data is not usable in its present form",
            "fix the problem that the message names");
    }
  }
  finding.seconds = subject.now() - began;
  return finding;
}

const char* mark(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass: return "pass";
    case Verdict::warn: return "WARN";
    case Verdict::fail: return "FAIL";
    case Verdict::skip: return "skip";
  }
  return "?";
}

}  // namespace

std::string to_string(SanityFinding::Verdict verdict) {
  switch (verdict) {
    case Verdict::pass: return "pass";
    case Verdict::warn: return "warn";
    case Verdict::fail: return "fail";
    case Verdict::skip: return "skip";
  }
  return "?";
}

std::vector<SanityFinding> check_sanity(const SanityOptions& options, Clock& clock) {
  Subject subject = subject_of(options, clock);
  std::vector<SanityFinding> findings;
  for (const Entry& entry : kChecks) {
    findings.push_back(run_one(entry, subject));
    if (options.on_finding) options.on_finding(findings.back());
  }
  return findings;
}

std::vector<SanityCheckInfo> sanity_checks() {
  std::vector<SanityCheckInfo> list;
  for (const Entry& entry : kChecks) list.push_back({entry.name, entry.help});
  return list;
}

std::string finding_text(const SanityFinding& finding) {
  std::string name = finding.check;
  std::replace(name.begin(), name.end(), '_', ' ');
  std::string text = format("  %s  %-13s ", mark(finding.verdict), name.c_str()) + finding.what;
  if (!finding.likely.empty()) text += "\n        likely: " + finding.likely;
  if (!finding.hint.empty()) text += "\n        try:    " + finding.hint;
  return text;
}

std::string findings_summary(const std::vector<SanityFinding>& findings, double seconds) {
  const auto count = [&](Verdict verdict) {
    return std::count_if(findings.begin(), findings.end(),
                         [&](const SanityFinding& finding) { return finding.verdict == verdict; });
  };
  const auto untried = std::count_if(findings.begin(), findings.end(),
                                     [](const SanityFinding& finding) { return finding.what == kNoTime; });
  std::string text = !all_sane(findings) ? "not sane: " : untried > 0 ? "sane so far: " : "sane: ";
  text += std::to_string(count(Verdict::pass)) + " checks passed";
  for (const auto& [verdict, word] : {std::pair{Verdict::fail, " failed"}, std::pair{Verdict::warn, " warned"},
                                      std::pair{Verdict::skip, " skipped"}}) {
    if (count(verdict) > 0) text += ", " + std::to_string(count(verdict)) + word;
  }
  if (untried > 0) text += " (" + std::to_string(untried) + " for lack of time: give more with --time)";
  return text + format(" (%.0f s)", seconds);
}

std::string findings_json(const std::string& job, const std::vector<SanityFinding>& findings) {
  nlohmann::json list = nlohmann::json::array();
  for (const SanityFinding& finding : findings) {
    list.push_back({{"check", finding.check},
                    {"verdict", to_string(finding.verdict)},
                    {"what", finding.what},
                    {"cause", finding.cause},
                    {"likely", finding.likely},
                    {"hint", finding.hint},
                    {"seconds", finding.seconds}});
  }
  const nlohmann::json document = {{"job", job}, {"sane", all_sane(findings)}, {"checks", list}};
  return dump_json(document, 1) + "\n";
}

bool all_sane(const std::vector<SanityFinding>& findings) {
  return std::none_of(findings.begin(), findings.end(),
                      [](const SanityFinding& finding) { return finding.verdict == Verdict::fail; });
}

}  // namespace sinew::train
