#include "train/fastest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace sinew::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Arithmetic kPlain{"fp32", "contiguous"}, kLast{"fp32", "channels_last"}, kLow{"bf16", "contiguous"},
    kLowLast{"bf16", "channels_last"};

ArithmeticTrial trial(const Arithmetic& how, std::vector<double> rounds, double loss = 2.3) {
  return {how, std::move(rounds), loss, ""};
}

std::string chosen(const std::vector<ArithmeticTrial>& trials) {
  const auto choice = choose_arithmetic(trials);
  return choice ? choice->how.precision + " " + choice->how.memory_format : "nothing";
}

TEST(Fastest, TheShortestRoundCounts) {
  EXPECT_EQ(chosen({trial(kPlain, {0.010, 0.010, 0.010}), trial(kLow, {0.050, 0.006, 0.050})}), "bf16 contiguous");
  EXPECT_EQ(chosen({trial(kPlain, {0.050, 0.006, 0.050}), trial(kLow, {0.010, 0.010, 0.010})}), "fp32 contiguous");
  EXPECT_EQ(chosen({trial(kPlain, {0.010, 0.010}), trial(kLast, {0.008, 0.008}), trial(kLow, {0.007, 0.007}),
                    trial(kLowLast, {0.004, 0.004})}),
            "bf16 channels_last");
}

TEST(Fastest, ASmallGainIsNotWorthAnotherArithmetic) {
  EXPECT_EQ(chosen({trial(kPlain, {1.04, 1.04}), trial(kLow, {1.0, 1.0})}), "fp32 contiguous");
  EXPECT_EQ(chosen({trial(kPlain, {1.06, 1.06}), trial(kLow, {1.0, 1.0})}), "bf16 contiguous");
  EXPECT_EQ(chosen({trial(kPlain, {2, 2}), trial(kLast, {1.04, 1.04}), trial(kLow, {1.0, 1.0})}), "fp32 channels_last");
}

TEST(Fastest, WhatTrainsDifferentlyOrNotAtAllIsNotChosen) {
  const ArithmeticTrial plain = trial(kPlain, {1, 1}, 2.3);
  EXPECT_EQ(chosen({plain, trial(kLow, {0.5, 0.5}, 2.31)}), "bf16 contiguous");
  EXPECT_EQ(chosen({plain, trial(kLow, {0.5, 0.5}, 2.6)}), "fp32 contiguous");
  EXPECT_EQ(chosen({plain, trial(kLow, {0.5, 0.5}, NAN)}), "fp32 contiguous");
  EXPECT_EQ(chosen({plain, {kLow, {0.5, 0.5}, 2.3, "not enough memory"}}), "fp32 contiguous");
  EXPECT_EQ(chosen({plain, trial(kLow, {0.5})}), "fp32 contiguous") << "one round says too little";
  EXPECT_EQ(chosen({trial(kPlain, {1, 1}, 0.001), trial(kLow, {0.5, 0.5}, 0.002)}), "bf16 contiguous")
      << "a loss near 0 is rounded by a large part";
}

TEST(Fastest, WithoutThePlainOneNothingIsKnown) {
  EXPECT_EQ(chosen({}), "nothing");
  EXPECT_EQ(chosen({trial(kPlain, {1}), trial(kLow, {0.5, 0.5})}), "nothing");
  EXPECT_EQ(chosen({{kPlain, {}, 0, "the batch is too small"}, trial(kLow, {0.5, 0.5})}), "nothing");
}

TEST(Fastest, TheReasonHasTheFigures) {
  const auto choice = choose_arithmetic({trial(kPlain, {0.0123456, 0.02}),
                                         trial(kLow, {0.00512, 0.006}),
                                         trial(kLowLast, {0.004, 0.004}, 4),
                                         {kLast, {}, 0, "no memory"}});
  ASSERT_TRUE(choice);
  EXPECT_THAT(choice->reason, HasSubstr("fp32 contiguous 12.3 ms, bf16 contiguous 5.12 ms, bf16 channels_last 4 ms but "
                                        "another loss (4 instead of 2.3), fp32 channels_last does not train (no "
                                        "memory)"));
  const auto formats = choose_arithmetic({trial(kPlain, {0.01, 0.01}), trial(kLow, {0.005, 0.005})});
  EXPECT_THAT(formats->reason, HasSubstr("fp32 10 ms, bf16 5 ms")) << "one format needs no name";
}

data::DataInfo data_of(Shape input) {
  data::DataInfo info;
  info.task = data::Task::classification;
  info.input_shape = std::move(input);
  info.classes = 10;
  info.train_size = 1000;
  return info;
}

std::vector<Arithmetic> wanted(const std::string& model, const std::string& precision, const std::string& format,
                               Shape input, bool fast_bfloat16 = true) {
  spec::Job job;
  job.model.name = model;
  job.trainer.precision = precision;
  job.trainer.memory_format = format;
  return arithmetics_of(job, data_of(std::move(input)), {.cores = 2, .fast_bfloat16 = fast_bfloat16});
}

TEST(Fastest, WhatTheJobGivesStays) {
  EXPECT_THAT(wanted("cnn", "fastest", "fastest", {3, 32, 32}), ElementsAre(kPlain, kLast, kLow, kLowLast));
  EXPECT_THAT(wanted("cnn", "fastest", "contiguous", {3, 32, 32}), ElementsAre(kPlain, kLow));
  EXPECT_THAT(wanted("cnn", "fastest", "channels_last", {3, 32, 32}), ElementsAre(kLast, kLowLast));
  EXPECT_THAT(wanted("cnn", "bf16", "fastest", {3, 32, 32}), ElementsAre(kLow, kLowLast));
  EXPECT_THAT(wanted("cnn", "auto", "fastest", {3, 32, 32}), ElementsAre(kLow, kLowLast));
  EXPECT_THAT(wanted("cnn", "auto", "fastest", {3, 32, 32}, false), ElementsAre(kPlain, kLast));
}

TEST(Fastest, OnlyImagesHaveAnotherFormat) {
  EXPECT_THAT(wanted("mlp", "fastest", "fastest", {20}), ElementsAre(kPlain, kLow));
  EXPECT_THAT(wanted("mlp", "fp32", "fastest", {20}), ElementsAre(kPlain));
}

TEST(Fastest, AFormatThatIsAutoFollowsThePrecision) {
  EXPECT_THAT(wanted("resnet18", "fastest", "auto", {3, 32, 32}, false), ElementsAre(kPlain, kLowLast));
  EXPECT_THAT(wanted("mlp", "fastest", "auto", {3, 32, 32}), ElementsAre(kPlain, kLow));
}

}  // namespace
}  // namespace sinew::train
