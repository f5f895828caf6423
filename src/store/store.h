// Sinew's database: experiments, runs, metrics, models, studies, artifacts and leases.
//
// registry/, web/ and server/ use it. A store is one SQLite file (the default) or one PostgreSQL schema (by URL). Both
// give the same answers in the same order. Only this room speaks SQL; no type of SQLite or PostgreSQL leaves it. The
// store checks whether a change is allowed (states, fencing tokens, names). It never interprets the body of a record;
// the rooms above define what bodies mean.
//
// Changes are plain structs. Store::write() applies a batch of changes atomically; the batch is durable when write()
// returns. Any number of threads and processes may use one store. docs/formats/store.md describes the tables.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace sinew::store {

// ---- subjects and states -------------------------------------------------------------------------------------------

enum class Kind { kExperiment = 1, kRun, kModel, kVersion, kStudy, kData, kLease, kContent };
const char* to_string(Kind kind);

// What a change, an event or a link refers to. The caller chooses ids: 1 to 500 bytes of UTF-8 without NUL.
struct Subject {
  Kind kind = Kind::kRun;
  std::string id;
  int64_t number = 0;  // for a version: 1, 2, ... within the model `id`; otherwise 0
  auto operator<=>(const Subject&) const = default;
};

enum class RunState { kQueued = 1, kRunning, kPaused, kFinished, kFailed, kStopped };
const char* to_string(RunState state);
bool is_over(RunState state);

using Labels = std::map<std::string, std::string>;

// The points of a series form a set: a point that is logged twice is stored once. A value may be any double, including
// NaN and infinities.
struct Point {
  int64_t step = 0, time_ms = 0;
  double value = 0;
};

// ---- changes -------------------------------------------------------------------------------------------------------

// Creates an experiment, run, model, version or study. The caller leaves a version's number at 0, and the store assigns
// the next one. Names of experiments and studies are unique. The record belongs to the batch's actor for good.
struct Create {
  Subject subject;
  // `parent` is the experiment of a run, or the run that produced a version. If `name` is empty, the id is the name.
  std::string parent = {}, name = {}, body = {};
  Labels params = {}, tags = {};
  RunState state = RunState::kRunning;  // for a run
  int64_t begun_ms = 0;                 // 0: now
};
// Changes the fields that are given. A hidden record is kept but left out of lists. The store records the last actor
// that hid it.
struct Update {
  Subject subject;
  std::optional<std::string> name = {}, body = {};
  std::optional<bool> hidden = {};
};
// Adds parameters. A parameter never changes: setting it to another value is refused.
struct SetParams {
  Subject subject;
  Labels params;
};
struct SetTags {
  Subject subject;
  std::map<std::string, std::optional<std::string>> tags;  // nullopt: remove the tag
};
// Moves a run to another state. An attempt of a run ends once: reporting the same end again succeeds and adds no event;
// reporting another end is refused. `reopen` starts the next attempt of a run that is over.
struct SetRunState {
  std::string run;
  RunState to = RunState::kFinished;
  std::string why = {};
  bool reopen = false;
  int64_t at_ms = 0;  // 0: now
};
// Points an alias at a version of the model. Version 0 removes the alias. If `expected` is given (0: no alias), the
// store refuses the change unless the alias points to that version. So two users who promote or roll back at once
// cannot overwrite each other's change unnoticed.
struct SetAlias {
  std::string model, alias;
  int64_t version = 0;
  std::optional<int64_t> expected = {};
};
struct AddPoints {
  std::string run, key;
  std::vector<Point> points;
};
// Removes the run's points from `from_step` on, because the run went back to a checkpoint.
struct DropPoints {
  std::string run;
  int64_t from_step = 0;
  std::optional<std::set<std::string>> keys = {};  // only these series; nullopt: every series
};
// Attaches content, which its digest identifies, to a path of a record. A path holds one content; a later Attach
// replaces it.
struct Attach {
  Subject subject;
  std::string path, digest;
  int64_t bytes = 0;
};
struct Detach {
  Subject subject;
  std::string path;
};
// Removes the row of a content that is no longer on the disk. The store refuses it while a record refers to the
// content.
struct ForgetContent {
  std::string digest;
};
// An edge of the lineage graph: `from` was made with `to` in this role ("data", "parent", "environment").
struct Link {
  Subject from;
  std::string role;
  Subject to;
};
// Stores a text under a name. Other rooms keep state in such notes, for example how far they have read a file. Adds no
// event.
struct SetNote {
  std::string name, text;
};

// A named lease has at most one holder. Each successful Acquire raises the lease's fence (a fencing token). A batch
// that names the lease in Batch::held is refused once another process has acquired the lease.
struct Acquire {
  std::string name, holder;
  double seconds = 10;
};
struct Renew {
  std::string name;
  int64_t fence = 0;
  double seconds = 10;
};
struct Release {
  std::string name;
  int64_t fence = 0;
};

using Change = std::variant<Create, Update, SetParams, SetTags, SetRunState, SetAlias, AddPoints, DropPoints, Attach,
                            Detach, ForgetContent, Link, SetNote, Acquire, Renew, Release>;

struct HeldLease {
  std::string name;
  int64_t fence = 0;
};
// On whose behalf a batch is written: the name of an account (of a token), and the address of the caller. Both are
// empty for a program that writes on its own behalf, such as the index.
struct Actor {
  std::string name, address;
};
struct Batch {
  std::vector<Change> changes;
  // Idempotency key. The store applies the batch with a given key once. Writing it again returns the first answers.
  std::string key = {};
  std::vector<HeldLease> held = {};  // the store refuses the batch unless the caller still holds all of these leases
  // The store refuses the batch if the subject has an event after `seq`: then the caller decided on outdated data.
  struct Unchanged {
    Subject subject;
    int64_t seq = 0;
  };
  std::vector<Unchanged> unchanged = {};
  // The store refuses the batch if one of these records is missing or hidden, or is a run of a hidden experiment.
  std::vector<Subject> active = {};
  Actor actor = {};  // the actor that every event of the batch names
};

// ---- answers -------------------------------------------------------------------------------------------------------

struct Answer {
  int64_t number = 0;     // the number of a new version, or the attempt of a run
  int64_t fence = 0;      // the fence of a lease
  bool repeated = false;  // true: the store was already in the wanted state, so the change had no effect
};
struct Receipt {
  int64_t seq = 0;        // number of the batch's newest event; 0: the batch added no event
  bool repeated = false;  // true: a batch with this key was written before, and these are its answers
  std::vector<Answer> answers;
};
// The store refused the batch and wrote none of it. Callers must expect a refusal, so it is not an Error.
struct Refusal {
  enum class Reason { kInvalid, kNotFound, kExists, kConflict, kStale, kHeld, kHidden } reason = Reason::kInvalid;
  std::string why;  // a message for users
};
using Outcome = std::expected<Receipt, Refusal>;

// ---- records that are read -----------------------------------------------------------------------------------------

struct Metric {
  int64_t count = 0;  // number of points; a point that was logged twice may be counted twice
  Point last;         // the point with the highest step
  double min = std::numeric_limits<double>::quiet_NaN(), max = min;  // NaN if only NaN was logged
};
struct Alias {
  std::string name;
  int64_t version = 0, previous = 0;  // `previous`: the version that the alias pointed to before; 0 if there was none
};
struct Record {
  Subject subject;
  std::string parent, name, body;
  RunState state = RunState::kRunning;  // the state of a run
  int64_t attempt = 1;                  // the attempt of a run: 1 for the first one
  int64_t begun_ms = 0, ended_ms = 0;   // 0: not yet
  bool hidden = false;
  int64_t seq = 0;  // number of the event that created the record; orders records by creation
  Labels params, tags;
  std::map<std::string, Metric> metrics;
  std::vector<Alias> aliases;  // the aliases of a model
  int64_t changed_ms = 0;      // time of the newest event, for an experiment, model or version; otherwise 0
  std::string owner;           // name of the actor that created it; empty if a program created it on its own behalf
  // name of the last actor that hid it; empty if it is visible, or if a program hid it on its own behalf
  std::string hidden_by;
};
int64_t bytes_of(const Record& record);  // roughly how much memory the record takes
struct Query {
  Kind kind = Kind::kRun;
  std::optional<std::string> parent = {}, name = {};
  bool hidden = false;                             // true: hidden records are included
  bool metrics = true;                             // true: Record::metrics is filled in
  int64_t before = 0;                              // only records that were created before this event; 0: all
  int64_t limit = 1000;                            // at most this many records, the newest first
  std::optional<RunState> state = {};              // only runs in this state
  std::optional<std::set<std::string>> keys = {};  // only these metrics; nullopt: all
};
// A part of a list.
struct RecordPage {
  std::vector<Record> records;
  bool more = false;  // true: there may be more records; set Query::before to the last record's `seq` to continue
};
struct Series {
  std::string run, key;
};
struct Window {
  int64_t first_step = std::numeric_limits<int64_t>::min(), last_step = std::numeric_limits<int64_t>::max();
  int64_t max_points = 0;  // at least 4; 0: all points
};
struct Attachment {
  std::string path, digest;
  int64_t bytes = 0;
};
struct Content {
  std::string digest;
  int64_t bytes = 0;
};
struct Event {
  int64_t seq = 0, at_ms = 0;
  std::string what;  // docs/formats/store.md lists the values
  Subject subject;
  std::string body;
  Actor actor = {};
};
struct EventQuery {
  int64_t after = 0, limit = 1000;
  std::optional<Subject> subject = {};  // only events of this subject's kind and id; the subject's number is ignored
  int64_t bytes = INT64_MAX;            // the last event is the one that brings the bodies to this many bytes
};
struct Lease {
  std::string holder;  // empty: no holder
  int64_t fence = 0;
  double seconds = 0;  // time left; 0 or less: the lease has expired
};

// Tells whether a store can be used now.
struct Condition {
  std::string problem;  // empty: there is none
  bool usable = true;   // false: neither reads nor writes can succeed
  bool slow = false;    // true: look() did not end in time, so it found out nothing
};

// ---- the store -----------------------------------------------------------------------------------------------------

struct Options {
  Clock* clock = &system_clock();
  double lock_timeout_seconds = 30;  // how long a write waits for other processes before it throws STORE_BUSY
  double reconnect_seconds = 20;     // how long the store tries to restore a lost PostgreSQL connection
  std::string boot_id = {};          // identifies this boot of the machine; empty: the kernel's boot id
};

// Returns whether the location is a URL that contains a password. A program must not take such a URL from its command
// line, because every user of the machine can read that.
bool has_password(const std::string& where);

// Any thread may call any method. A method throws Error (codes STORE_*) if the disk or the connection fails or the file
// is damaged. If write() throws, the batch is not acknowledged; the caller may write it again under the same key. If
// the thread has a CostLimit (base/cost_limit.h) and exceeds it, a read throws the limit's Error.
class Store {
 public:
  // `where` is the path of a file, which is created if it is missing, or a URL postgresql://... The constructor
  // upgrades an older store to the current version and refuses a newer one (STORE_NEWER_VERSION).
  explicit Store(const std::string& where, Options options = {});
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  Outcome write(const Batch& batch);
  Outcome write(Change change) { return write(Batch{{std::move(change)}}); }

  std::optional<Record> find(const Subject& subject);
  std::vector<std::optional<Record>> find(std::span<const Subject> subjects);  // all from one snapshot
  // Like find(), but stops once the records have about `max_bytes`, because a record may be large. Returns the results
  // for the first subjects, at least one. The caller continues with the rest.
  std::vector<std::optional<Record>> find_some(std::span<const Subject> subjects, int64_t max_bytes);
  // Returns up to `query.limit` records from one snapshot; fewer if they are large.
  RecordPage page(const Query& query);
  // returns up to `query.limit` records, from several pages if they are large
  std::vector<Record> list(const Query& query);
  // Calls `take` for every record that matches, however many there are. `query.limit` is the size of a page, and each
  // page comes from one snapshot. `take` may use the store. all() collects the records in memory.
  void each(Query query, const std::function<void(Record record)>& take);
  std::vector<Record> all(const Query& query);
  // Returns one list of points for each series, ordered by step, then by time. A series that does not exist gives an
  // empty list. If `max_points` is set, keeps only the first, last, minimum and maximum of each of max_points/4 slices
  // (M4: Jugel, Jerzak, Hackenbroich, Markl, "M4: A Visualization-Oriented Time Series Data Aggregation", VLDB 2014).
  std::vector<std::vector<Point>> history(std::span<const Series> series, const Window& window = {});
  // Returns the attachments ordered by path. If `folder` is given, returns only those inside that folder, at any depth.
  std::vector<Attachment> attachments(const Subject& subject, const std::string& folder = "");
  std::optional<Attachment> attachment(const Subject& subject, const std::string& path);
  std::vector<Content> contents();                  // contents that some record refers to
  std::vector<Content> unreferenced_contents();     // contents that no record refers to
  std::vector<Link> links(const Subject& subject);  // edges from and to the subject
  std::string note(const std::string& name);        // empty if there is no such note
  std::vector<Event> events(const EventQuery& query);
  // Returns the number of the newest event of the subject's kind and id, or 0 if there is none. Ignores the subject's
  // number. To decide on consistent data, call this first, then read the data, then pass the result in
  // Batch::unchanged.
  int64_t newest_event(const Subject& subject);
  Lease lease(const std::string& name);
  // Finds out on a separate connection, within about `seconds`, whether the store can be used. It may take longer in
  // the disk, while it connects, or if this process does not run. For SQLite, checks that
  // the file is still the one that was opened, and its header and size. For PostgreSQL, checks that the server answers.
  // Also reports damage that an earlier call has found. One thread at a time may call it.
  Condition look(double seconds);
  // Checks that the log of events has no gap. For SQLite, also runs its integrity check. Returns one message for each
  // problem.
  std::vector<std::string> check();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sinew::store
