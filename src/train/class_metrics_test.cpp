// Tests the metrics of classification against values computed by hand.
#include "train/class_metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sinew::train {
namespace {

// Rows: truth. The third class occurs but is never predicted, the fourth neither occurs nor is predicted.
const std::vector<int64_t> kConfusion = {6, 2, 0, 0,  //
                                         1, 3, 0, 0,  //
                                         2, 2, 0, 0,  //
                                         0, 0, 0, 0};

TEST(ClassMetrics, EachClassAgainstTheOthers) {
  const auto all = class_qualities(kConfusion, 4);
  EXPECT_DOUBLE_EQ(all[0].precision, 6.0 / 9);
  EXPECT_DOUBLE_EQ(all[0].recall, 6.0 / 8);
  EXPECT_DOUBLE_EQ(all[0].f1, 12.0 / 17);
  EXPECT_EQ(all[0].support, 8);
  EXPECT_EQ(all[1].predicted, 7);
  for (const double value : {all[2].precision, all[2].recall, all[2].f1, all[3].precision, all[3].f1})
    EXPECT_EQ(value, 0);
}

TEST(ClassMetrics, AveragesLeaveOutWhatNeitherOccursNorIsPredicted) {
  const auto found = confusion_metrics(kConfusion, 4);
  const double first = 12.0 / 17, second = 6.0 / 11;
  EXPECT_DOUBLE_EQ(found.at("f1"), (first + second) / 3);
  EXPECT_DOUBLE_EQ(found.at("f1_weighted"), (8 * first + 4 * second) / 16);
  EXPECT_DOUBLE_EQ(found.at("precision"), (6.0 / 9 + 3.0 / 7) / 3);
  EXPECT_DOUBLE_EQ(found.at("recall"), (6.0 / 8 + 3.0 / 4) / 3);
  EXPECT_DOUBLE_EQ(found.at("balanced_accuracy"), (6.0 / 8 + 3.0 / 4) / 3);
  EXPECT_NEAR(found.at("mcc"), (9 * 16 - (8 * 9 + 4 * 7)) / std::sqrt((256.0 - 96) * (256 - 130)), 1e-12);
  const std::vector<int64_t> wrong = {0, 4, 0, 0};  // the second class is predicted but does not occur
  EXPECT_EQ(confusion_metrics(wrong, 2).at("balanced_accuracy"), 0);
  EXPECT_EQ(confusion_metrics(wrong, 2).at("mcc"), 0);
  EXPECT_EQ(confusion_metrics(std::vector<int64_t>(4, 0), 2).at("f1"), 0);
}

TEST(ClassMetrics, CurvesCountTiesOnce) {
  const std::vector<float> scores = {0.9F, 1, 0.8F, 0, 0.8F, 1, 0.1F, 0};
  EXPECT_DOUBLE_EQ(area_under_roc(scores), (2 + 1.5) / 4);
  EXPECT_DOUBLE_EQ(average_precision(scores), 0.5 * 1 + 0.5 * (2.0 / 3));
  EXPECT_TRUE(std::isnan(area_under_roc(std::vector<float>{0.5F, 1, 0.2F, 1})));
  EXPECT_TRUE(std::isnan(average_precision(std::vector<float>{NAN, 1, 0.2F, 0})));
  EXPECT_TRUE(std::isnan(average_precision({})));
}

TEST(ClassMetrics, ThresholdsCountWhatIsAboveThem) {
  const std::vector<float> scores = {0.9F, 1, 0.8F, 0, 0.8F, 1, 0.1F, 0};
  const std::vector<report::ThresholdCounts> expected = {{0.9F, 1, 0}, {0.8F, 2, 1}, {0.1F, 2, 2}};
  EXPECT_EQ(threshold_counts(scores), expected);
  EXPECT_TRUE(threshold_counts(std::vector<float>{0.5F, 1, 0.2F, 1}).empty());
  EXPECT_TRUE(threshold_counts(std::vector<float>{NAN, 1, 0.2F, 0}).empty());
}

// Few thresholds stand for many samples: the areas under their curves are nearly those of all samples.
TEST(ClassMetrics, FewThresholdsKeepTheCurves) {
  std::vector<float> scores;
  uint32_t noise = 1;
  for (int i = 0; i < 20'000; ++i) {
    noise = noise * 1664525U + 1013904223U;
    const bool positive = i % 5 == 0;
    scores.push_back(static_cast<float>(noise >> 8) / 1e7F + (positive ? 0.6F : 0));
    scores.push_back(positive ? 1 : 0);
  }
  const auto points = threshold_counts(scores);
  EXPECT_LE(points.size(), 202U);
  EXPECT_GE(points.size(), 100U);
  EXPECT_EQ(points.back().true_positives, 4000);
  EXPECT_EQ(points.back().false_positives, 16'000);
  double roc = 0;
  report::ThresholdCounts before;
  for (const auto& one : points) {
    EXPECT_TRUE(one.score < before.score || before.true_positives + before.false_positives == 0);
    roc += static_cast<double>(one.false_positives - before.false_positives) / 16'000 *
           static_cast<double>(one.true_positives + before.true_positives) / 8000;
    before = one;
  }
  EXPECT_NEAR(roc, area_under_roc(scores), 0.001);
}

TEST(ClassMetrics, CalibrationIsTheDistanceOfConfidenceAndAccuracy) {
  EXPECT_EQ(Calibration::bin_of(0), 0U);
  EXPECT_EQ(Calibration::bin_of(1.0 / 15), 0U) << "an interval includes its upper end";
  EXPECT_EQ(Calibration::bin_of(0.0667), 1U);
  EXPECT_EQ(Calibration::bin_of(1), 14U);
  EXPECT_EQ(Calibration::bin_of(1.5), 14U);
  Calibration calibration;
  EXPECT_EQ(calibration.error(), 0);
  calibration.samples[14] = 10;
  calibration.right[14] = 5;
  calibration.confidence[14] = 9.5;
  calibration.samples[3] = 10;
  calibration.right[3] = 3;
  calibration.confidence[3] = 2.5;
  EXPECT_DOUBLE_EQ(calibration.error(), (4.5 + 0.5) / 20);
}

}  // namespace
}  // namespace sinew::train
