// The tables: what is known of experiments, runs, models and studies, kept so that nothing acknowledged is ever lost.
//
// For registry/, tune/, jobs/ and the server above them. One file (SQLite) by default, a PostgreSQL database by URL;
// the same words, answers and order on both. The one room that speaks SQL, and nothing of SQL leaves it. It judges
// whether a change may be made (states, fences, names) and never what a text means: bodies belong to the rooms above.
//
// docs/formats/store.md describes what is kept. Changes are plain structs; `write` makes a batch of them, all or none,
// durable when it returns. Any number of threads and processes may use one store.
#pragma once

#include <cstdint>
#include <exception>
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

// ---- what there is -------------------------------------------------------------------------------------------------

enum class Kind { kExperiment = 1, kRun, kModel, kVersion, kStudy, kData, kLease, kContent };
const char* to_string(Kind kind);

// What a change, an event or a link is about. Ids are chosen by the caller: 1 to 500 bytes of UTF-8 without NUL.
struct Subject {
  Kind kind = Kind::kRun;
  std::string id;
  int64_t number = 0;  // of a version: 1, 2, ... of the model `id`
  auto operator<=>(const Subject&) const = default;
};

enum class RunState { kQueued = 1, kRunning, kPaused, kFinished, kFailed, kStopped };
const char* to_string(RunState state);
bool is_over(RunState state);

enum class TrialState { kWaiting = 1, kRunning, kDone, kPruned, kFailed };
const char* to_string(TrialState state);

using Labels = std::map<std::string, std::string>;

// Points of a series are a set: one logged twice is there once. Values may be anything a double may be.
struct Point {
  int64_t step = 0, time_ms = 0;
  double value = 0;
};

// ---- changes -------------------------------------------------------------------------------------------------------

// A new record of kind experiment, run, model, version or study. Of a version leave number 0: it is given the next one.
// Names of experiments and studies are unique.
struct Create {
  Subject subject;
  std::string parent = {}, name = {}, body = {};  // parent: of a run its experiment; of a version the run it came from
  Labels params = {}, tags = {};
  RunState state = RunState::kRunning;  // of a run
  int64_t begun_ms = 0;                 // 0: now
};
// Hidden records are kept and left out of lists.
struct Amend {
  Subject subject;
  std::optional<std::string> name = {}, body = {};
  std::optional<bool> hidden = {};
};
// What a run was given: set once, and never to another value.
struct SetParams {
  Subject subject;
  Labels params;
};
struct SetTags {
  Subject subject;
  std::map<std::string, std::optional<std::string>> tags;  // nullopt: remove
};
// A run goes on to another state. An attempt ends once: the same end told again is no second event, another is refused.
// `reopen` begins the next attempt of a run that is over.
struct Move {
  std::string run;
  RunState to = RunState::kFinished;
  std::string why = {};
  bool reopen = false;
  int64_t at_ms = 0;  // 0: now
};
// An alias names one version of a model. Version 0 removes it. With `expected` (0: no alias) it is refused when the
// alias stands elsewhere: promote and rollback of several people can not undo each other unseen.
struct SetAlias {
  std::string model, alias;
  int64_t version = 0;
  std::optional<int64_t> expected = {};
};
struct AddPoints {
  std::string run, key;
  std::vector<Point> points;
};
// Series of the run lose their points from that step on: the run went back to a checkpoint.
struct DropPoints {
  std::string run;
  int64_t from_step = 0;
  std::optional<std::set<std::string>> keys = {};  // these alone; nullopt: every series
};
// Content, known by its digest, under a path of a record. A path holds one content; a later one takes its place.
struct Attach {
  Subject subject;
  std::string path, digest;
  int64_t bytes = 0;
};
struct Detach {
  Subject subject;
  std::string path;
};
// Content that is gone from the disk. Refused while anything refers to it.
struct Forget {
  std::string digest;
};
// An edge of the lineage: `from` was made with `to` in that role ("data", "parent", "environment").
struct Link {
  Subject from;
  std::string role;
  Subject to;
};
// A text by name, for what a room has to remember (how far a file was read). Makes no event.
struct SetNote {
  std::string name, text;
};

// A new trial, numbered 0, 1, ... in its study: claimed for lease_seconds, or, without a worker, waiting to be taken.
struct NewTrial {
  std::string study, worker, body;
  double lease_seconds = 60;
};
// Takes a trial that waits, else one whose lease ran out; the lowest number first. Refused as kNothing if there is
// none.
struct TakeTrial {
  std::string study, worker;
  double lease_seconds = 60;
  std::optional<int64_t> trial = {};  // this one
};
// What a trial came to by now; renews its lease. An empty body only renews, and makes no event.
struct Report {
  std::string study;
  int64_t trial = 0, fence = 0;
  std::string body = {};
  double lease_seconds = 60;
};
// The trial is over (kDone, kPruned, kFailed), or goes back to kWaiting. The same told again is recognised.
struct Tell {
  std::string study;
  int64_t trial = 0, fence = 0;
  TrialState state = TrialState::kDone;
  std::string body = {};
};

// A named lease: one holder at a time. Who lost it can not write any more what names it in `Batch::held`.
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

using Change = std::variant<Create, Amend, SetParams, SetTags, Move, SetAlias, AddPoints, DropPoints, Attach, Detach,
                            Forget, Link, SetNote, NewTrial, TakeTrial, Report, Tell, Acquire, Renew, Release>;

struct Held {
  std::string name;
  int64_t fence = 0;
};
struct Batch {
  std::vector<Change> changes;
  std::string key = {};         // a batch whose key was written before is not made again: the first answers are given
  std::vector<Held> held = {};  // leases that must still be held
  // Refused when there is an event of such a subject later than its one: what was decided, was decided on old news.
  struct Unchanged {
    Subject subject;
    int64_t seq = 0;
  };
  std::vector<Unchanged> unchanged = {};
};

// ---- answers -------------------------------------------------------------------------------------------------------

struct Answer {
  int64_t number = 0;     // of a version or a trial
  int64_t fence = 0;      // of a trial or lease that was claimed
  bool repeated = false;  // nothing was changed: it was so already
};
struct Receipt {
  int64_t seq = 0;        // the newest event of the batch; 0: it made none
  bool repeated = false;  // by its key
  std::vector<Answer> answers;
};
// What the store expects to be asked and says no to. Nothing of the batch was written.
struct Refusal {
  enum class Reason { kInvalid, kNotFound, kExists, kConflict, kStale, kHeld, kNothing } reason = Reason::kInvalid;
  std::string why;  // a sentence
};
using Outcome = std::expected<Receipt, Refusal>;

// ---- what can be read ----------------------------------------------------------------------------------------------

struct Metric {
  int64_t count = 0;  // points; one logged twice may count twice
  Point last;         // of the highest step
  double least = std::numeric_limits<double>::quiet_NaN(), most = least;
};
struct Alias {
  std::string name;
  int64_t version = 0, previous = 0;  // previous: where it stood before; 0: nowhere
};
struct Record {
  Subject subject;
  std::string parent, name, body;
  RunState state = RunState::kRunning;  // of a run
  int64_t attempt = 1;                  // of a run: how many times it was begun
  int64_t begun_ms = 0, ended_ms = 0;   // 0: not yet
  bool hidden = false;
  int64_t seq = 0;  // of the event that made it: records in the order of their making
  Labels params, tags;
  std::map<std::string, Metric> metrics;
  std::vector<Alias> aliases;  // of a model
};
struct Query {
  Kind kind = Kind::kRun;
  std::optional<std::string> parent = {}, name = {};
  bool hidden = false;                             // also those
  bool metrics = true;                             // read them too
  int64_t before = 0;                              // made before that event; 0: any
  int64_t limit = 1000;                            // newest first
  std::optional<RunState> state = {};              // of runs, those that are so
  std::optional<std::set<std::string>> keys = {};  // of the metrics these alone; nullopt: all
};
struct Series {
  std::string run, key;
};
struct Window {
  int64_t first_step = std::numeric_limits<int64_t>::min(), last_step = std::numeric_limits<int64_t>::max();
  int64_t most = 0;  // points, at least 4; 0: all
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
  std::string what;  // docs/formats/store.md lists them
  Subject subject;   // of a trial's event: its study, with the trial's number
  std::string body;
};
struct EventQuery {
  int64_t after = 0, limit = 1000;
  std::optional<Subject> subject = {};  // all numbers of its id
};
struct Trial {
  int64_t number = 0;
  TrialState state = TrialState::kWaiting;
  std::string worker;
  int64_t fence = 0;
  double lease_seconds = 0;             // left; 0 or less: ran out
  int64_t asked_seq = 0, told_seq = 0;  // events that hold both bodies; told_seq 0: not yet
  std::string asked_body, told_body;
};
struct Lease {
  std::string holder;  // empty: free
  int64_t fence = 0;
  double seconds = 0;  // left
};

// ---- the store -----------------------------------------------------------------------------------------------------

struct Options {
  Clock* clock = &system_clock();
  double patience_seconds = 30;   // a write waits so long for other processes, then throws
  double reconnect_seconds = 20;  // a lost PostgreSQL connection is tried again so long
  std::string boot = {};          // names this start of the machine; empty: as the kernel says
};

// Called on any thread that writes; may submit, never write. `trouble`: an Error; it was not, or not surely, written.
using Done = std::function<void(Outcome outcome, std::exception_ptr trouble)>;

// Any thread may call any method. Throws Error for what surrounds it (disk, connection, damage): then the batch is not
// acknowledged, and may be written again under the same key.
class Store {
 public:
  // A path of a file, made if missing, or postgresql://...; brings an older store up to this version and refuses a
  // newer.
  explicit Store(const std::string& where, Options options = {});
  ~Store();  // after every submitted batch was answered
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  Outcome write(const Batch& batch);
  Outcome write(Change change) { return write(Batch{{std::move(change)}}); }
  void submit(Batch batch, Done done);

  std::optional<Record> find(const Subject& subject);
  std::vector<std::optional<Record>> find(std::span<const Subject> subjects);  // as they are at one instant
  std::vector<Record> list(const Query& query);
  // Every record the query is about, however many; `query.limit` is how many are read at a time. Each page is of one
  // instant, and `take` may use the store. `all` holds them together.
  void each(Query query, const std::function<void(Record record)>& take);
  std::vector<Record> all(const Query& query);
  // One list a series, in order of steps, then times. At most `most` points each: the first, last, least and greatest
  // of each of most/4 slices (M4: Jugel, Jerzak, Hackenbroich, Markl, "M4: A Visualization-Oriented Time Series Data
  // Aggregation", VLDB 2014). A series that is not there is empty.
  std::vector<std::vector<Point>> history(std::span<const Series> series, const Window& window = {});
  // In the order of their paths; with `below` only those of that folder and its folders.
  std::vector<Attachment> attachments(const Subject& subject, const std::string& below = "");
  std::optional<Attachment> attachment(const Subject& subject, const std::string& path);
  std::vector<Content> contents();                  // something refers to them
  std::vector<Content> loose_contents();            // nothing does
  std::vector<Link> links(const Subject& subject);  // from it and to it
  std::string note(const std::string& name);        // empty: none
  std::vector<Event> events(const EventQuery& query);
  // Of the subject's id, whatever number; 0: none. Read it before what is decided on, and give it to Batch::unchanged.
  int64_t newest_event(const Subject& subject);
  std::vector<Trial> trials(const std::string& study);
  Lease lease(const std::string& name);
  // What the database says of its own health: sentences, none if well. Reads everything.
  std::vector<std::string> check();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sinew::store
