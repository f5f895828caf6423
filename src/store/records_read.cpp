// Reads records, and the metrics of runs. A metric includes the points that are still in the tail.
#include <algorithm>

#include "base/cost_limit.h"
#include "store/transaction.h"

namespace sinew::store {
namespace {

// The columns that `take` reads. This is a macro because the statements must be literals. It leaves out the time of the
// newest event for runs and studies: no caller needs it, and lists of runs are long.
#define RECORD_COLUMNS                                                                                    \
  "seq, kind, id, number, parent, name, state, attempt, begun_ms, ended_ms, hidden, body, params, tags, " \
  "summary.data, CASE WHEN kind IN (1, 3, 4) THEN coalesce((SELECT event.at_ms FROM event WHERE "         \
  "event.kind = record.kind AND event.id = record.id AND event.number = record.number "                   \
  "ORDER BY event.seq DESC LIMIT 1), 0) ELSE 0 END, owner, hidden_by"

// A page ends with the record that brings it to this many packed bytes. Unpacked they take about ten times as much.
constexpr int64_t kMaxPageBytes = int64_t{4} << 20U;

struct Page {
  std::vector<Record> records;
  std::vector<std::vector<SeriesSummary>> series;  // for each record
  int64_t bytes = 0;                               // size of the rows, with unpacked summaries
};

void take(Page& page, const Row& row) {
  Record& record = page.records.emplace_back();
  record.seq = row.integer(0);
  record.subject = {static_cast<Kind>(row.integer(1)), std::string(row.text(2)), row.integer(3)};
  record.parent = row.text(4);
  record.name = row.text(5);
  if (record.subject.kind == Kind::kRun) record.state = static_cast<RunState>(row.integer(6));
  record.attempt = row.integer(7);
  record.begun_ms = row.integer(8);
  record.ended_ms = row.integer(9);
  record.hidden = row.integer(10) != 0;
  record.body = row.text(11);
  record.params = unpack_labels(row.text(12));
  record.tags = unpack_labels(row.text(13));
  page.series.emplace_back();
  if (const auto packed = row.text(14); !packed.empty()) {
    page.series.back() = unpack_summary(packed);
    const int64_t bytes = bytes_of(page.series.back());
    page.bytes += bytes;
    CostLimit::hold_current(bytes);
  }
  for (const int column : {2, 4, 5, 11, 12, 13}) page.bytes += static_cast<int64_t>(row.text(column).size());
  record.changed_ms = row.integer(15);
  record.owner = row.text(16);
  record.hidden_by = row.text(17);
}

void count_tail(Page& page, const std::vector<TailPoint>& tail) {
  std::unordered_multimap<int64_t, size_t> indices;  // a record that is requested twice is in the page twice
  for (size_t i = 0; i < page.records.size(); ++i) indices.emplace(page.records[i].seq, i);
  for (const TailPoint& one : tail) {
    const auto [begin, end] = indices.equal_range(one.run);
    for (auto index = begin; index != end; ++index) {
      auto& series = page.series[index->second];
      if (static_cast<size_t>(one.series) < series.size())
        count_in(series[static_cast<size_t>(one.series)].metric, {&one.point, 1});
    }
  }
}

// Fills in the aliases, and the metrics whose keys are in `keys`; all metrics if `keys` is nullopt.
void finish(Database& database, Page& page, const std::optional<std::set<std::string>>& keys) {
  const bool any_series =
      std::any_of(page.series.begin(), page.series.end(), [](const auto& series) { return !series.empty(); });
  if (any_series) count_tail(page, read_tail(database));
  for (size_t i = 0; i < page.records.size(); ++i) {
    auto& all = page.records[i].metrics;
    for (SeriesSummary& series : page.series[i]) {
      if (series.metric.count == 0 || (keys && !keys->contains(series.key))) continue;
      all.emplace_hint(all.end(), std::move(series.key), series.metric);
    }
    if (page.records[i].subject.kind == Kind::kModel)
      page.records[i].aliases = read_aliases(database, page.records[i].subject.id);
  }
}

}  // namespace

int64_t bytes_of(const Record& record) {
  constexpr size_t kNode = 64;  // bytes of a node of a map, with its pointers and short texts
  size_t bytes = sizeof(Record) + record.subject.id.size() + record.parent.size() + record.name.size() +
                 record.body.size() + record.metrics.size() * (kNode + sizeof(Metric));
  for (const auto* labels : {&record.params, &record.tags}) {
    for (const auto& [key, value] : *labels) bytes += 2 * kNode + key.size() + value.size();
  }
  return static_cast<int64_t>(bytes);
}

std::vector<std::optional<Record>> read_subjects(Database& database, std::span<const Subject> subjects,
                                                 int64_t max_bytes) {
  const CostLimit::Temporary summaries;
  Page page;
  std::vector<bool> there;
  for (const Subject& subject : subjects) {
    if (page.bytes >= max_bytes) break;
    const size_t before = page.records.size();
    database.each("SELECT " RECORD_COLUMNS
                  " FROM record LEFT JOIN summary ON summary.run = record.seq "
                  "WHERE kind = ?1 AND id = ?2 AND number = ?3",
                  {static_cast<int64_t>(subject.kind), std::string_view(subject.id), subject.number},
                  [&](const Row& row) { take(page, row); });
    there.push_back(page.records.size() > before);
  }
  finish(database, page, {});
  std::vector<std::optional<Record>> found;
  auto next = page.records.begin();
  for (const bool is_there : there) found.push_back(is_there ? std::optional(std::move(*next++)) : std::nullopt);
  return found;
}

RecordPage read_records(Database& database, const Query& query) {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  const CostLimit::Temporary summaries;
  Page page;
  const auto kind = static_cast<int64_t>(query.kind);
  const int64_t before = query.before == 0 ? kAny : query.before, hidden = query.hidden ? 1 : 0,
                metrics = query.metrics ? 1 : 0;
  const int64_t first = query.state ? static_cast<int64_t>(*query.state) : 0,
                last = query.state ? first : std::numeric_limits<int32_t>::max();
  const auto is_full = [&] {
    return page.bytes >= kMaxPageBytes || static_cast<int64_t>(page.records.size()) >= query.limit;
  };
  const auto keep = [&](const Row& row) {
    take(page, row);
    return !is_full();
  };
  if (query.name) {
    // Few records share a name. So the parent and the limit are checked here and not in SQL.
    database.each_while(
        "SELECT " RECORD_COLUMNS
        " FROM record LEFT JOIN summary ON summary.run = record.seq AND CAST(?5 AS BIGINT) = 1 "
        "WHERE kind = ?1 AND name = ?2 AND seq < ?3 AND hidden <= ?4 AND state BETWEEN ?6 AND ?7 ORDER BY seq DESC",
        {kind, std::string_view(*query.name), before, hidden, metrics, first, last}, [&](const Row& row) {
          const bool wanted = !query.parent || row.text(4) == *query.parent;
          return !wanted || keep(row);
        });
  } else if (query.parent) {
    database.each_while(
        "SELECT " RECORD_COLUMNS
        " FROM record LEFT JOIN summary ON summary.run = record.seq AND CAST(?6 AS BIGINT) = 1 "
        "WHERE kind = ?1 AND parent = ?2 AND seq < ?3 AND hidden <= ?4 AND state BETWEEN ?7 AND ?8 ORDER BY seq DESC "
        "LIMIT ?5",
        {kind, std::string_view(*query.parent), before, hidden, query.limit, metrics, first, last}, keep);
  } else {
    database.each_while(
        "SELECT " RECORD_COLUMNS
        " FROM record LEFT JOIN summary ON summary.run = record.seq AND CAST(?5 AS BIGINT) = 1 "
        "WHERE kind = ?1 AND seq < ?2 AND hidden <= ?3 AND state BETWEEN ?6 AND ?7 ORDER BY seq DESC LIMIT ?4",
        {kind, before, hidden, query.limit, metrics, first, last}, keep);
  }
  finish(database, page, query.keys);
  const bool more = is_full();
  return {std::move(page.records), more};
}

#undef RECORD_COLUMNS

}  // namespace sinew::store
