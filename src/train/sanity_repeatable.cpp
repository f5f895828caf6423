// Checks that this job is reproducible: the same steps must give the same bits on any number of lanes.
#include <cmath>

#include "train/sanity.h"

namespace sinew::train::sanity {
namespace {

constexpr int64_t kRepeatedSteps = 5;
constexpr double kRepeatedSeconds =
    2;  // time for the first of three trials; a slow model makes fewer steps, equally many in all three

}  // namespace

void check_repeatable(Subject& subject, SanityFinding& finding) {
  int64_t steps = kRepeatedSteps;  // the first trial may make fewer
  const auto digest_after = [&](int64_t lanes, double until) {
    spec::Job job = subject.job;
    job.trainer.lanes = lanes;
    Trial trial(subject, job, subject.data);
    for (int64_t i = 0; i < steps; ++i) {
      trial.engine().step(job.optimizer.lr, false);
      if (subject.now() > until) steps = i + 1;
    }
    return to_hex(digest(trial.engine().state()));
  };
  const int64_t lanes = std::max<int64_t>(2, *subject.job.trainer.lanes);
  std::string one, again, wide;
  try {
    one = digest_after(1, subject.until(kRepeatedSeconds));
    again = digest_after(1, INFINITY);
    wide = digest_after(lanes, INFINITY);
  } catch (const Diverged& diverged) {
    finding.verdict = Verdict::skip;
    finding.what = "training diverges within " + std::to_string(kRepeatedSteps) + " steps";
    return;
  }
  finding.what = format("%lld steps, twice on 1 lane and once on %lld, all gave digest ", static_cast<long long>(steps),
                        static_cast<long long>(lanes)) +
                 one.substr(0, 12);
  if (one != again) {
    finding.what = format("the same %lld steps gave two digests: ", static_cast<long long>(steps)) + one.substr(0, 12) +
                   " and " + again.substr(0, 12);
    judge(finding, Verdict::fail, "not_repeatable",
          "the model or the data keeps hidden state, or draws its own random numbers",
          "make forward and load depend only on their arguments");
  } else if (one != wide) {
    finding.what = format("1 and %lld lanes gave two digests: ", static_cast<long long>(lanes)) + one.substr(0, 12) +
                   " and " + wide.substr(0, 12);
    judge(finding, Verdict::fail, "lanes_differ",
          "replicas of the model share hidden state, or start with different values",
          "give each replica its own state");
  }
}

}  // namespace sinew::train::sanity
