// Makes a range test of the learning rate.
#include "base/disk.h"
#include "train/lone_engine.h"
#include "train/rate_range.h"
#include "train/resolve.h"
#include "train/state.h"

namespace sinew::train {

RateFinding find_rate(const spec::Job& job, const RateRange& range) {
  const auto dataset = open_data(job);
  spec::Job wanted = job;
  wanted.trainer.batch_size_ramp.clear();  // each step of the test has the same number of samples
  Resolved resolved = resolve(wanted, dataset->info(), this_machine());
  fit_to_memory(resolved, wanted, *dataset);
  resolved.job.cluster.audit = 0;
  LoneEngine lone(resolved.job, *dataset);
  Engine& engine = lone.engine();
  engine.check_sizes();
  if (!job.model.init_from.path.empty()) {
    warm_start(engine.state(), resolved.job.model.init_from, resolved.job.model.reinit, system_disk());
    engine.state_replaced();
  }
  std::vector<RatePoint> points;
  RateTest test;
  bool diverged = false;
  for (int64_t step = 0; step < range.steps && !diverged; ++step) {
    const double lr = rate_at(range, step);
    try {
      const StepResult result = engine.step({lr, {}}, /*want_norm=*/false, /*explain=*/false);
      if (result.weight == 0) continue;
      points.push_back({lr, result.loss});
      diverged = test.diverges_with(result.loss);
    } catch (const Diverged&) {
      diverged = true;
    }
  }
  RateFinding finding = judge_rates(std::move(points), diverged);
  finding.job_lr = job.optimizer.lr;
  return finding;
}

}  // namespace sinew::train
