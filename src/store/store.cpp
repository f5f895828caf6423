#include "store/store.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/cost_limit.h"
#include "base/proc.h"
#include "store/commit_queue.h"
#include "store/schema.h"
#include "store/store_file.h"
#include "store/transaction.h"

namespace sinew::store {
namespace {

constexpr size_t kMaxReaders = 8;
constexpr int64_t kReceiptDays = 30, kAllBytes = std::numeric_limits<int64_t>::max();

}  // namespace

struct Store::State {
  State(const std::string& place, Options given)
      : where(place),
        options(std::move(given)),
        writer(open(Access::kWrite)),
        queue([this](auto group) { commit(group); }) {
    migrate(*writer, migrations(), wall_ms(), without_password(where));
    expire_leases_after_reboot();
    delete_old_receipts();
    if (!is_postgres(where)) file.emplace(where);
  }

  std::unique_ptr<Database> open(Access access) const {
    return is_postgres(where) ? open_postgres(where, options, access) : open_sqlite(where, options, access);
  }
  // Returns the seconds on the clock of leases, as the writer last measured it.
  double now() const { return options.clock->monotonic_seconds() + lease_clock_offset; }
  int64_t wall_ms() const { return static_cast<int64_t>(options.clock->wall_seconds() * 1000); }

  void expire_leases_after_reboot();
  void delete_old_receipts();
  void commit(std::span<PendingWrite* const> group);
  bool commit_once(std::span<PendingWrite* const> group, bool& begun);

  // Calls `work` with a connection that no other thread uses. All its reads see one snapshot. Calls `work` again if the
  // connection is lost.
  template <typename Work>
  auto read(const Work& work) {
    const double since = options.clock->monotonic_seconds();
    for (;;) {
      std::unique_ptr<Database> reader;
      try {
        CostLimit::check_current();
        if (file) file->check();
        reader = borrow();
        reader->begin_read();
        auto result = work(*reader);
        reader->commit(Database::Durability::kNone);
        give_back(std::move(reader));
        return result;
      } catch (const ConnectionLost& lost) {
        if (reader != nullptr) give_back(nullptr);
        if (options.clock->monotonic_seconds() - since > options.reconnect_seconds)
          throw Error("STORE_CONNECTION_LOST", lost.what(), lost.hint);
        CostLimit::check_current();
        options.clock->sleep_seconds(0.05);
      } catch (const Error& error) {
        if (reader != nullptr) give_back(nullptr);
        note_damage(error);
        throw;
      } catch (...) {
        if (reader != nullptr) give_back(nullptr);
        throw;
      }
    }
  }
  void note_damage(const Error& error);
  Condition look(double seconds);
  std::unique_ptr<Database> borrow();
  void give_back(std::unique_ptr<Database> reader);

  const std::string where;
  const Options options;
  SeriesNumbers series;
  std::unique_ptr<Database> writer;
  // How far the clock of leases is ahead of `options.clock`, as the writer last measured it.
  std::atomic<double> lease_clock_offset = 0;

  std::optional<StoreFile> file;     // only for a SQLite store
  std::unique_ptr<Database> looker;  // the connection of look()
  std::mutex damage_mutex;
  std::string damage;  // the damage that a call has found; empty: none

  std::mutex readers_mutex;
  std::condition_variable reader_free;
  std::vector<std::unique_ptr<Database>> readers;
  size_t readers_open = 0;

  CommitQueue queue;  // declared last, so that it is destroyed first
};

// The leases of a SQLite store use the machine's monotonic clock, which restarts at a reboot. No process survives a
// reboot. So the first process that opens the store after a reboot expires all leases.
void Store::State::expire_leases_after_reboot() {
  lease_clock_offset = writer->now() - options.clock->monotonic_seconds();
  if (is_postgres(where)) return;
  const std::string boot = options.boot_id.empty() ? boot_id() : options.boot_id;
  Database& database = *writer;
  database.begin_write();
  try {
    std::string known;
    database.each("SELECT boot FROM machine WHERE id = 1", {}, [&](const Row& row) { known = row.text(0); });
    const bool rebooted = known != boot;
    if (rebooted) {
      database.run("INSERT INTO machine(id, boot) VALUES (1, ?1) ON CONFLICT(id) DO UPDATE SET boot = excluded.boot",
                   {std::string_view(boot)});
      database.run("UPDATE lease SET until = 0", {});
    }
    database.commit(rebooted ? Database::Durability::kDurable : Database::Durability::kNone);
  } catch (...) {
    database.roll_back();
    throw;
  }
}

void Store::State::delete_old_receipts() {
  writer->begin_write();
  try {
    writer->run("DELETE FROM receipt WHERE at_ms < ?1", {wall_ms() - kReceiptDays * 86'400'000});
    writer->commit(Database::Durability::kNone);
  } catch (...) {
    writer->roll_back();
    throw;
  }
}

// Returns false if the connection was lost before the commit; then nothing was written. Sets `begun` once the write
// transaction has started.
bool Store::State::commit_once(std::span<PendingWrite* const> group, bool& begun) {
  try {
    if (file) file->check();
    writer->begin_write();
    begun = true;
    Transaction transaction{*writer, series, writer->now(), wall_ms()};
    lease_clock_offset = transaction.now - options.clock->monotonic_seconds();
    writer->each("SELECT coalesce(max(seq), 0) FROM event", {},
                 [&](const Row& row) { transaction.seq = row.integer(0); });
    bool any_accepted = false;
    for (PendingWrite* one : group) {
      one->outcome = apply(transaction, *one->batch);
      any_accepted |= one->outcome.has_value();
    }
    flush_points(transaction);
    writer->commit(any_accepted ? Database::Durability::kDurable : Database::Durability::kNone);
    if (file && any_accepted) file->check();  // if the file has lost its name, the writes are lost with it
    return true;
  } catch (const ConnectionLost&) {
    writer->roll_back();
    series.clear();
    return false;
  } catch (...) {
    writer->roll_back();
    series.clear();
    throw;
  }
}

void Store::State::commit(std::span<PendingWrite* const> group) {
  const double since = options.clock->monotonic_seconds();
  bool begun = false;
  try {
    while (!commit_once(group, begun)) {
      if (options.clock->monotonic_seconds() - since > options.reconnect_seconds) {
        throw OutcomeUnknown("STORE_CONNECTION_LOST",
                             "store " + without_password(where) + ": the connection to the server keeps breaking",
                             "check the server's log");
      }
    }
  } catch (const OutcomeUnknown&) {
    for (PendingWrite* one : group) one->error = std::current_exception();
  } catch (const Error& error) {
    note_damage(error);
    // One batch may have caused the failure. Nothing was written, so try each batch of the group alone.
    if (begun && group.size() > 1) {
      for (PendingWrite* const& one : group) commit({&one, 1});
    } else {
      for (PendingWrite* one : group) one->error = std::current_exception();
    }
  } catch (...) {
    for (PendingWrite* one : group) one->error = std::current_exception();
  }
}

void Store::State::note_damage(const Error& error) {
  if (error.code != ErrorCode("STORE_DAMAGED")) return;
  const std::lock_guard lock(damage_mutex);
  damage = error.what();
}

Condition Store::State::look(double seconds) {
  CostLimit limit(system_clock(), system_clock().monotonic_seconds() + seconds, kAllBytes);
  const CostLimit::Scope scope(&limit);
  try {
    limit.check();
    std::optional<int64_t> shrunk_to;
    if (file) {
      file->check();
      bool shrunk = false;
      const int64_t size = file->size(shrunk);
      if (shrunk) shrunk_to = size;
    }
    if (looker == nullptr) looker = open(Access::kRead);
    looker->begin_read();
    looker->each("SELECT boot FROM machine", {}, [](const Row&) {});
    const std::string problem = looker->damage(shrunk_to);
    const std::string bad_page = problem.empty() ? looker->quick_check() : "";
    looker->commit(Database::Durability::kNone);
    if (!bad_page.empty()) note_damage(Error("STORE_DAMAGED", "store " + where + ": " + bad_page, ""));
    if (!problem.empty()) {
      looker = nullptr;
      return {"store " + without_password(where) + ": " + problem, false};
    }
    if (shrunk_to) file->accept(*shrunk_to);
  } catch (const Error& error) {
    looker = nullptr;
    return {error.what(), false, error.code == ErrorCode("REQUEST_TOO_LONG")};
  } catch (const std::exception& error) {
    looker = nullptr;
    return {error.what(), false};
  }
  const std::lock_guard lock(damage_mutex);
  return {damage, true};
}

std::unique_ptr<Database> Store::State::borrow() {
  std::unique_lock lock(readers_mutex);
  constexpr auto kLookAgain = std::chrono::milliseconds(50);  // how often a wait checks the CostLimit of its request
  while (!reader_free.wait_for(lock, kLookAgain, [this] { return !readers.empty() || readers_open < kMaxReaders; }))
    CostLimit::check_current();
  if (!readers.empty()) {
    auto reader = std::move(readers.back());
    readers.pop_back();
    return reader;
  }
  ++readers_open;
  lock.unlock();
  try {
    return open(Access::kRead);
  } catch (...) {
    give_back(nullptr);
    throw;
  }
}

// Returns a connection to the pool. Null means that the connection was closed.
void Store::State::give_back(std::unique_ptr<Database> reader) {
  const std::lock_guard lock(readers_mutex);
  if (reader == nullptr)
    --readers_open;
  else
    readers.push_back(std::move(reader));
  reader_free.notify_one();
}

Store::Store(const std::string& where, Options options) : state_(std::make_unique<State>(where, std::move(options))) {}
Store::~Store() = default;

Outcome Store::write(const Batch& batch) {
  // this thread may also commit the batches of others, so the limit of its request does not apply
  const CostLimit::Scope no_limit(nullptr);
  return state_->queue.write(batch);
}

std::optional<Record> Store::find(const Subject& subject) {
  return std::move(find({&subject, 1}).front());
}
std::vector<std::optional<Record>> Store::find(std::span<const Subject> subjects) {
  return state_->read([&](Database& database) { return read_subjects(database, subjects, kAllBytes); });
}
std::vector<std::optional<Record>> Store::find_some(std::span<const Subject> subjects, int64_t max_bytes) {
  return state_->read([&](Database& database) { return read_subjects(database, subjects, max_bytes); });
}
RecordPage Store::page(const Query& query) {
  if (query.limit <= 0) return {};
  return state_->read([&](Database& database) { return read_records(database, query); });
}
std::vector<Record> Store::list(const Query& query) {
  RecordPage some = page(query);
  std::vector<Record> records = std::move(some.records);
  for (Query next = query; some.more && static_cast<int64_t>(records.size()) < query.limit;) {
    next.before = records.back().seq;
    next.limit = query.limit - static_cast<int64_t>(records.size());
    some = page(next);
    for (Record& record : some.records) {
      CostLimit::hold_current(bytes_of(record));
      records.push_back(std::move(record));
    }
  }
  return records;
}
void Store::each(Query query, const std::function<void(Record record)>& take) {
  for (bool more = true; more;) {
    RecordPage some = page(query);
    if (!some.records.empty()) query.before = some.records.back().seq;
    more = some.more;
    for (Record& record : some.records) take(std::move(record));
    CostLimit::check_current();
  }
}
std::vector<Record> Store::all(const Query& query) {
  std::vector<Record> records;
  each(query, [&](Record record) {
    CostLimit::hold_current(bytes_of(record));
    records.push_back(std::move(record));
  });
  return records;
}
std::vector<std::vector<Point>> Store::history(std::span<const Series> series, const Window& window) {
  return state_->read([&](Database& database) { return read_history(database, series, window); });
}
std::vector<Attachment> Store::attachments(const Subject& subject, const std::string& folder) {
  return state_->read([&](Database& database) { return read_attachments(database, subject, folder); });
}
std::optional<Attachment> Store::attachment(const Subject& subject, const std::string& path) {
  return state_->read([&](Database& database) { return read_attachment(database, subject, path); });
}
std::vector<Content> Store::contents() {
  return state_->read([&](Database& database) { return read_contents(database, true); });
}
std::vector<Content> Store::unreferenced_contents() {
  return state_->read([&](Database& database) { return read_contents(database, false); });
}
std::vector<Link> Store::links(const Subject& subject) {
  return state_->read([&](Database& database) { return read_links(database, subject); });
}
std::string Store::note(const std::string& name) {
  return state_->read([&](Database& database) { return read_note(database, name); });
}
std::vector<Event> Store::events(const EventQuery& query) {
  return state_->read([&](Database& database) { return read_events(database, query); });
}
int64_t Store::newest_event(const Subject& subject) {
  return state_->read([&](Database& database) { return read_newest_event(database, subject); });
}

Condition Store::look(double seconds) {
  return state_->look(seconds);
}

Lease Store::lease(const std::string& name) {
  return state_->read([&](Database& database) { return read_lease(database, name, state_->now()); });
}

std::vector<std::string> Store::check() {
  return state_->read([&](Database& database) {
    std::vector<std::string> found = database.check();
    database.each("SELECT count(*), coalesce(max(seq), 0) FROM event", {}, [&](const Row& row) {
      if (row.integer(0) == row.integer(1)) return;
      found.push_back("the log of events has gaps: it has " + std::to_string(row.integer(0)) +
                      " events, and the last has number " + std::to_string(row.integer(1)));
    });
    return found;
  });
}

}  // namespace sinew::store
