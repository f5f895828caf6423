// How often to train again, and in which way.
#include <algorithm>
#include <cmath>

#include "advise/advise.h"
#include "base/number_text.h"
#include "base/short_number.h"

namespace sinew::advise {
namespace {

constexpr double kDaySeconds = 86400;
// Training on all data is the simplest way. It is advised as long as it takes at most this part of the time between two
// trainings.
constexpr double kComfortable = 0.25;
// If a day brings less than this part of the data, a training each week misses little.
constexpr double kLittleNews = 0.005;

}  // namespace

double retraining_interval(const std::string& text) {
  if (text == "nightly" || text == "daily") return kDaySeconds;
  if (text == "weekly") return 7 * kDaySeconds;
  if (text == "monthly") return 30.44 * kDaySeconds;
  return duration_seconds("--retrain", text);
}

std::string retraining_advice(const Plan& plan, double samples_per_day) {
  const PlannedJob& job = plan.job;
  const auto all = static_cast<double>(std::max<int64_t>(1, job.train_samples));
  const double news = samples_per_day / all, training = plan.seconds.expected;
  const double per_second = static_cast<double>(job.batch_size) / plan.measured.step_seconds;
  const std::string rate = short_count(samples_per_day) + " new samples a day are " + rounded_text(100 * news, 2) +
                           " % of the training data";
  if (training <= kComfortable * kDaySeconds) {
    const bool weekly = news < kLittleNews;
    return "batch: train anew on all data " + std::string(weekly ? "each week" : "each night") + ", which takes " +
           short_seconds(training) + "; " + rate + (weekly ? ", so a day changes little" : "") +
           ". A training on all data can be repeated to the last bit";
  }
  const double to_learn = samples_per_day / per_second;
  if (to_learn <= kComfortable * kDaySeconds)
    return "mini-batch: go on from the last model with the new samples (model.init_from), one pass of which takes " +
           short_seconds(to_learn) + ", because all data take " + short_seconds(training) + "; " + rate +
           ". Train on all data from time to time, for example when they have doubled in " +
           short_count(std::ceil(1 / news)) + " days";
  if (to_learn <= kDaySeconds)
    return "streaming: learn the samples as they come, because one pass over those of a day takes " +
           short_seconds(to_learn) + " here; " + rate;
  return "too much for this machine: one pass over the samples of a day takes " + short_seconds(to_learn) +
         " here. Train on a part of them, or on a faster machine; " + rate;
}

}  // namespace sinew::advise
