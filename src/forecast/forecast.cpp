// A curve is a + b * shape(step) + c * drift(step) plus noise. The shapes are those of curve.h. The drift lets a curve
// that got better get worse again, as the validation loss of a model that overfits. Each pair of a shape and a drift is
// fitted by least squares, and counts by how well it explains the evaluations.
//
// No shape may be right: a schedule, or a model that finds something new, bends a curve. So two simple curves that know
// only the newest evaluations have a fixed part of the weight: the level stays as it is, and it goes on changing with
// the logarithm of the step.
//
// The best value at the end is a minimum over all evaluations to come, so the forecast draws possible futures: a fit,
// the strength of the noise, the numbers a, b and c, an error of the model that grows with the distance, and the noise
// of each evaluation. The numbers that are drawn are the same in every forecast.
#include "forecast/forecast.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/random.h"

namespace sinew::forecast {
namespace {

constexpr size_t kFewestPoints = 4, kFewestToTurn = 6;  // points that a forecast needs, and a fit with a drift
constexpr ShapeGrid kGrid{.rates = 12, .powers = 6};
// The shape step^-0.1, nearly a logarithm: it comes after the exponentials, which have three stretches.
constexpr size_t kSlowestPower = 3 * size_t{kGrid.rates};
constexpr int kDraws = 400, kFuture = 8;         // futures, and points of each
constexpr double kStays = 0.08, kGoesOn = 0.08;  // the weights of the two simple curves
constexpr double kNewest = 0.34;                 // the part of the points that they know, but ...
constexpr size_t kFewestNewest = 3;              // ... at least so many
constexpr double kTail = 0.05;                   // of the futures lies on either side of the interval
// Before the first evaluation, the noise is taken to be this part of the range, as if so many points had shown it.
constexpr double kNoisePoints = 1, kNoiseOfRange = 0.03;
constexpr double kWidestRange = 1e100;
constexpr double kLeastNoise = 1e-3;  // the least noise, as a part of the range
constexpr double kModelError = 0.3;   // of the change that a fit promises, if the rest is as long as the past
constexpr double kMostModelError = 0.6;
constexpr double kMostRise = 1.5;    // of the learning rate; a schedule that warms up or begins again rises more
constexpr double kRateGain = 0.4;    // the part of a value that a learning rate which falls to 0 may take away
constexpr double kBeforeDrop = 0.1;  // the weight of a point from before the learning rate fell at once
constexpr double kSoftBound = 0.2;   // below this part of the distance to the bound, a curve bends

double drift(int kind, double x) {
  return kind == 1 ? x : std::sqrt(x);
}

// The quantile function of the normal distribution, to about 1e-3: Abramowitz and Stegun, 26.2.23.
double normal_quantile(double p) {
  const double tail = std::max(std::min(p, 1 - p), 1e-300), t = std::sqrt(-2 * std::log(tail));
  const double z =
      t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
  return p < 0.5 ? -z : z;
}

// The evaluations as a loss: lower is better.
struct Past {
  std::vector<double> steps, losses, weights;
  double low = 0, high = 0, best = 0, unit = 1;
  double floor = -std::numeric_limits<double>::infinity();  // no loss lies below
  double precision() const { return std::max(kLeastNoise * (high - low), 1e-12 * (1 + std::abs(high))); }
};

// A point counts by its evaluations, and by its step: what is long ago says less about the end.
Past past_of(const Evaluations& evaluations, bool lower) {
  Past past;
  past.unit = std::max(1e-9, evaluations.last_step / std::max(1.0, evaluations.count));
  const double newest = evaluations.points.back().step, sign = lower ? 1 : -1;
  for (const Evaluations::Point& point : evaluations.points) {
    past.steps.push_back(point.step / past.unit);
    past.losses.push_back(sign * point.value);
    past.weights.push_back(point.count * std::max(point.step / newest, 1e-3) *
                           (point.step < evaluations.dropped_step ? kBeforeDrop : 1));
  }
  past.best = sign * *evaluations.best;
  past.low = std::min(past.best, *std::ranges::min_element(past.losses));
  past.high = *std::ranges::max_element(past.losses);
  const double bound = lower ? 0 : -1;
  if (past.low >= bound) past.floor = bound;
  return past;
}

struct Fit {
  size_t shape = 0;
  int drift = 0;  // 0: none
  double weight = 0, squares = 0, freedom = 0;
  double known = 0;  // the sum of the weights of the points
  double loss_mean = 0, shape_mean = 0, drift_mean = 0;
  double slope = 0, rise = 0;                   // of the shape, of the drift
  double of_slope = 0, of_rise = 0, cross = 0;  // deviations of both by a unit of noise, and what they share
};

// All fits, with weights that sum to 1.
class Fits {
 public:
  Fits(const Past& past, double end) : past_(past), end_(end) {
    for (const double step : past.steps) shapes_.push_back(shapes_at(step, end, kGrid));
    const size_t n = past.steps.size(), flat = shapes_[0].size() - 1;
    for (size_t shape = 0; shape <= flat; ++shape) {
      for (int kind = 0; kind <= (n < kFewestToTurn || shape == flat ? 0 : 2); ++kind) add(shape, kind, 0);
    }
    share_out(0, 1 - kStays - kGoesOn);
    const size_t newest = std::max(kFewestNewest, static_cast<size_t>(std::ceil(kNewest * static_cast<double>(n))));
    for (const auto& [shape, weight] : {std::pair{flat, kStays}, std::pair{kSlowestPower, kGoesOn}}) {
      const size_t before = fits_.size();
      add(shape, 0, n - std::min(n, newest));
      share_out(before, weight);
    }
  }
  const std::vector<Fit>& all() const { return fits_; }

 private:
  // Turns the logarithms of the weights, from that of `first` on, into weights that sum to `whole`.
  void share_out(size_t first, double whole) {
    double most = -std::numeric_limits<double>::infinity(), total = 0;
    for (size_t i = first; i < fits_.size(); ++i) most = std::max(most, fits_[i].weight);
    for (size_t i = first; i < fits_.size(); ++i) total += fits_[i].weight = std::exp(fits_[i].weight - most);
    for (size_t i = first; i < fits_.size(); ++i) fits_[i].weight *= whole / total;
  }

  struct Sums {
    double ff = 0, fd = 0, dd = 0, fy = 0, dy = 0, yy = 0;  // products of distances from the means
  };

  // Fits a shape and a drift to the points from that of `begin` on.
  void add(size_t shape, int kind, size_t begin) {
    const size_t n = past_.steps.size();
    Fit fit{.shape = shape, .drift = kind};
    const auto drift_at = [&](size_t i) { return kind == 0 ? 0 : drift(kind, past_.steps[i] / end_); };
    for (size_t i = begin; i < n; ++i) {
      const double w = past_.weights[i];
      fit.known += w;
      fit.loss_mean += w * past_.losses[i];
      fit.shape_mean += w * shapes_[i][shape];
      fit.drift_mean += w * drift_at(i);
    }
    for (double* mean : {&fit.loss_mean, &fit.shape_mean, &fit.drift_mean}) *mean /= fit.known;
    Sums sums;
    for (size_t i = begin; i < n; ++i) {
      const double w = past_.weights[i], f = shapes_[i][shape] - fit.shape_mean, d = drift_at(i) - fit.drift_mean,
                   y = past_.losses[i] - fit.loss_mean;
      sums.ff += w * f * f, sums.fd += w * f * d, sums.dd += w * d * d;
      sums.fy += w * f * y, sums.dy += w * d * y, sums.yy += w * y * y;
    }
    const bool flat = shape + 1 == shapes_[0].size();
    if (!flat && !solve(sums, fit)) return;
    const auto points = static_cast<double>(n - begin);
    const double explained = fit.slope * sums.fy + fit.rise * sums.dy, range = past_.high - past_.low;
    const double parameters = flat ? 1 : kind == 0 ? 2.5 : 3.5;  // a shape is chosen, too
    fit.freedom = std::max(1.0, points - parameters) + kNoisePoints;
    fit.squares = std::max(0.0, sums.yy - explained) + kNoisePoints * std::pow(kNoiseOfRange * range, 2) +
                  points * std::pow(past_.precision(), 2);
    fit.weight = -0.5 * fit.freedom * std::log(fit.squares) - 0.5 * parameters * std::log(points);
    fits_.push_back(fit);
  }

  // Returns false if the shape is constant over the points, if the drift says the same as the shape, and if the curve
  // does not turn.
  static bool solve(const Sums& sums, Fit& fit) {
    if (sums.ff <= 1e-12 * fit.known * (1e-12 + fit.shape_mean * fit.shape_mean)) return false;
    fit.of_slope = 1 / std::sqrt(sums.ff);
    fit.slope = sums.fy / sums.ff;
    if (fit.drift == 0) return true;
    const double determinant = sums.ff * sums.dd - sums.fd * sums.fd;
    if (determinant <= 1e-6 * sums.ff * sums.dd) return false;
    fit.slope = (sums.fy * sums.dd - sums.dy * sums.fd) / determinant;
    fit.rise = (sums.dy * sums.ff - sums.fy * sums.fd) / determinant;
    fit.of_rise = std::sqrt(sums.ff / determinant);
    fit.cross = -sums.fd / sums.ff;
    return fit.slope > 0 && (fit.rise > 0 || fit.drift == 2);
  }

  const Past& past_;
  double end_;
  std::vector<std::vector<double>> shapes_;
  std::vector<Fit> fits_;
};

class Futures {
 public:
  Futures(const Past& past, const Evaluations& evaluations, const Rest& rest)
      : past_(past), now_(evaluations.last_step / past.unit), end_(rest.last_step / past.unit) {
    const int count = std::max(1, static_cast<int>(std::min<double>(kFuture, std::round(rest.evaluations))));
    each_ = std::max(1.0, rest.evaluations / count);
    for (int i = 1; i <= count; ++i) steps_.push_back(now_ + (end_ - now_) * i / count);
    for (const double step : steps_) shapes_.push_back(shapes_at(step, end_, kGrid));
    shapes_now_ = shapes_at(now_, end_, kGrid);
    if (evaluations.highest_rate > 0)
      rate_falls_ = std::max(0.0, evaluations.rate - rest.lowest_rate) / evaluations.highest_rate;
    if (evaluations.rate > 0) slowest_ = std::clamp(rest.mean_rate / evaluations.rate, 0.0, 1.0);
  }

  // The lowest loss of one possible future.
  double draw(const Fit& fit, RandomStream& random) const {
    // the strength of the noise: a quotient of the squares and a chi-squared variable, by Wilson and Hilferty
    const double ninth = 2 / (9 * fit.freedom);
    const double chi = fit.freedom * std::pow(std::max(0.2, 1 - ninth + random.normal() * std::sqrt(ninth)), 3);
    const double noise = std::sqrt(fit.squares / chi);
    const double level = fit.loss_mean + noise * random.normal() / std::sqrt(fit.known);
    const double rise_error = fit.of_rise * random.normal();
    const double rise = fit.rise + noise * rise_error;
    const double slope = fit.slope + noise * (fit.of_slope * random.normal() + fit.cross * rise_error);
    const auto at = [&](const std::vector<double>& shapes, double step) {
      const double drifted = fit.drift == 0 ? 0 : rise * (drift(fit.drift, step / end_) - fit.drift_mean);
      return level + slope * (shapes[fit.shape] - fit.shape_mean) + drifted;
    };
    const double slower = random.uniform(slowest_, 1);
    const double present = at(shapes_now_, now_), change = slower * (at(shapes_.back(), end_) - present);
    const double reach = std::min(kMostModelError, kModelError * std::sqrt((end_ - now_) / now_));
    const double error = random.normal() * reach * std::hypot(change, noise);
    const double gain = std::pow(random.uniform(), 2) * kRateGain * rate_falls_ * room(present);
    double lowest = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < steps_.size(); ++i) {
      const double part = (steps_[i] - now_) / (end_ - now_);
      const double luck = normal_quantile(1 - std::pow(1 - random.uniform(), 1 / each_));  // the best of `each_`
      lowest = std::min(lowest, bounded(present + slower * (at(shapes_[i], steps_[i]) - present) +
                                        part * (error - gain) + noise * luck));
    }
    return lowest;
  }

 private:
  // How far a loss may fall.
  double room(double loss) const {
    const double range = past_.high - past_.low;
    return std::isfinite(past_.floor) ? std::max(0.0, loss - past_.floor) : range;
  }
  // Near the floor, a curve becomes flat instead of going below.
  double bounded(double loss) const {
    if (!std::isfinite(past_.floor)) return loss;
    const double edge = kSoftBound * (past_.best - past_.floor), above = loss - past_.floor;
    return above >= edge ? loss : past_.floor + edge * std::exp(above / edge - 1);
  }

  const Past& past_;
  double now_, end_, each_ = 1;
  double slowest_ = 1;     // the part of the promised change that remains if a change is as slow as the rate is low
  double rate_falls_ = 0;  // by which part of the highest learning rate it will still fall
  std::vector<double> steps_, shapes_now_;
  std::vector<std::vector<double>> shapes_;
};

}  // namespace

std::optional<BestValue> best_at_end(const Evaluations& evaluations, const Monitored& monitored, const Rest& rest) {
  if (!evaluations.best) return std::nullopt;
  const double best = *evaluations.best;
  if (rest.evaluations < 0.5 || rest.last_step <= evaluations.last_step) return BestValue{best, best, 1};
  if (evaluations.points.size() < kFewestPoints || evaluations.last_step <= 0) return std::nullopt;
  if (rest.highest_rate > kMostRise * evaluations.rate) return std::nullopt;
  const Past past = past_of(evaluations, monitored.lower);
  if (past.best <= past.floor) return BestValue{best, best, 1};
  // squares of the range must be numbers, too
  if (past.high <= past.low || past.high - past.low > kWidestRange || past.high - past.low < 1 / kWidestRange)
    return std::nullopt;
  const Fits fits(past, rest.last_step / past.unit);
  const Futures futures(past, evaluations, rest);
  RandomStream random(random_key({kDraws}));
  std::vector<double> losses;
  int none_better = 0;
  double before = 0;
  for (const Fit& fit : fits.all()) {  // each fit gets its part of the draws
    const double after = before + fit.weight * kDraws;
    for (auto i = static_cast<int>(std::ceil(before - 0.5)); i < std::ceil(after - 0.5); ++i) {
      const double lowest = futures.draw(fit, random);
      none_better += lowest >= past.best - monitored.min_delta ? 1 : 0;
      losses.push_back(std::min(lowest, past.best));
    }
    before = after;
  }
  if (losses.empty()) return std::nullopt;
  std::ranges::sort(losses);
  const auto quantile = [&](double p) {
    return losses[static_cast<size_t>(p * static_cast<double>(losses.size() - 1))];
  };
  const double low = quantile(kTail), high = quantile(1 - kTail);
  const double probability = static_cast<double>(none_better) / static_cast<double>(losses.size());
  return monitored.lower ? BestValue{low, high, probability} : BestValue{-high, -low, probability};
}

}  // namespace sinew::forecast
