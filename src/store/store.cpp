#include "store/store.h"

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/proc.h"
#include "store/commit_queue.h"
#include "store/schema.h"
#include "store/transaction.h"

namespace sinew::store {
namespace {

constexpr size_t kMostReaders = 8;
constexpr int64_t kReceiptDays = 30;

}  // namespace

struct Store::State {
  State(const std::string& place, Options given)
      : where(place),
        options(std::move(given)),
        writer(open(Use::kWrite)),
        queue([this](auto group) { commit(group); }) {
    migrate(*writer, migrations(), wall_ms(), without_password(where));
    begin_on_this_machine();
    forget_old_receipts();
  }

  std::unique_ptr<Database> open(Use use) const {
    return is_postgres(where) ? open_postgres(where, options, use) : open_sqlite(where, options, use);
  }
  // By the clock of leases, for those who read.
  double now() const { return options.clock->monotonic_seconds() + leases_ahead; }
  int64_t wall_ms() const { return static_cast<int64_t>(options.clock->wall_seconds() * 1000); }

  void begin_on_this_machine();
  void forget_old_receipts();
  void commit(std::span<Pending* const> group);
  bool commit_once(std::span<Pending* const> group, bool& begun);

  // With a connection of its own for as long as it takes; what `work` reads is of one instant.
  template <typename Work>
  auto read(const Work& work) {
    const double since = options.clock->monotonic_seconds();
    for (;;) {
      std::unique_ptr<Database> reader;
      try {
        reader = borrow();
        reader->begin_read();
        auto result = work(*reader);
        reader->commit(Database::Promise::kNothing);
        give_back(std::move(reader));
        return result;
      } catch (const LostConnection& lost) {
        if (reader != nullptr) give_back(nullptr);
        if (options.clock->monotonic_seconds() - since > options.reconnect_seconds) throw Error(lost.what(), lost.hint);
        options.clock->sleep_seconds(0.05);
      } catch (...) {
        if (reader != nullptr) give_back(nullptr);
        throw;
      }
    }
  }
  std::unique_ptr<Database> borrow();
  void give_back(std::unique_ptr<Database> reader);

  const std::string where;
  const Options options;
  SeriesNumbers series;
  std::unique_ptr<Database> writer;
  std::atomic<double> leases_ahead = 0;  // of the clock given; as the writer saw it last

  std::mutex readers_mutex;
  std::condition_variable reader_free;
  std::vector<std::unique_ptr<Database>> readers;
  size_t readers_open = 0;

  CommitQueue queue;  // last: it goes first
};

// Leases of a file are told by the machine's clock, which begins anew with the machine, as all its processes do.
void Store::State::begin_on_this_machine() {
  leases_ahead = writer->now() - options.clock->monotonic_seconds();
  if (is_postgres(where)) return;
  const std::string boot = options.boot.empty() ? boot_id() : options.boot;
  Database& database = *writer;
  database.begin_write();
  try {
    std::string known;
    database.each("SELECT boot FROM machine WHERE id = 1", {}, [&](const Row& row) { known = row.text(0); });
    const bool another = known != boot;
    if (another) {
      database.run("INSERT INTO machine(id, boot) VALUES (1, ?1) ON CONFLICT(id) DO UPDATE SET boot = excluded.boot",
                   {std::string_view(boot)});
      database.run("UPDATE lease SET until = 0", {});
      database.run("UPDATE trial SET until = 0 WHERE state = 2", {});
    }
    database.commit(another ? Database::Promise::kDurable : Database::Promise::kNothing);
  } catch (...) {
    database.roll_back();
    throw;
  }
}

void Store::State::forget_old_receipts() {
  writer->begin_write();
  try {
    writer->run("DELETE FROM receipt WHERE at_ms < ?1", {wall_ms() - kReceiptDays * 86'400'000});
    writer->commit(Database::Promise::kNothing);
  } catch (...) {
    writer->roll_back();
    throw;
  }
}

// False: the connection was lost before the commit, and nothing of it was done.
bool Store::State::commit_once(std::span<Pending* const> group, bool& begun) {
  try {
    writer->begin_write();
    begun = true;
    Transaction transaction{*writer, series, writer->now(), wall_ms()};
    leases_ahead = transaction.now - options.clock->monotonic_seconds();
    writer->each("SELECT coalesce(max(seq), 0) FROM event", {},
                 [&](const Row& row) { transaction.seq = row.integer(0); });
    bool promises = false;
    for (Pending* one : group) {
      one->outcome = apply(transaction, *one->batch);
      promises |= one->outcome.has_value();
    }
    settle_points(transaction);
    writer->commit(promises ? Database::Promise::kDurable : Database::Promise::kNothing);
    return true;
  } catch (const LostConnection&) {
    writer->roll_back();
    series.forget();
    return false;
  } catch (...) {
    writer->roll_back();
    series.forget();
    throw;
  }
}

void Store::State::commit(std::span<Pending* const> group) {
  const double since = options.clock->monotonic_seconds();
  bool begun = false;
  try {
    while (!commit_once(group, begun)) {
      if (options.clock->monotonic_seconds() - since > options.reconnect_seconds) {
        throw Unsettled("store " + without_password(where) + ": the connection is lost again and again",
                        "check the server's log");
      }
    }
  } catch (const Unsettled&) {
    for (Pending* one : group) one->trouble = std::current_exception();
  } catch (const Error&) {
    // What one of them brought about is not the others' fault: nothing of it was done, so each may try alone.
    if (begun && group.size() > 1) {
      for (Pending* const& one : group) commit({&one, 1});
    } else {
      for (Pending* one : group) one->trouble = std::current_exception();
    }
  } catch (...) {
    for (Pending* one : group) one->trouble = std::current_exception();
  }
}

std::unique_ptr<Database> Store::State::borrow() {
  std::unique_lock lock(readers_mutex);
  reader_free.wait(lock, [this] { return !readers.empty() || readers_open < kMostReaders; });
  if (!readers.empty()) {
    auto reader = std::move(readers.back());
    readers.pop_back();
    return reader;
  }
  ++readers_open;
  lock.unlock();
  try {
    return open(Use::kRead);
  } catch (...) {
    give_back(nullptr);
    throw;
  }
}

// Null: it is of no use any more.
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
  return state_->queue.write(batch);
}
void Store::submit(Batch batch, Done done) {
  state_->queue.submit(std::move(batch), std::move(done));
}

std::optional<Record> Store::find(const Subject& subject) {
  return std::move(find({&subject, 1}).front());
}
std::vector<std::optional<Record>> Store::find(std::span<const Subject> subjects) {
  return state_->read([&](Database& database) { return read_subjects(database, subjects); });
}
std::vector<Record> Store::list(const Query& query) {
  return state_->read([&](Database& database) { return read_records(database, query); });
}
void Store::each(Query query, const std::function<void(Record record)>& take) {
  while (true) {
    std::vector<Record> page = list(query);
    const bool last = static_cast<int64_t>(page.size()) < query.limit;
    if (!page.empty()) query.before = page.back().seq;
    for (Record& record : page) take(std::move(record));
    if (last) return;
  }
}
std::vector<Record> Store::all(const Query& query) {
  std::vector<Record> records;
  each(query, [&](Record record) { records.push_back(std::move(record)); });
  return records;
}
std::vector<std::vector<Point>> Store::history(std::span<const Series> series, const Window& window) {
  return state_->read([&](Database& database) { return read_history(database, series, window); });
}
std::vector<Attachment> Store::attachments(const Subject& subject, const std::string& below) {
  return state_->read([&](Database& database) { return read_attachments(database, subject, below); });
}
std::optional<Attachment> Store::attachment(const Subject& subject, const std::string& path) {
  return state_->read([&](Database& database) { return read_attachment(database, subject, path); });
}
std::vector<Content> Store::contents() {
  return state_->read([&](Database& database) { return read_contents(database, false); });
}

std::vector<Content> Store::loose_contents() {
  return state_->read([&](Database& database) { return read_contents(database, true); });
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
std::vector<Trial> Store::trials(const std::string& study) {
  return state_->read([&](Database& database) { return read_trials(database, study, state_->now()); });
}
Lease Store::lease(const std::string& name) {
  return state_->read([&](Database& database) { return read_lease(database, name, state_->now()); });
}

std::vector<std::string> Store::check() {
  return state_->read([&](Database& database) {
    std::vector<std::string> found = database.check();
    database.each("SELECT count(*), coalesce(max(seq), 0) FROM event", {}, [&](const Row& row) {
      if (row.integer(0) == row.integer(1)) return;
      found.push_back("the log of events has " + std::to_string(row.integer(0)) + " entries up to number " +
                      std::to_string(row.integer(1)));
    });
    return found;
  });
}

}  // namespace sinew::store
