// Tests that all members leave out the same samples, whatever their copies of the data are.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "train/synthetic.h"

namespace sinew::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A copy of the data in which some samples do not decode.
class Copy final : public AlteredData {
 public:
  Copy(const SyntheticData& data, std::set<int64_t> torn) : AlteredData(data), torn_(std::move(torn)) {}
  data::Batch load(data::Split split, std::span<const int64_t> samples,
                   const data::SampleContext& context) const override {
    std::vector<int64_t> whole;
    std::vector<data::Skipped> skipped;
    for (const int64_t sample : samples) {
      if (torn_.contains(sample)) {
        skipped.push_back({sample, describe(split, sample) + ": torn"});
      } else {
        whole.push_back(sample);
      }
    }
    data::Batch batch = data_.load(split, whole, context);
    batch.skipped = std::move(skipped);
    return batch;
  }

 private:
  std::set<int64_t> torn_;
};

// The reducer of one member. It alone computes, but other members may find other samples torn.
class WithOthers final : public Reducer {
 public:
  void begin(int64_t shards, const std::vector<torch::Tensor>& gradients, std::string control_message,
             std::optional<Mark> mark, const Audit& audit, const Purpose&) override {
    asks_ = audit.of_copies;
    asked += asks_ ? 1 : 0;
    collectives += 1;
    local_->begin(shards, gradients, std::move(control_message), mark, audit);
  }
  bool compares() const override { return true; }
  std::optional<ShardTask> next_shard() override { return local_->next_shard(); }
  void deliver(ShardIndex shard, std::optional<Contribution> leaf) override { local_->deliver(shard, std::move(leaf)); }
  void reduce() override { local_->reduce(); }
  Reduced reduced() override {
    Reduced reduced = local_->reduced();
    if (asks_ && !torn_for_others) reduced.sums.not_decoded.clear();
    if (!asks_ && reported) reduced.sums.not_decoded.push_back(*std::exchange(reported, std::nullopt));
    return reduced;
  }
  bool torn_for_others = true;
  std::optional<int64_t> reported;  // another member reports this sample in the next collective
  int64_t asked = 0, collectives = 0;

 private:
  bool asks_ = false;
  std::unique_ptr<Reducer> local_ = make_local_reducer();
};

struct Member {
  explicit Member(const data::Dataset& data, const spec::Job& job = test_job("mlp")) : test(job, data) {
    test.engine.set_reducer(reducer);
  }
  std::vector<int64_t> left_out() {
    std::vector<int64_t> samples;
    for (const loop::LeftOut& one : test.engine.state().left_out) samples.push_back(one.sample);
    return samples;
  }
  Digest digest() { return train::digest(test.engine.state()); }
  WithOthers reducer;
  TestEngine test;
};

const SyntheticData& whole() {
  static const SyntheticData data(data::Task::classification, {10}, 4, 80, 31);
  return data;
}

TEST(LeftOut, WhatDecodesForNobodyIsLeftOutForGood) {
  const Copy torn(whole(), {3, 4, 50});
  Member member(torn);
  int64_t left_out = 0;
  for (int step = 0; step < 2; ++step) left_out += member.test.engine.step(0.1, false).left_out.count;  // one epoch
  EXPECT_EQ(left_out, 3);
  EXPECT_THAT(member.left_out(), ElementsAre(3, 4, 50));
  const int64_t asked = member.reducer.asked;
  for (int step = 0; step < 2; ++step) EXPECT_EQ(member.test.engine.step(0.1, false).left_out.count, 0);
  EXPECT_EQ(member.reducer.asked, asked) << "the group has decided";
}

TEST(LeftOut, AMemberWithAGoodCopyLeavesOutTheSameSamples) {
  const Copy torn(whole(), {3, 4, 50});
  Member damaged(torn), good(whole());
  for (int step = 0; step < 2; ++step) damaged.test.engine.step(0.1, false);
  for (const int64_t sample : {3, 4, 50}) good.test.engine.state().left_out.insert({data::Split::train, sample});
  for (int step = 0; step < 2; ++step) good.test.engine.step(0.1, false);
  EXPECT_EQ(good.digest(), damaged.digest());
  Member other(whole());
  for (int step = 0; step < 2; ++step) other.test.engine.step(0.1, false);
  EXPECT_NE(other.digest(), damaged.digest());
}

TEST(LeftOut, AMemberWhoseCopyAloneIsDamagedEnds) {
  const Copy torn(whole(), {3});
  Member member(torn);
  member.reducer.torn_for_others = false;
  const Digest before = member.digest();
  try {
    for (int step = 0; step < 2; ++step) {
      member.test.engine.step(0.1, false);
      EXPECT_EQ(member.reducer.asked, 0);
    }
    ADD_FAILURE() << "the steps were committed";
  } catch (const ShardFailed& failed) {
    EXPECT_EQ(failed.code, ErrorCode("DATA_COPY_DAMAGED"));
    EXPECT_THAT(failed.what(), HasSubstr("train#3"));
  }
  EXPECT_TRUE(member.test.engine.state().step.value == 1 || member.digest() == before);
  EXPECT_TRUE(member.left_out().empty());
}

TEST(LeftOut, AReportThatOthersDoNotConfirmChangesNothing) {
  Member calm(whole()), member(whole());
  calm.test.engine.step(0.1, false);
  member.reducer.torn_for_others = false;
  member.reducer.reported = 17;
  const StepResult result = member.test.engine.step(0.1, false);
  EXPECT_EQ(member.reducer.collectives, 3) << "the step, the question, the step again";
  ASSERT_EQ(result.damaged_copies.size(), 1U);
  EXPECT_THAT(result.damaged_copies[0], HasSubstr("train#17"));
  EXPECT_EQ(member.digest(), calm.digest());
  EXPECT_TRUE(member.left_out().empty());
  const auto expected = calm.test.engine.evaluate(data::Split::val);
  member.reducer.reported = 5;
  const auto evaluation = member.test.engine.evaluate(data::Split::val);
  EXPECT_EQ(evaluation.metrics, expected.metrics);
  EXPECT_THAT(evaluation.damaged_copies, ElementsAre(HasSubstr("val#5")));
}

TEST(LeftOut, AWholeShardOrStepMayBeLeftOut) {
  std::set<int64_t> all;
  for (int64_t sample = 0; sample < 80; ++sample) all.insert(sample);
  const Copy nothing(whole(), all);
  Member member(nothing);
  const Digest weights = digest_of(
      std::as_bytes(std::span(member.test.engine.state().parameters[0].tensor.const_data_ptr<float>(), size_t{4})));
  const StepResult result = member.test.engine.step(0.1, false);
  EXPECT_EQ(result.left_out.count, 40);
  EXPECT_EQ(result.left_out.names.size(), SkippedSamples::kNamed);
  EXPECT_EQ(digest_of(std::as_bytes(
                std::span(member.test.engine.state().parameters[0].tensor.const_data_ptr<float>(), size_t{4}))),
            weights);
  EXPECT_EQ(member.test.engine.evaluate(data::Split::val).left_out.count, 31);
  for (const int64_t lanes : {1, 3}) {
    // Five samples in a shard; some shards have none that decodes.
    std::set<int64_t> most = all;
    for (const int64_t sample : {1, 20, 33, 34, 57, 79}) most.erase(sample);
    const Copy few(whole(), most);
    Member first(few, test_job("mlp", lanes)), again(few, test_job("mlp"));
    for (int step = 0; step < 4; ++step) {
      first.test.engine.step(0.1, false);
      again.test.engine.step(0.1, false);
    }
    EXPECT_EQ(first.digest(), again.digest());
    EXPECT_EQ(first.left_out().size(), 74U);
  }
}

TEST(LeftOut, TheStateKeepsTheSamplesAndTheDigestCoversThem) {
  loop::State state, read;
  const std::string before = loop::decisions_text(state);
  EXPECT_EQ(loop::state_document(state, {}).dump().find("left_out"), std::string::npos) << "as in older versions";
  state.left_out = {{data::Split::train, 17}, {data::Split::train, 2}, {data::Split::val, 5}};
  EXPECT_NE(loop::decisions_text(state), before);
  loop::StateFacts facts;
  loop::read_document(loop::state_document(state, {}), read, facts);
  EXPECT_EQ(read.left_out, state.left_out);
  EXPECT_EQ(loop::decisions_text(read), loop::decisions_text(state));
}

}  // namespace
}  // namespace sinew::train
