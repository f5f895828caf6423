// Points of series. Those that come alone go to the tail, one row for all that one transaction added, whatever their
// series; when the tail is long, or many come at once, they go to chunks, sorted, a row for up to 1,024 points. So an
// append costs the same as a line of a journal, and a read touches few rows. After the log-structured merge tree:
// O'Neil, Cheng, Gawlick, O'Neil, "The log-structured merge-tree", Acta Informatica 33 (1996), with two levels.
#include <algorithm>
#include <map>
#include <set>

#include "store/downsample.h"
#include "store/texts.h"
#include "store/transaction.h"

namespace sinew::store {
namespace {

using Reason = Refusal::Reason;

constexpr size_t kChunkPoints = 1024;
constexpr size_t kMany = 64;            // of one series in one transaction: straight to its chunks
constexpr int64_t kTailPoints = 32768;  // then the tail is emptied
constexpr int64_t kTailRows = 512;
constexpr size_t kMostAtOnce = size_t{1} << 20U;

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

constexpr size_t kMostSeries = 100'000;  // of a run: names with a step in them are no series

// The summary of a run that is given a new series, read once a transaction; `run` knows all its numbers then.
std::vector<SeriesSummary>& summary_for_naming(Transaction& transaction, SeriesNumbers::Run& run) {
  const auto [found, is_new] = transaction.summaries.try_emplace(run.run);
  std::vector<SeriesSummary>& series = found->second;
  if (is_new) series = read_summary(transaction.database, run.run);
  if (run.numbers.size() != series.size()) {
    run.numbers.clear();
    for (size_t i = 0; i < series.size(); ++i) run.numbers[series[i].key] = static_cast<int64_t>(i);
  }
  return series;
}

void write_names(Transaction& transaction) {
  for (const int64_t run : std::set<int64_t>(transaction.named.begin(), transaction.named.end()))
    write_summary(transaction.database, run, transaction.summaries.at(run));
  transaction.named.clear();
  transaction.summaries.clear();
}

// The series' number in its run, given now if the key is new.
std::expected<TailPoint, Refusal> place_of(Transaction& transaction, const std::string& run_id,
                                           const std::string& key) {
  SeriesNumbers::Run* run = transaction.series.find(run_id);
  if (run == nullptr) {
    const int64_t seq = record_seq(transaction.database, {Kind::kRun, run_id});
    if (seq == 0) return refused(Reason::kNotFound, "there is no " + in_words({Kind::kRun, run_id}));
    run = &transaction.series.add(run_id, seq);
  }
  auto found = run->numbers.find(key);
  if (found == run->numbers.end()) {
    std::vector<SeriesSummary>& series = summary_for_naming(transaction, *run);
    found = run->numbers.find(key);
    if (found == run->numbers.end()) {
      if (series.size() >= kMostSeries)
        return refused(Reason::kInvalid, in_words({Kind::kRun, run_id}) + " has 100,000 series, so '" + key +
                                             "' can not be one more: names of series must not have steps in them");
      found = run->numbers.emplace(key, static_cast<int64_t>(series.size())).first;
      series.push_back(SeriesSummary{.key = key, .metric = {}});
      transaction.named.push_back(run->run);
    }
  }
  return TailPoint{run->run, found->second, {}};
}

std::vector<Point> read_chunk(Database& database, int64_t run, int64_t series, int64_t part) {
  std::vector<Point> points;
  database.each("SELECT data FROM chunk WHERE run = ?1 AND series = ?2 AND part = ?3", {run, series, part},
                [&](const Row& row) { unpack_points(row.text(0), points); });
  return points;
}

// Behind what is there: the last chunk is filled up first.
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

ByRun sorted_out(const std::vector<TailPoint>& points) {
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

void empty_tail(Database& database, const std::vector<TailPoint>& more) {
  auto points = read_tail(database);
  points.insert(points.end(), more.begin(), more.end());
  append_all(database, sorted_out(points));
  database.run("DELETE FROM tail", {});
}

}  // namespace

std::vector<TailPoint> read_tail(Database& database) {
  std::vector<TailPoint> points;
  database.each("SELECT data FROM tail ORDER BY id", {}, [&](const Row& row) { unpack_tail(row.text(0), points); });
  return points;
}

Applied apply(Transaction& transaction, const AddPoints& change) {
  const auto objection = TextJudge()
                             .id("the series' key", change.key)
                             .that(change.points.size() <= kMostAtOnce, "more than 1,048,576 points at once")
                             .objection();
  if (objection) return std::unexpected(*objection);
  const auto place = place_of(transaction, change.run, change.key);
  if (!place) return std::unexpected(place.error());
  for (const Point& point : change.points) transaction.points.push_back({place->run, place->series, point});
  return Answer{};
}

void unname_series(Transaction& transaction, size_t named) {
  while (transaction.named.size() > named) {
    transaction.summaries.at(transaction.named.back()).pop_back();
    transaction.named.pop_back();
  }
  if (named == 0) transaction.summaries.clear();
}

void settle_points(Transaction& transaction) {
  write_names(transaction);
  if (transaction.points.empty()) return;
  Database& database = transaction.database;
  std::vector<TailPoint> few;
  if (transaction.points.size() < kMany) {
    few = std::move(transaction.points);
  } else {
    ByRun many = sorted_out(transaction.points);
    for (auto run = many.begin(); run != many.end();) {
      std::erase_if(run->second, [&](const auto& list) {
        if (list.second.size() >= kMany) return false;
        for (const Point& point : list.second) few.push_back({run->first, list.first, point});
        return true;
      });
      run = run->second.empty() ? many.erase(run) : std::next(run);
    }
    append_all(database, std::move(many));
  }
  transaction.points.clear();
  if (few.empty()) return;
  int64_t last = 0, first = 0, total = 0;
  database.each("SELECT id, total, (SELECT min(id) FROM tail) FROM tail ORDER BY id DESC LIMIT 1", {},
                [&](const Row& row) {
                  last = row.integer(0);
                  total = row.integer(1);
                  first = row.integer(2);
                });
  total += static_cast<int64_t>(few.size());
  if (total >= kTailPoints || last - first >= kTailRows) return empty_tail(database, few);
  const std::string data = pack_tail(few);
  database.run("INSERT INTO tail(id, total, data) VALUES (?1, ?2, ?3)", {last + 1, total, Bytes{data}});
}

Applied apply(Transaction& transaction, const DropPoints& change) {
  Database& database = transaction.database;
  const Subject subject{Kind::kRun, change.run};
  const int64_t run = record_seq(database, subject);
  if (run == 0) return refused(Reason::kNotFound, "there is no " + in_words(subject));
  write_names(transaction);
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

using Place = std::pair<int64_t, int64_t>;  // a run's number, and the series' in it; -1: there is none

std::vector<Place> places_of(Database& database, std::span<const Series> wanted) {
  std::map<std::string, std::pair<int64_t, std::vector<SeriesSummary>>> runs;
  std::vector<Place> places;
  for (const Series& one : wanted) {
    auto [found, is_new] = runs.try_emplace(one.run);
    auto& [run, series] = found->second;
    if (is_new) {
      run = record_seq(database, {Kind::kRun, one.run});
      if (run != 0) series = read_summary(database, run);
    }
    const auto same =
        std::find_if(series.begin(), series.end(), [&](const SeriesSummary& known) { return known.key == one.key; });
    places.emplace_back(run, same == series.end() ? -1 : same - series.begin());
  }
  return places;
}

}  // namespace

// Each series is thinned out before the next is read: only one of them is ever here as it is.
std::vector<std::vector<Point>> read_history(Database& database, std::span<const Series> wanted, const Window& window) {
  const std::vector<Place> places = places_of(database, wanted);
  std::map<Place, std::vector<Point>> tails;
  for (const Place& place : places) {
    if (place.second >= 0) tails.try_emplace(place);
  }
  for (const TailPoint& one : read_tail(database)) {
    const auto found = tails.find({one.run, one.series});
    if (found != tails.end()) found->second.push_back(one.point);
  }
  std::map<Place, size_t> first;  // of those asked for twice
  std::vector<std::vector<Point>> history;
  history.reserve(places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    const Place& place = places[i];
    const auto [known, is_new] = first.try_emplace(place, i);
    if (place.second < 0 || !is_new) {
      history.push_back(is_new ? std::vector<Point>() : history[known->second]);
      continue;
    }
    std::vector<Point> points;
    database.each("SELECT data FROM chunk WHERE run = ?1 AND series = ?2 ORDER BY part", {place.first, place.second},
                  [&](const Row& row) { unpack_points(row.text(0), points); });
    const std::vector<Point>& tail = tails.at(place);
    points.insert(points.end(), tail.begin(), tail.end());
    sort_unique(points);
    std::erase_if(points,
                  [&](const Point& point) { return point.step < window.first_step || point.step > window.last_step; });
    if (window.most > 0) downsample(points, std::max<int64_t>(window.most, 4));
    history.push_back(std::move(points));
  }
  return history;
}

}  // namespace sinew::store
