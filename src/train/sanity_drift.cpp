// Checks whether the files of val and test hold samples like those of train. It compares each column of a table, or the
// brightness of images, and the classes. A split that Sinew draws at random from train cannot drift, and one by date or
// by group may.
#include <algorithm>

#include "train/sanity.h"
#include "train/sanity_statistics.h"

namespace sinew::train::sanity {
namespace {

constexpr int64_t kDriftRows = 2000, kFewestToCompare = 40;
constexpr int64_t kDriftValues = 20'000'000;  // of wide samples, fewer are read
constexpr double kDriftSeconds = 2;
constexpr double kChance = 1e-4;                  // of a distance that means nothing, for all columns together
constexpr double kDiffers = 0.3, kForeign = 0.5;  // distances: other samples; samples of another kind
constexpr double kOtherShares = 0.3;

// The values of one property in the samples of one split.
struct Property {
  std::string name;
  std::vector<float> values;
  bool categories = false;
};

std::vector<Property> of_columns(const Subject& subject, const data::Batch& batch) {
  const data::DataInfo& info = subject.info();
  std::vector<Property> list;
  for (const data::InputGroup& group : data::input_groups(info)) {
    const std::string column = column_of(info, group);
    // Dates and groups differ between splits because the job wants it so. Counts of words say little one by one.
    if (group.kind == data::InputGroup::Kind::other || is_date(info, column) || column == subject.job.data.split_by)
      continue;
    list.push_back(
        {"column '" + column + "'", column_values(batch, group), group.kind == data::InputGroup::Kind::category});
  }
  return list;
}

std::vector<Property> of_samples(const data::Batch& batch) {
  const torch::Tensor rows = tensor_of(batch.input).flatten(1);
  std::vector<Property> list;
  for (const auto& [name, values] : {std::pair{"the mean of a sample", rows.mean(1)},
                                     std::pair{"the contrast of a sample", rows.std(1, /*unbiased=*/false)},
                                     std::pair{"the largest value of a sample", rows.amax(1)}}) {
    const torch::Tensor flat = values.contiguous();
    list.push_back({name, {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()}, false});
  }
  return list;
}

data::Batch drawn(const Subject& subject, data::Split split, const Facts& facts) {
  const int64_t width = std::max<int64_t>(1, element_count(subject.info().input_shape));
  return subject.load(split, subject.draw(facts, std::clamp(kDriftValues / width, kFewestToCompare, kDriftRows), 61));
}

std::vector<int64_t> counted(const std::vector<float>& values, int64_t size) {
  std::vector<int64_t> counts(static_cast<size_t>(size), 0);
  for (const float value : values) ++counts[static_cast<size_t>(value + 1)];  // -1: no category
  return counts;
}

double distance(const Property& a, const Property& b) {
  if (!a.categories) return distribution_distance(a.values, b.values);
  const auto size = static_cast<int64_t>(std::max(std::ranges::max(a.values), std::ranges::max(b.values))) + 2;
  return share_distance(counted(a.values, size), counted(b.values, size));
}

std::string moved_by(const Property& train, const Property& other) {
  const auto tensor = [](const Property& property) { return torch::tensor(property.values, torch::kFloat64); };
  const torch::Tensor here = tensor(train), there = tensor(other);
  const double deviation = here.std(0, /*unbiased=*/false).item<double>();
  if (deviation == 0) return "it is constant in train";
  return format("its mean is %+.2g deviations from that of train, its deviation %.2g times",
                (there.mean().item<double>() - here.mean().item<double>()) / deviation,
                there.std(0, /*unbiased=*/false).item<double>() / deviation);
}

void compare_inputs(Subject& subject, data::Split split, const std::vector<Property>& train,
                    const std::vector<Property>& other, SanityFinding& finding) {
  const std::string name = to_string(split);
  size_t worst = 0, differ = 0;
  double largest = 0;
  const double end = subject.until(kDriftSeconds);
  for (size_t i = 0; i < train.size() && subject.now() < end; ++i) {
    const double found = distance(train[i], other[i]);
    const double chance =
        distance_by_chance(train[i].values.size(), other[i].values.size(), kChance / static_cast<double>(train.size()));
    if (found > std::max(kDiffers, chance)) ++differ;
    if (found > largest) largest = found, worst = i;
  }
  if (train.empty()) return;
  finding.what +=
      (finding.what.empty() ? "" : "; ") + name + format(": largest distance %.2f, ", largest) + train[worst].name;
  if (differ == 0) return;
  finding.what += (train[worst].categories ? "" : ", " + moved_by(train[worst], other[worst])) +
                  format("; %zu of %zu differ", differ, train.size());
  subject.drifted.insert(split);
  if (finding.verdict == Verdict::warn && largest < kForeign) return;  // other classes have other inputs
  judge(finding, largest >= kForeign ? Verdict::fail : Verdict::warn, "drift",
        train[worst].name + " of " + name +
            " comes from elsewhere than that of train: another unit, another preparation, or another source",
        "prepare both files in the same way, or split one data set: data.split." + name);
}

void compare_classes(const Subject& subject, data::Split split, const Facts& facts, SanityFinding& finding) {
  if (subject.info().task != data::Task::classification || finding.verdict != Verdict::pass) return;
  const auto &here = subject.train.class_counts, &there = facts.class_counts;
  const double found = share_distance(here, there);
  if (found <= std::max(kOtherShares, shares_by_chance(here, there))) return;
  size_t worst = 0;
  const auto share = [](const std::vector<int64_t>& counts, size_t c) {
    int64_t sum = 0;
    for (const int64_t count : counts) sum += count;
    return static_cast<double>(counts[c]) / static_cast<double>(std::max<int64_t>(1, sum));
  };
  const auto difference = [&](size_t c) { return std::abs(share(here, c) - share(there, c)); };
  for (size_t c = 1; c < here.size(); ++c) worst = difference(c) > difference(worst) ? c : worst;
  const std::string name = to_string(split);
  finding.what += (finding.what.empty() ? "" : "; ") + std::string("class ") +
                  class_name(subject.info(), static_cast<int64_t>(worst)) +
                  format(" is %.1f %% of train and %.1f %% of %s", 100 * share(here, worst), 100 * share(there, worst),
                         name.c_str());
  judge(finding, Verdict::warn, "class_shares_differ",
        name + " was cut from data that was sorted by class, or comes from another source",
        "shuffle the rows before they are divided, or split one data set: data.split." + name);
}

}  // namespace

void check_drift(Subject& subject, SanityFinding& finding) {
  const spec::DataOptions& options = subject.job.data;
  std::vector<std::pair<const Facts*, data::Split>> others;
  const auto judged = [&](const Facts& facts, const spec::DataSource& source, data::Split split) {
    if (source.given() && static_cast<int64_t>(facts.samples.size()) >= kFewestToCompare)
      others.push_back({&facts, split});
  };
  judged(subject.val, options.val, data::Split::val);
  judged(subject.test, options.test, data::Split::test);
  if (others.empty()) {
    finding.verdict = Verdict::skip;
    finding.what = "neither val nor test has files of its own";
    return;
  }
  const bool table = is_table(subject.info()), numbers = subject.info().input_dtype == DType::f32;
  const auto properties = [&](const data::Batch& batch) {
    return table ? of_columns(subject, batch) : of_samples(batch);
  };
  std::vector<Property> train;
  if (numbers) train = properties(drawn(subject, data::Split::train, subject.train));
  for (const auto& [facts, split] : others) {
    compare_classes(subject, split, *facts, finding);
    if (numbers && finding.verdict != Verdict::fail)
      compare_inputs(subject, split, train, properties(drawn(subject, split, *facts)), finding);
  }
  if (finding.what.empty()) finding.what = "the splits have the same classes in the same shares";
}

}  // namespace sinew::train::sanity
