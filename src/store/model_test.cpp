// Applies random sequences of changes to both databases and to a model that consists of a few maps. All three must give
// the same answers and refusals. Both databases must hold the same records and events in the end.
#include <map>
#include <sstream>

#include "base/random.h"
#include "store/testing.h"

namespace sinew::store {
namespace {

using Reason = Refusal::Reason;

// The rules for runs, aliases and leases, without a database. An answer reads "number fence repeated"; a refusal reads
// as its reason.
class Model {
 public:
  double now = 0;

  std::string operator()(const Create& change) {
    if (change.subject.kind == Kind::kVersion) return answer(++versions_);
    if (runs_.contains(change.subject.id)) return no(Reason::kExists);
    runs_[change.subject.id] = {change.state, 1};
    return answer(0);
  }
  std::string operator()(const SetRunState& change) {
    const auto found = runs_.find(change.run);
    if (found == runs_.end()) return no(Reason::kNotFound);
    auto& [state, attempt] = found->second;
    if (change.reopen && is_over(change.to)) return no(Reason::kConflict);
    if (change.reopen && is_over(state))
      ++attempt;
    else if (state == change.to)
      return answer(attempt, 0, true);
    else if (is_over(state))
      return no(Reason::kConflict);
    state = change.to;
    return answer(attempt);
  }
  std::string operator()(const SetAlias& change) {
    if (change.version > versions_) return no(Reason::kNotFound);
    int64_t& current = aliases_[change.alias];
    if (change.expected && *change.expected != current) return no(Reason::kConflict);
    if (current == change.version) return answer(current, 0, true);
    current = change.version;
    return answer(current);
  }
  std::string operator()(const Acquire& change) {
    LeaseRow& lease = leases_[change.name];
    if (lease.held && lease.until > now) return no(Reason::kHeld);
    lease = {true, lease.fence + 1, now + change.seconds};
    return answer(0, lease.fence);
  }
  std::string operator()(const Renew& change) {
    LeaseRow& lease = leases_[change.name];
    if (!lease.held || lease.fence != change.fence) return no(Reason::kStale);
    lease.until = now + change.seconds;
    return answer(0, lease.fence);
  }
  std::string operator()(const Release& change) {
    LeaseRow& lease = leases_[change.name];
    if (lease.fence != change.fence || change.fence == 0) return no(Reason::kStale);
    return answer(0, lease.fence, !std::exchange(lease.held, false));
  }
  template <typename Other>
  std::string operator()(const Other&) {
    return "?";
  }

  static std::string answer(int64_t number, int64_t fence = 0, bool repeated = false) {
    return std::to_string(number) + " " + std::to_string(fence) + (repeated ? " repeated" : "");
  }
  static std::string no(Reason reason) { return "refused " + std::to_string(static_cast<int>(reason)); }

 private:
  struct LeaseRow {
    bool held = false;
    int64_t fence = 0;
    double until = 0;
  };
  std::map<std::string, std::pair<RunState, int64_t>> runs_;
  std::map<std::string, int64_t> aliases_;
  int64_t versions_ = 0;
  std::map<std::string, LeaseRow> leases_;
};

Change any_change(RandomStream& random) {
  const auto below = [&](uint64_t bound) { return static_cast<int64_t>(random.below(bound)); };
  const std::string run = "r" + std::to_string(below(6)), lease = "l" + std::to_string(below(2));
  switch (below(8)) {
    case 0: return Create{{Kind::kRun, run}, "e", "", "", {}, {}, static_cast<RunState>(1 + below(3))};
    case 1: return Create{{Kind::kVersion, "m"}};
    case 2:
    case 3: return SetRunState{run, static_cast<RunState>(1 + below(6)), "", below(4) == 0};
    case 4:
      return SetAlias{"m", "a" + std::to_string(below(2)), below(4),
                      below(2) == 0 ? std::optional(below(4)) : std::nullopt};
    case 5: return Acquire{lease, "h", 100};
    case 6: return Renew{lease, 1 + below(4), 100};
    default: return Release{lease, 1 + below(4)};
  }
}

std::string as_text(const Outcome& outcome) {
  if (!outcome.has_value()) return Model::no(outcome.error().reason);
  const Answer& last = outcome->answers.at(0);
  return Model::answer(last.number, last.fence, last.repeated);
}

// Returns everything that the store contains, as text.
std::string everything(Store& store) {
  std::ostringstream text;
  for (const Kind kind : {Kind::kRun, Kind::kModel, Kind::kVersion}) {
    for (const Record& record : store.list({.kind = kind})) {
      text << record.seq << ' ' << to_string(kind) << ' ' << record.subject.id << ' ' << record.subject.number << ' '
           << to_string(record.state) << ' ' << record.attempt << ' ' << record.ended_ms;
      for (const Alias& alias : record.aliases)
        text << ' ' << alias.name << '=' << alias.version << '<' << alias.previous;
      text << '\n';
    }
  }
  for (const Event& event : store.events({.limit = 100000})) {
    text << event.seq << ' ' << event.what << ' ' << to_string(event.subject.kind) << ' ' << event.subject.id << ' '
         << event.subject.number << ' ' << event.at_ms << ' ' << event.body << '\n';
  }
  return text.str();
}

TEST(Stories, AreTheSameOnBothDatabasesAndInTheModel) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const Location sqlite(false), postgres(true);
    HandClock clock;
    Options options;
    options.clock = &clock;
    Store a(sqlite.where(), options), b(postgres.where(), options);
    Model model;
    for (Store* store : {&a, &b}) {
      done(*store, Create{{Kind::kExperiment, "e"}});
      done(*store, Create{{Kind::kModel, "m"}});
    }
    RandomStream random(random_key({seed, 11}));
    for (int i = 0; i < 250; ++i) {
      if (random.below(5) == 0)
        clock.seconds = clock.seconds + 37;  // 37 does not divide 100, so no lease expires at exactly this time
      model.now = clock.seconds;
      const Change change = any_change(random);
      const std::string expected = std::visit([&](const auto& one) { return model(one); }, change);
      ASSERT_EQ(as_text(a.write(change)), expected)
          << "seed " << seed << ", change " << i << " of kind " << change.index() << ", SQLite";
      ASSERT_EQ(as_text(b.write(change)), expected)
          << "seed " << seed << ", change " << i << " of kind " << change.index() << ", PostgreSQL";
    }
    ASSERT_EQ(everything(a), everything(b)) << "seed " << seed;
    EXPECT_TRUE(a.check().empty());
    EXPECT_TRUE(b.check().empty());
  }
}

}  // namespace
}  // namespace sinew::store
