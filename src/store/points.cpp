// Writes and reads the points of series, which are stored in two levels.
//
// New points go to the tail: one row holds all points that one transaction added, of any series. When the tail gets
// long, its points move to chunks: a row holds up to 1,024 sorted points of one series. If one transaction adds many
// points of one series, they go straight to chunks. So an append costs as much as a line in a journal, and a read
// touches few rows. This is a log-structured merge tree with two levels: O'Neil, Cheng, Gawlick, O'Neil, "The
// log-structured merge-tree", Acta Informatica 33 (1996).
#include <algorithm>
#include <map>
#include <set>

#include "base/cost_limit.h"
#include "store/downsample.h"
#include "store/transaction.h"
#include "store/validator.h"

namespace sinew::store {
namespace {

using Reason = Refusal::Reason;

constexpr size_t kChunkPoints = 1024;
// if a transaction adds this many points to a series, they go straight to its chunks
constexpr size_t kBulkPoints = 64;
constexpr int64_t kMaxTailPoints = 32768;  // with this many points, or kMaxTailRows rows, the tail moves to the chunks
constexpr int64_t kMaxTailRows = 512;
constexpr size_t kMaxPointsOfChange = size_t{1} << 20U;
constexpr size_t kMaxSeriesOfRun = 100'000;  // a run with more series probably has step numbers in their names

std::vector<SeriesSummary> read_summary(Database& database, int64_t run) {
  std::vector<SeriesSummary> series;
  database.each("SELECT data FROM summary WHERE run = ?1", {run},
                [&](const Row& row) { series = unpack_summary(row.text(0)); });
  return series;
}

void write_summary(Database& database, int64_t run, const std::vector<SeriesSummary>& series) {
  const std::string data = pack_summary(series);
  database.run("INSERT INTO summary(run, data) VALUES (?1, ?2) ON CONFLICT(run) DO UPDATE SET data = excluded.data",
               {run, Bytes{data}});
}

// Returns the summary of a run that gets a new series, and fills `run.numbers` from it. A transaction reads each
// summary only once.
std::vector<SeriesSummary>& summary_for_new_series(Transaction& transaction, SeriesNumbers::Run& run) {
  const auto [found, is_new] = transaction.summaries.try_emplace(run.run);
  std::vector<SeriesSummary>& series = found->second;
  if (is_new) series = read_summary(transaction.database, run.run);
  if (run.numbers.size() != series.size()) {
    run.numbers.clear();
    for (size_t i = 0; i < series.size(); ++i) run.numbers[series[i].key] = static_cast<int64_t>(i);
  }
  return series;
}

void write_new_series(Transaction& transaction) {
  for (const int64_t run : std::set<int64_t>(transaction.new_series.begin(), transaction.new_series.end()))
    write_summary(transaction.database, run, transaction.summaries.at(run));
  transaction.new_series.clear();
  transaction.summaries.clear();
}

// Identifies a series by the `seq` of its run and by its number within the run. The number is -1 if the series does not
// exist.
using SeriesId = std::pair<int64_t, int64_t>;

// Finds the series. Creates it if the key is new.
std::expected<SeriesId, Refusal> find_or_add_series(Transaction& transaction, const std::string& run_id,
                                                    const std::string& key) {
  SeriesNumbers::Run* run = transaction.series.find(run_id);
  if (run == nullptr) {
    const int64_t seq = record_seq(transaction.database, {Kind::kRun, run_id});
    if (seq == 0) return not_found({Kind::kRun, run_id});
    run = &transaction.series.add(run_id, seq);
  }
  auto found = run->numbers.find(key);
  if (found != run->numbers.end()) return SeriesId{run->run, found->second};
  std::vector<SeriesSummary>& series = summary_for_new_series(transaction, *run);
  found = run->numbers.find(key);
  if (found == run->numbers.end()) {
    if (series.size() >= kMaxSeriesOfRun) {
      return refused(Reason::kInvalid, in_words({Kind::kRun, run_id}) + " has 100,000 series and cannot get '" + key +
                                           "' as another; do not put steps into the names of series");
    }
    found = run->numbers.emplace(key, static_cast<int64_t>(series.size())).first;
    series.push_back(SeriesSummary{.key = key, .metric = {}});
    transaction.new_series.push_back(run->run);
  }
  return SeriesId{run->run, found->second};
}

std::vector<Point> read_chunk(Database& database, int64_t run, int64_t series, int64_t part) {
  std::vector<Point> points;
  database.each("SELECT data FROM chunk WHERE run = ?1 AND series = ?2 AND part = ?3", {run, series, part},
                [&](const Row& row) { unpack_points(row.text(0), points); });
  return points;
}

// Appends points to the chunks of a series. Fills up the last chunk before it starts another one.
void append(Database& database, int64_t run, int64_t number, SeriesSummary& series, std::vector<Point> points) {
  count_in(series.metric, points);
  int64_t part = series.chunks;
  if (series.chunks > 0 && series.last_points < static_cast<int64_t>(kChunkPoints)) {
    part = series.chunks - 1;
    const auto there = read_chunk(database, run, number, part);
    points.insert(points.end(), there.begin(), there.end());
  }
  sort_unique(points);
  for (size_t at = 0; at < points.size(); at += kChunkPoints, ++part) {
    const auto piece = std::span(points).subspan(at, std::min(kChunkPoints, points.size() - at));
    const std::string data = pack_points(piece);
    database.run(
        "INSERT INTO chunk(run, series, part, data) VALUES (?1, ?2, ?3, ?4) "
        "ON CONFLICT(run, series, part) DO UPDATE SET data = excluded.data",
        {run, number, part, Bytes{data}});
    series.last_points = static_cast<int64_t>(piece.size());
  }
  series.chunks = part;
}

using ByRun = std::map<int64_t, std::map<int64_t, std::vector<Point>>>;

ByRun group_by_series(const std::vector<TailPoint>& points) {
  ByRun by_run;
  std::vector<Point>* list = nullptr;
  const TailPoint* last = nullptr;
  for (const TailPoint& one : points) {
    if (last == nullptr || last->run != one.run || last->series != one.series) list = &by_run[one.run][one.series];
    list->push_back(one.point);
    last = &one;
  }
  return by_run;
}

void append_all(Database& database, ByRun by_run) {
  for (auto& [run, lists] : by_run) {
    auto series = read_summary(database, run);
    for (auto& [number, points] : lists)
      append(database, run, number, series.at(static_cast<size_t>(number)), std::move(points));
    write_summary(database, run, series);
  }
}

// Moves the points of the tail, together with `more`, to the chunks.
void empty_tail(Database& database, const std::vector<TailPoint>& more) {
  auto points = read_tail(database);
  points.insert(points.end(), more.begin(), more.end());
  append_all(database, group_by_series(points));
  database.run("DELETE FROM tail", {});
}

// Writes the points as a new row of the tail. If the tail is full, moves it and these points to the chunks instead.
void append_to_tail(Database& database, const std::vector<TailPoint>& points) {
  int64_t last = 0, first = 0, total = 0;
  database.each("SELECT id, total, (SELECT min(id) FROM tail) FROM tail ORDER BY id DESC LIMIT 1", {},
                [&](const Row& row) {
                  last = row.integer(0);
                  total = row.integer(1);
                  first = row.integer(2);
                });
  total += static_cast<int64_t>(points.size());
  if (total >= kMaxTailPoints || last - first >= kMaxTailRows) return empty_tail(database, points);
  const std::string data = pack_tail(points);
  database.run("INSERT INTO tail(id, total, data) VALUES (?1, ?2, ?3)", {last + 1, total, Bytes{data}});
}

// Removes from `points` the points of each series that has at least kBulkPoints of them. Returns the removed points.
ByRun take_bulk(std::vector<TailPoint>& points) {
  if (points.size() < kBulkPoints) return {};
  ByRun bulk = group_by_series(points);
  points.clear();
  for (auto run = bulk.begin(); run != bulk.end();) {
    std::erase_if(run->second, [&](const auto& series) {
      if (series.second.size() >= kBulkPoints) return false;
      for (const Point& point : series.second) points.push_back({run->first, series.first, point});
      return true;
    });
    run = run->second.empty() ? bulk.erase(run) : std::next(run);
  }
  return bulk;
}

}  // namespace

std::vector<TailPoint> read_tail(Database& database) {
  std::vector<TailPoint> points;
  database.each("SELECT data FROM tail ORDER BY id", {}, [&](const Row& row) { unpack_tail(row.text(0), points); });
  return points;
}

Applied apply(Transaction& transaction, const AddPoints& change) {
  const auto refusal =
      Validator()
          .id("the series' key", change.key)
          .require(change.points.size() <= kMaxPointsOfChange, "one change has at most 1,048,576 points")
          .refusal();
  if (refusal) return std::unexpected(*refusal);
  const auto series = find_or_add_series(transaction, change.run, change.key);
  if (!series) return std::unexpected(series.error());
  for (const Point& point : change.points) transaction.points.push_back({series->first, series->second, point});
  return Answer{};
}

void undo_new_series(Transaction& transaction, size_t count) {
  while (transaction.new_series.size() > count) {
    transaction.summaries.at(transaction.new_series.back()).pop_back();
    transaction.new_series.pop_back();
  }
  if (count == 0) transaction.summaries.clear();
}

void flush_points(Transaction& transaction) {
  write_new_series(transaction);
  std::vector<TailPoint> points = std::exchange(transaction.points, {});
  append_all(transaction.database, take_bulk(points));
  if (!points.empty()) append_to_tail(transaction.database, points);
}

Applied apply(Transaction& transaction, const DropPoints& change) {
  Database& database = transaction.database;
  const Subject subject{Kind::kRun, change.run};
  const int64_t run = record_seq(database, subject);
  if (run == 0) return not_found(subject);
  write_new_series(transaction);
  empty_tail(database, std::exchange(transaction.points, {}));
  auto series = read_summary(database, run);
  bool any = false;
  for (size_t i = 0; i < series.size(); ++i) {
    SeriesSummary& one = series[i];
    if (one.metric.count == 0 || one.metric.last.step < change.from_step) continue;
    if (change.keys && !change.keys->contains(one.key)) continue;
    any = true;
    std::vector<Point> points;
    const auto number = static_cast<int64_t>(i);
    database.each("SELECT data FROM chunk WHERE run = ?1 AND series = ?2 ORDER BY part", {run, number},
                  [&](const Row& row) { unpack_points(row.text(0), points); });
    std::erase_if(points, [&](const Point& point) { return point.step >= change.from_step; });
    database.run("DELETE FROM chunk WHERE run = ?1 AND series = ?2", {run, number});
    one = SeriesSummary{.key = one.key, .metric = {}};
    append(database, run, number, one, std::move(points));
  }
  if (!any) return Answer{0, 0, true};
  write_summary(database, run, series);
  add_event(transaction, "drop points", subject, std::to_string(change.from_step));
  return Answer{};
}

namespace {

// Holds the summary of one run at a time: a run may have 100,000 series.
std::vector<SeriesId> find_series(Database& database, std::span<const Series> wanted) {
  std::map<std::string, std::vector<size_t>> of_runs;  // indices in `wanted`
  for (size_t i = 0; i < wanted.size(); ++i) of_runs[wanted[i].run].push_back(i);
  std::vector<SeriesId> ids(wanted.size(), SeriesId(0, -1));
  for (const auto& [name, indices] : of_runs) {
    const CostLimit::Temporary summary;
    const int64_t run = record_seq(database, {Kind::kRun, name});
    const auto series = run != 0 ? read_summary(database, run) : std::vector<SeriesSummary>();
    CostLimit::hold_current(bytes_of(series));
    for (const size_t i : indices) {
      const auto same = std::ranges::find(series, wanted[i].key, &SeriesSummary::key);
      ids[i] = {run, same == series.end() ? -1 : same - series.begin()};
    }
    CostLimit::check_current();
  }
  return ids;
}

int64_t bytes_of(const std::vector<Point>& points) {
  return static_cast<int64_t>(points.size() * sizeof(Point));
}

// Returns the points of a series in the window, from its chunks and from the tail. If the thread serves a request,
// counts them in the request's CostLimit.
std::vector<Point> read_window(Database& database, const SeriesId& id, const std::vector<Point>& tail,
                               const Window& window) {
  // Limits how many chunks the connection holds at once. The CostLimit is checked after each read.
  constexpr int64_t kChunksPerRead = 256;
  const auto is_outside = [&](const Point& point) {
    return point.step < window.first_step || point.step > window.last_step;
  };
  std::vector<Point> points, chunk;
  const auto keep = [&](const std::vector<Point>& more) {
    const size_t before = points.size();
    std::copy_if(more.begin(), more.end(), std::back_inserter(points), [&](const Point& p) { return !is_outside(p); });
    CostLimit::hold_current(static_cast<int64_t>((points.size() - before) * sizeof(Point)));
  };
  int64_t rows = kChunksPerRead;
  for (int64_t part = 0; rows == kChunksPerRead; part += kChunksPerRead) {
    rows = 0;
    database.each("SELECT data FROM chunk WHERE run = ?1 AND series = ?2 AND part >= ?3 AND part < ?4 ORDER BY part",
                  {id.first, id.second, part, part + kChunksPerRead}, [&](const Row& row) {
                    ++rows;
                    chunk.clear();
                    unpack_points(row.text(0), chunk);
                    keep(chunk);
                  });
    CostLimit::check_current();
  }
  keep(tail);
  const int64_t before = bytes_of(points);
  sort_unique(points);
  CostLimit::release_current(before - bytes_of(points));
  return points;
}

}  // namespace

// Thins out each series before it reads the next. So only one complete series is in memory at a time.
std::vector<std::vector<Point>> read_history(Database& database, std::span<const Series> wanted, const Window& window) {
  const std::vector<SeriesId> ids = find_series(database, wanted);
  std::map<SeriesId, std::vector<Point>> tails;
  for (const SeriesId& id : ids) {
    if (id.second >= 0) tails.try_emplace(id);
  }
  for (const TailPoint& one : read_tail(database)) {
    const auto found = tails.find({one.run, one.series});
    if (found != tails.end()) found->second.push_back(one.point);
  }
  std::map<SeriesId, size_t> first;  // where each series is in `history`, because a series may be requested twice
  std::vector<std::vector<Point>> history;
  history.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const SeriesId& id = ids[i];
    const auto [known, is_new] = first.try_emplace(id, i);
    if (id.second < 0 || !is_new) {
      history.push_back(is_new ? std::vector<Point>() : history[known->second]);
      continue;
    }
    std::vector<Point> points = read_window(database, id, tails.at(id), window);
    const auto held = bytes_of(points);
    if (window.max_points > 0) {
      downsample(points, std::max<int64_t>(window.max_points, 4));
      points.shrink_to_fit();
    }
    CostLimit::release_current(held - bytes_of(points));
    history.push_back(std::move(points));
  }
  return history;
}

}  // namespace sinew::store
