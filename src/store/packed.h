// Inside store/: what is kept packed in one value: labels of a record, chunks of points, what is known of a run's
// series. docs/formats/store.md has the bytes. Reading throws Error on damage, whatever the bytes are.
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

// A series of a run: its place in this list is its number in chunks and tails.
struct SeriesSummary {
  std::string key;
  Metric metric;
  int64_t chunks = 0;       // 0..chunks-1 are there
  int64_t last_points = 0;  // points in the last of them
};
std::string pack_summary(std::span<const SeriesSummary> series);
std::vector<SeriesSummary> unpack_summary(std::string_view bytes);

// Points that have not come to their chunks yet, of any runs.
struct TailPoint {
  int64_t run = 0, series = 0;
  Point point;
};
std::string pack_tail(std::span<const TailPoint> points);
void unpack_tail(std::string_view bytes, std::vector<TailPoint>& out);  // appends

// By step, then time, then value, bit for bit; what is there twice is there once.
void sort_unique(std::vector<Point>& points);
bool comes_before(const Point& a, const Point& b);
// As if each of the points were logged now.
void count_in(Metric& metric, std::span<const Point> points);

}  // namespace sinew::store
