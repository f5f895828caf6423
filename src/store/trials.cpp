// Trials of studies: claimed, reported on, told. A claim raises the trial's fence, and what an earlier holder writes is
// refused: so a trial can be given to another worker as soon as its lease ran out, whatever became of the first.
#include "store/texts.h"
#include "store/transaction.h"

namespace sinew::store {
namespace {

using Reason = Refusal::Reason;

struct TrialRow {
  int64_t number = 0;
  TrialState state = TrialState::kWaiting;
  std::string worker;
  int64_t fence = 0;
  double until = 0;
  int64_t told = 0;
};

std::optional<TrialRow> find_trial(Database& database, const std::string& study, int64_t number) {
  std::optional<TrialRow> found;
  database.each("SELECT state, worker, fence, until, told FROM trial WHERE study = ?1 AND number = ?2",
                {std::string_view(study), number}, [&](const Row& row) {
                  found = TrialRow{number,
                                   static_cast<TrialState>(row.integer(0)),
                                   std::string(row.text(1)),
                                   row.integer(2),
                                   row.real(3),
                                   row.integer(4)};
                });
  return found;
}

std::unexpected<Refusal> no_trial(const std::string& study, int64_t number) {
  return refused(Reason::kNotFound, "study \"" + study + "\" has no trial " + std::to_string(number));
}

std::string lost(const TrialRow& trial, int64_t fence) {
  const std::string name = "trial " + std::to_string(trial.number);
  if (trial.state != TrialState::kRunning) return name + " is " + to_string(trial.state) + " already";
  return name + " is held by \"" + trial.worker + "\" (fence " + std::to_string(trial.fence) + ", not " +
         std::to_string(fence) + ")";
}

// The first that nobody works on: one that waits, else one whose worker has not been heard of for its lease.
std::optional<int64_t> first_free(Transaction& transaction, const std::string& study) {
  std::optional<int64_t> number;
  const auto take = [&](const Row& row) { number = row.integer(0); };
  transaction.database.each(
      "SELECT number FROM trial WHERE study = ?1 AND state = 1 AND state < 3 ORDER BY number LIMIT 1",
      {std::string_view(study)}, take);
  if (!number) {
    transaction.database.each(
        "SELECT number FROM trial WHERE study = ?1 AND state = 2 AND state < 3 AND until <= ?2 "
        "ORDER BY number LIMIT 1",
        {std::string_view(study), transaction.now}, take);
  }
  return number;
}

}  // namespace

Applied apply(Transaction& transaction, const NewTrial& change) {
  const auto objection = TextJudge()
                             .id("the study's id", change.study)
                             .name("the worker", change.worker)
                             .body("the body", change.body)
                             .seconds("a trial's lease", change.lease_seconds)
                             .objection();
  if (objection) return std::unexpected(*objection);
  Database& database = transaction.database;
  int64_t study = 0, number = 0;
  // One question: each costs a round trip where the database is a server.
  database.each(
      "SELECT (SELECT coalesce(max(seq), 0) FROM record WHERE kind = 5 AND id = ?1 AND number = 0), "
      "(SELECT coalesce(max(number), -1) FROM trial WHERE study = ?1)",
      {std::string_view(change.study)}, [&](const Row& row) {
        study = row.integer(0);
        number = row.integer(1) + 1;
      });
  if (study == 0) return refused(Reason::kNotFound, "there is no study \"" + change.study + "\"");
  const bool claimed = !change.worker.empty();
  const int64_t asked = add_event(transaction, "trial.new", {Kind::kStudy, change.study, number}, change.body);
  database.run(
      "INSERT INTO trial(study, number, state, worker, fence, until, asked, told) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, "
      "0)",
      {std::string_view(change.study), number,
       static_cast<int64_t>(claimed ? TrialState::kRunning : TrialState::kWaiting), std::string_view(change.worker),
       int64_t{claimed}, claimed ? transaction.now + change.lease_seconds : 0.0, asked});
  return Answer{number, claimed};
}

Applied apply(Transaction& transaction, const TakeTrial& change) {
  const auto objection =
      TextJudge().id("the worker", change.worker).seconds("a trial's lease", change.lease_seconds).objection();
  if (objection) return std::unexpected(*objection);
  const auto number = change.trial ? change.trial : first_free(transaction, change.study);
  if (!number) return refused(Reason::kNothing, "study \"" + change.study + "\" has no trial to take");
  const auto trial = find_trial(transaction.database, change.study, *number);
  if (!trial) return no_trial(change.study, *number);
  if (trial->state == TrialState::kRunning && trial->until > transaction.now)
    return refused(Reason::kHeld, lost(*trial, 0));
  if (trial->state != TrialState::kRunning && trial->state != TrialState::kWaiting)
    return refused(Reason::kConflict, lost(*trial, 0));
  transaction.database.run(
      "UPDATE trial SET state = 2, worker = ?1, fence = ?2, until = ?3 WHERE study = ?4 AND number = ?5",
      {std::string_view(change.worker), trial->fence + 1, transaction.now + change.lease_seconds,
       std::string_view(change.study), *number});
  add_event(transaction, "trial.taken", {Kind::kStudy, change.study, *number}, change.worker);
  return Answer{*number, trial->fence + 1};
}

Applied apply(Transaction& transaction, const Report& change) {
  const auto objection =
      TextJudge().body("the report", change.body).seconds("a trial's lease", change.lease_seconds).objection();
  if (objection) return std::unexpected(*objection);
  const auto trial = find_trial(transaction.database, change.study, change.trial);
  if (!trial) return no_trial(change.study, change.trial);
  if (trial->state != TrialState::kRunning || trial->fence != change.fence)
    return refused(Reason::kStale, lost(*trial, change.fence));
  transaction.database.run("UPDATE trial SET until = ?1 WHERE study = ?2 AND number = ?3",
                           {transaction.now + change.lease_seconds, std::string_view(change.study), change.trial});
  if (!change.body.empty())
    add_event(transaction, "trial.report", {Kind::kStudy, change.study, change.trial}, change.body);
  return Answer{change.trial, change.fence};
}

Applied apply(Transaction& transaction, const Tell& change) {
  const bool known = change.state >= TrialState::kWaiting && change.state <= TrialState::kFailed &&
                     change.state != TrialState::kRunning;
  const auto objection =
      TextJudge().that(known, "a trial is told to be over, or to wait").body("the result", change.body).objection();
  if (objection) return std::unexpected(*objection);
  Database& database = transaction.database;
  const auto trial = find_trial(database, change.study, change.trial);
  if (!trial) return no_trial(change.study, change.trial);
  if (trial->fence != change.fence || trial->state != TrialState::kRunning) {
    bool same = trial->fence == change.fence && trial->state == change.state && trial->told != 0;
    if (same) {
      database.each("SELECT body FROM event WHERE seq = ?1", {trial->told},
                    [&](const Row& row) { same = row.text(0) == change.body; });
    }
    if (same) return Answer{change.trial, change.fence, true};
    return refused(Reason::kStale, lost(*trial, change.fence));
  }
  const int64_t told = add_event(transaction, std::string("trial.") + to_string(change.state),
                                 {Kind::kStudy, change.study, change.trial}, change.body);
  database.run("UPDATE trial SET state = ?1, until = 0, told = ?2 WHERE study = ?3 AND number = ?4",
               {static_cast<int64_t>(change.state), told, std::string_view(change.study), change.trial});
  return Answer{change.trial, change.fence};
}

std::vector<Trial> read_trials(Database& database, const std::string& study, double now) {
  std::vector<Trial> trials;
  database.each(
      "SELECT trial.number, state, worker, fence, until, asked, told, a.body, coalesce(b.body, '') FROM trial "
      "JOIN event a ON a.seq = asked LEFT JOIN event b ON b.seq = told WHERE study = ?1 ORDER BY trial.number",
      {std::string_view(study)}, [&](const Row& row) {
        Trial& trial = trials.emplace_back();
        trial.number = row.integer(0);
        trial.state = static_cast<TrialState>(row.integer(1));
        trial.worker = row.text(2);
        trial.fence = row.integer(3);
        trial.lease_seconds = trial.state == TrialState::kRunning ? row.real(4) - now : 0;
        trial.asked_seq = row.integer(5);
        trial.told_seq = row.integer(6);
        trial.asked_body = row.text(7);
        trial.told_body = row.text(8);
      });
  return trials;
}

}  // namespace sinew::store
