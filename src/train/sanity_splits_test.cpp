// Tests what `sinew check` says about splits that do not fit together, and about columns that know too much.
#include <gtest/gtest.h>

#include "train/sanity_planted.h"

namespace sinew::train {
namespace {

// A data set of which a part of val is test.
class WithTest final : public data::Dataset {
 public:
  explicit WithTest(
      std::shared_ptr<const data::Dataset> inner, Altered::Change change = [](Split, data::Batch&) {})
      : inner_(std::move(inner)), change_(std::move(change)), info_(inner_->info()) {
    info_.test_size = info_.val_size / 2;
    info_.val_size -= info_.test_size;
  }
  data::DataInfo& info_to_change() { return info_; }
  const data::DataInfo& info() const override { return info_; }
  int64_t size(Split split) const override {
    return split == Split::test ? info_.test_size : split == Split::val ? info_.val_size : inner_->size(split);
  }
  std::string describe(Split split, int64_t sample) const override {
    return to_string(split) + "#" + std::to_string(sample);
  }
  bool in_memory() const override { return true; }
  data::Batch load(Split split, std::span<const int64_t> samples, const data::SampleContext& context) const override {
    std::vector<int64_t> moved(samples.begin(), samples.end());
    if (split == Split::test)
      for (int64_t& sample : moved) sample += info_.val_size;
    data::Batch batch = inner_->load(split == Split::test ? Split::val : split, moved, context);
    batch.samples.assign(samples.begin(), samples.end());
    change_(split, batch);
    return batch;
  }

 private:
  std::shared_ptr<const data::Dataset> inner_;
  Altered::Change change_;
  data::DataInfo info_;
};

std::shared_ptr<SyntheticData> small_table(int64_t train = 700, int64_t val = 300) {
  return synthetic(Task::classification, {10}, 4, train, val);
}

template <typename Change>
Altered::Change each_row(Change change) {
  return [change](Split split, data::Batch& batch) {
    for (size_t row = 0; row < batch.samples.size(); ++row) change(split, batch, row);
  };
}

spec::Job with_files() {
  spec::Job job = job_for("mlp");
  job.data.val.path = "val.csv";
  job.data.test.path = "test.csv";
  return job;
}

// Only these checks; the others are tested elsewhere.
SanityFinding finding_of(const std::string& name, const spec::Job& job, const data::Dataset& data) {
  for (const SanityFinding& finding : check(job, data)) {
    if (finding.check == name) return finding;
  }
  ADD_FAILURE() << "no check is named " << name;
  return {};
}

TEST(SanitySplits, DriftIsNamed) {
  const auto moved = each_row([](Split split, data::Batch& b, size_t r) {
    if (split == Split::test) input(b, r)[4] += 2;
  });
  const auto scaled = each_row([](Split split, data::Batch& b, size_t r) {
    for (int64_t i = 0; i < width(b) && split == Split::val; ++i) input(b, r)[i] *= 16;
  });
  const WithTest column(small_table(), moved), images(synthetic(Task::classification, {1, 8, 8}, 4, 600, 200), scaled);
  const SanityFinding of_column = finding_of("drift", with_files(), column);
  EXPECT_EQ(of_column.cause, "drift") << finding_text(of_column);
  EXPECT_NE(of_column.what.find("test"), std::string::npos) << of_column.what;
  EXPECT_NE(of_column.what.find("deviations"), std::string::npos) << of_column.what;
  spec::Job cnn = with_files();
  cnn.model = job_for("cnn").model;
  const auto findings = check(cnn, images);
  const auto drift = std::ranges::find(findings, "drift", &SanityFinding::check);
  EXPECT_EQ(drift->cause, "drift") << all_text(findings);
  EXPECT_TRUE(std::ranges::find(findings, "labels", &SanityFinding::check)->cause.empty())
      << "the labels of a split that drifted are not judged\n"
      << all_text(findings);
}

TEST(SanitySplits, SplitsOfOneFileDoNotDrift) {
  const WithTest data(small_table());
  EXPECT_EQ(finding_of("drift", job_for("mlp"), data).verdict, SanityFinding::Verdict::skip);
  EXPECT_EQ(finding_of("drift", with_files(), data).verdict, SanityFinding::Verdict::pass);
}

TEST(SanitySplits, OtherSharesOfTheClassesAreNamed) {
  const auto rare_in_val = each_row([](Split split, data::Batch& b, size_t r) {
    if (split != Split::val || label(b, r) > 1) return;
    const auto source = small_table();
    for (int64_t other = b.samples[r] + 1; label(b, r) <= 1; ++other) {
      const data::Batch one = source->load(Split::val, std::span(&other, 1), {});
      std::copy_n(one.input.as<float>(), width(b), input(b, r));
      label(b, r) = one.target.as<int64_t>()[0];
    }
  });
  const SanityFinding finding = finding_of("drift", with_files(), WithTest(small_table(), rare_in_val));
  EXPECT_EQ(finding.cause == "class_shares_differ" || finding.cause == "drift", true) << finding_text(finding);
}

TEST(SanitySplits, OtherLabelsOfTestAreNamed) {
  const auto renumbered = each_row([](Split split, data::Batch& b, size_t r) {
    if (split == Split::test) label(b, r) = (label(b, r) + 1) % 4;
  });
  const SanityFinding finding = finding_of("labels", job_for("mlp"), WithTest(small_table(), renumbered));
  EXPECT_EQ(finding.cause, "test_labels_differ") << finding_text(finding);
}

TEST(SanitySplits, CopiesOfTrainInTestAreNamed) {
  const auto source = small_table();
  const auto copied = each_row([source](Split split, data::Batch& b, size_t r) {
    if (split != Split::test || b.samples[r] % 5 != 0) return;
    const data::Batch one = source->load(Split::train, std::span(&b.samples[r], 1), {});
    std::copy_n(one.input.as<float>(), width(b), input(b, r));
    label(b, r) = one.target.as<int64_t>()[0];
  });
  const SanityFinding finding = finding_of("duplicates", job_for("mlp"), WithTest(small_table(), copied));
  EXPECT_EQ(finding.cause, "duplicates") << finding_text(finding);
  EXPECT_NE(finding.what.find("test"), std::string::npos) << finding.what;
}

TEST(SanitySplits, RowsOfFewValuesRepeatWithoutBeingCopies) {
  const auto coarse = each_row([](Split, data::Batch& b, size_t r) {
    for (int64_t i = 0; i < width(b); ++i) input(b, r)[i] = i < 5 && input(b, r)[i] > 0 ? 1.0F : 0.0F;
  });
  const SanityFinding finding = finding_of("duplicates", job_for("mlp"), WithTest(small_table(), coarse));
  EXPECT_EQ(finding.verdict, SanityFinding::Verdict::pass) << finding_text(finding);
}

// Makes column 3 a counter in the order of `key`, and the days of a date if `date`.
std::shared_ptr<Altered> counted(std::function<double(Split, int64_t sample, const data::Batch&, size_t row)> time,
                                 bool date) {
  auto data = altered(numbers({10}), each_row([time](Split split, data::Batch& b, size_t r) {
                        input(b, r)[3] = static_cast<float>(time(split, b.samples[r], b, r));
                      }));
  data::DataInfo& info = data->info_to_change();
  for (int i = 0; i < 10; ++i) info.input_names.push_back("c" + std::to_string(i));
  if (date) info.columns.push_back({"sold", "date", "", 0});
  if (date) info.input_names[3] = "sold.days";
  return data;
}

TEST(SanitySplits, ACounterThatSortsTheTargetIsNamed) {
  // 700 rows whose counter is the rank of their target, as in a sorted file
  const auto source = numbers({10});
  std::vector<int64_t> all(700);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  const data::Batch batch = source->load(Split::train, all, {});
  std::vector<size_t> order(all.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order,
                    [&](size_t a, size_t b) { return batch.target.as<float>()[a] < batch.target.as<float>()[b]; });
  auto rank = std::make_shared<std::vector<int64_t>>(all.size());
  for (size_t i = 0; i < order.size(); ++i) (*rank)[order[i]] = static_cast<int64_t>(i);
  const auto sorted = counted(
      [rank](Split split, int64_t sample, const data::Batch&, size_t) {
        return split == Split::train ? static_cast<double>((*rank)[static_cast<size_t>(sample)]) / 200 : 1.0;
      },
      false);
  const SanityFinding finding = finding_of("leak", job_for("mlp"), *sorted);
  EXPECT_EQ(finding.cause, "id_leak") << finding_text(finding);
  EXPECT_NE(finding.what.find("'c3'"), std::string::npos) << finding.what;
  const auto unsorted = counted(
      [](Split, int64_t sample, const data::Batch&, size_t) { return static_cast<double>(sample) / 200; }, false);
  EXPECT_EQ(finding_of("leak", job_for("mlp"), *unsorted).cause, "");
}

TEST(SanitySplits, ASplitThatIgnoresTimeIsNamed) {
  using Batch = data::Batch;
  const auto by_target = [](Split, int64_t, const Batch& b, size_t r) { return b.target.as<float>()[r] / 5; };
  const SanityFinding mixed = finding_of("dates", job_for("mlp"), *counted(by_target, true));
  EXPECT_EQ(mixed.cause, "date_leak") << finding_text(mixed);
  EXPECT_NE(mixed.hint.find("data.split.by: sold"), std::string::npos) << mixed.hint;
  const auto older = [](Split split, int64_t sample, const Batch&, size_t) {
    return (split == Split::train ? 1.0 : -1.0) + static_cast<double>(sample) / 1000;
  };
  EXPECT_EQ(finding_of("dates", job_for("mlp"), *counted(older, true)).cause, "date_leak");
  const auto later = [](Split split, int64_t sample, const Batch& b, size_t r) {
    return b.target.as<float>()[r] / 1000 + (split == Split::train ? 0.0 : 1.0) + static_cast<double>(sample) * 1e-6;
  };
  EXPECT_EQ(finding_of("dates", job_for("mlp"), *counted(later, true)).verdict, SanityFinding::Verdict::pass);
  const auto unrelated = [](Split, int64_t sample, const Batch&, size_t) {
    return static_cast<double>(sample % 97) / 50;
  };
  EXPECT_EQ(finding_of("dates", job_for("mlp"), *counted(unrelated, true)).verdict, SanityFinding::Verdict::pass);
}

TEST(SanitySplits, WhatHeldBeforeMayEndLater) {
  const auto unrelated_in_val = each_row([](Split split, data::Batch& b, size_t r) {
    if (split == Split::val) b.target.as<float>()[r] = static_cast<float>(3 * dice(b, r).normal());
  });
  const auto later = [](Split split, int64_t sample, const data::Batch&, size_t) {
    return (split == Split::train ? 0.0 : 1.0) + static_cast<double>(sample) / 1000;
  };
  const auto dated = altered(counted(later, true), unrelated_in_val);
  EXPECT_EQ(finding_of("labels", job_for("mlp"), *dated).cause, "");
  spec::Job by_number = job_for("mlp");
  by_number.data.split_by = "c3";
  const auto plain = altered(numbers({10}), unrelated_in_val);
  EXPECT_EQ(finding_of("labels", by_number, *plain).cause, "");
  EXPECT_EQ(finding_of("labels", job_for("mlp"), *plain).cause, "val_labels_differ");
}

TEST(SanitySplits, AColumnFilledInAfterwardsIsNamed) {
  const auto noisy = [](double noise) { return synthetic(Task::classification, {10}, 4, 900, 200, noise); };
  const auto told = each_row([](Split, data::Batch& b, size_t r) {
    input(b, r)[3] = static_cast<float>(dice(b, r).below(100) < 2 ? (label(b, r) + 1) % 4 : label(b, r)) / 2;
  });
  const SanityFinding finding = finding_of("leak", job_for("mlp"), *altered(noisy(3), told));
  EXPECT_EQ(finding.cause, "target_leak") << finding_text(finding);
  EXPECT_EQ(finding.verdict, SanityFinding::Verdict::warn);
  const SanityFinding easy = finding_of("leak", job_for("mlp"), *altered(noisy(0.3), told));
  EXPECT_EQ(easy.cause, "") << "the other columns know it as well\n" << finding_text(easy);
}

TEST(SanitySplits, PartsOfTheTargetAreNamed) {
  const auto parts = altered(numbers({10}), each_row([](Split, data::Batch& b, size_t r) {
                               input(b, r)[2] = b.target.as<float>()[r] - input(b, r)[7];
                             }));
  const SanityFinding finding = finding_of("leak", job_for("mlp"), *parts);
  EXPECT_EQ(finding.cause, "target_sum") << finding_text(finding);
}

}  // namespace
}  // namespace sinew::train
