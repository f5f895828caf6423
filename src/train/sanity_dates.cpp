// Checks whether a split lets the model look into the future: val or test that is older than train, or rows drawn at
// random from a time in which the target hardly changes from one row to the next.
#include <algorithm>
#include <numeric>

#include "train/sanity.h"
#include "train/sanity_statistics.h"

namespace sinew::train::sanity {
namespace {

constexpr int64_t kDatedRows = 4000, kFewestDated = 100, kFewestOther = 20;
constexpr double kOlder = 0.1;   // below this probability, a row of the split is hardly ever later than one of train
constexpr double kMixed = 0.25;  // from here to 1 - kMixed, both have the same time
constexpr double kFollows =
    0.4;  // share of change between neighbours in time; below it, the neighbour tells the target
constexpr double kSurelyFollows = 0.2;

struct Dated {
  std::vector<float> times;
  std::vector<double> targets;
};

Dated dated(const Subject& subject, data::Split split, const Facts& facts, const data::InputGroup& group) {
  const data::Batch batch = subject.load(split, subject.draw(facts, kDatedRows, 62));
  return {column_values(batch, group), target_values(batch)};
}

void judge_older(const std::string& column, const std::string& split, double later, SanityFinding& finding) {
  finding.what +=
      format("; a row of %s is later than one of train in %.0f %% of all pairs", split.c_str(), 100 * later);
  judge(finding, Verdict::fail, "date_leak",
        split + " is older than train, so the model is measured on a past that it knows",
        "train on the older rows: data.split.by: " + column + ", or exchange the files");
}

void judge_mixed(const std::string& column, const std::string& split, double change, SanityFinding& finding) {
  finding.what += format(
      "; %s has the same time as train, and from one row to the next in time the target changes "
      "only %.0f %% as much as between any two rows",
      split.c_str(), 100 * change);
  judge(finding, change < kSurelyFollows ? Verdict::fail : Verdict::warn, "date_leak",
        "rows of " + split +
            " lie between rows of train of almost the same time and target; in use there is no such "
            "row, because the future is not known",
        "data.split.by: " + column);
}

// The group of inputs that holds the days of the first column of dates.
const data::InputGroup* days_of(const data::DataInfo& info, const std::vector<data::InputGroup>& groups) {
  for (const data::InputGroup& group : groups) {
    const auto at = static_cast<size_t>(group.first);
    if (at >= info.input_names.size()) continue;
    const std::string column = column_of(info, group);
    if (is_date(info, column) && info.input_names[at] == column + ".days") return &group;
  }
  return nullptr;
}

}  // namespace

void check_dates(Subject& subject, SanityFinding& finding) {
  const data::DataInfo& info = subject.info();
  const std::vector<data::InputGroup> groups =
      is_table(info) ? data::input_groups(info) : std::vector<data::InputGroup>();
  const data::InputGroup* days = days_of(info, groups);
  if (days == nullptr || static_cast<int64_t>(subject.train.samples.size()) < kFewestDated) {
    finding.verdict = Verdict::skip;
    finding.what = days == nullptr ? "no input is a date" : "there are too few rows to tell";
    return;
  }
  const std::string column = column_of(info, *days);
  const Dated train = dated(subject, data::Split::train, subject.train, *days);
  const double change = change_in_order(train.times, train.targets, info.task == data::Task::classification);
  finding.what = "dates in '" + column + "'";
  for (const auto& [facts, split] :
       {std::pair{&subject.val, data::Split::val}, std::pair{&subject.test, data::Split::test}}) {
    if (static_cast<int64_t>(facts->samples.size()) < kFewestOther || finding.verdict != Verdict::pass) continue;
    const double later = share_above(train.times, dated(subject, split, *facts, *days).times);
    // What holds in one time need not hold in another, so the check of labels leaves out such a split.
    if (later < kMixed || later > 1 - kMixed) subject.drifted.insert(split);
    if (later <= kOlder) {
      judge_older(column, to_string(split), later, finding);
    } else if (later >= kMixed && later <= 1 - kMixed && change <= kFollows) {
      judge_mixed(column, to_string(split), change, finding);
    } else {
      finding.what += format("; a row of %s is later than one of train in %.0f %% of all pairs",
                             to_string(split).c_str(), 100 * later);
    }
  }
}

}  // namespace sinew::train::sanity
