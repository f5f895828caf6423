// Inside store/: packs and unpacks values that a column holds in packed form: the labels of a record, chunks and tails
// of points, and the summary of a run's series. docs/formats/store.md defines the bytes. The unpack functions accept
// any input, and throw Error (STORE_DAMAGED) if it is damaged.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.h"

namespace sinew::store {

std::string pack_labels(const Labels& labels);
Labels unpack_labels(std::string_view bytes);

std::string pack_points(std::span<const Point> points);
void unpack_points(std::string_view bytes, std::vector<Point>& out);  // appends

// A series of a run. Chunks and tails name the series by its index in the run's summary.
struct SeriesSummary {
  std::string key;
  Metric metric;
  int64_t chunks = 0;       // the series has the chunks 0 to chunks-1
  int64_t last_points = 0;  // number of points in the series' last chunk
};
std::string pack_summary(std::span<const SeriesSummary> series);
std::vector<SeriesSummary> unpack_summary(std::string_view bytes);
int64_t bytes_of(const std::vector<SeriesSummary>& series);  // roughly how much memory the summary takes

// A point in the tail, from which it later moves to a chunk. The tail holds points of many runs.
struct TailPoint {
  int64_t run = 0, series = 0;
  Point point;
};
std::string pack_tail(std::span<const TailPoint> points);
void unpack_tail(std::string_view bytes, std::vector<TailPoint>& out);  // appends

// Returns whether `a` comes before `b` in a series. Points are ordered by step, then by time, then by value, in which a
// NaN counts as 0. So the last point is the one that MLflow's server shows as the newest: the largest of those that
// were logged at the same step and time. Points that differ in nothing else are ordered by the bits of their values.
bool comes_before(const Point& a, const Point& b);
// Sorts by comes_before() and removes duplicates.
void sort_unique(std::vector<Point>& points);
// Updates the metric for points that are added to its series.
void count_in(Metric& metric, std::span<const Point> points);

}  // namespace sinew::store
