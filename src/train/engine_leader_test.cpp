// Tests that a member takes from the leader the values that are computed with libm (learning rate, perplexity),
// whatever it computes itself.
#include <cmath>

#include "base/error.h"
#include "train/synthetic.h"

namespace sinew::train {
namespace {

// The reducer of a member whose leader sends `message` with every collective. Without a message, this member leads.
class Led final : public Reducer {
 public:
  void begin(int64_t shards, const std::vector<torch::Tensor>& gradients, std::string control_message,
             std::optional<Mark> mark, const Audit& audit, const Purpose&) override {
    sent = control_message;
    local_->begin(shards, gradients, message.value_or(control_message), mark, audit);
  }
  std::optional<ShardTask> next_shard() override { return local_->next_shard(); }
  void deliver(ShardIndex shard, std::optional<Contribution> leaf) override { local_->deliver(shard, std::move(leaf)); }
  void reduce() override { local_->reduce(); }
  Reduced reduced() override { return local_->reduced(); }
  std::string sent;
  std::optional<std::string> message;

 private:
  std::unique_ptr<Reducer> local_ = make_local_reducer();
};

struct LedEngine {
  explicit LedEngine(const spec::Job& job, const data::Dataset& data) : test(job, data) {
    test.engine.set_reducer(reducer);
  }
  Led reducer;
  TestEngine test;
};

TEST(EngineLeader, AMemberWithAnotherLibmUsesTheLeadersLearningRate) {
  const SyntheticData data(data::Task::classification, {10}, 4, 80, 31);
  for (const char* optimizer : {"sgd", "adamw"}) {
    spec::Job job = test_job("mlp");
    job.optimizer.name = optimizer;
    LedEngine leader(job, data), member(job, data);
    const double rate = 0.1F, other = std::nextafter(0.1F, 1.0F);  // libtorch rounds a rate to float
    for (int step = 0; step < 4; ++step) {
      EXPECT_EQ(leader.test.engine.step(rate, false).learning_rate, rate);
      member.reducer.message = leader.reducer.sent;
      EXPECT_EQ(member.test.engine.step(other, false).learning_rate, rate);
      EXPECT_EQ(digest(member.test.engine.state()), digest(leader.test.engine.state()));
    }
    // The digest tells the two rates apart.
    member.reducer.message.reset();
    leader.test.engine.step(rate, false);
    member.test.engine.step(other, false);
    EXPECT_NE(digest(member.test.engine.state()), digest(leader.test.engine.state())) << optimizer;
  }
}

TEST(EngineLeader, AMemberRefusesARateThatIsNotFinite) {
  const SyntheticData data(data::Task::classification, {10}, 4, 80, 31);
  LedEngine member(test_job("mlp"), data);
  const Digest before = digest(member.test.engine.state());
  for (const double rate : {INFINITY, -INFINITY, NAN}) {
    member.reducer.message = to_text(StepMessage{rate, {}});
    try {
      member.test.engine.step(0.1, false);
      ADD_FAILURE() << rate;
    } catch (const Error& refused) {
      EXPECT_EQ(refused.code, ErrorCode("TRAIN_CONTROL_MESSAGE_INVALID")) << refused.what();
    }
    EXPECT_EQ(digest(member.test.engine.state()), before);
  }
  member.reducer.message.reset();
  member.test.engine.step(0.1, false);
}

TEST(EngineLeader, ThePerplexityIsTheLeaders) {
  const SyntheticData data(data::Task::next_token, {7}, 11, 107, 31);
  LedEngine member(test_job("lstm"), data);
  const report::Metrics own = member.test.engine.evaluate(data::Split::val).metrics;
  EXPECT_EQ(own.at("perplexity"), std::exp(own.at("loss")));
  member.reducer.message = "12.5";
  EXPECT_EQ(member.test.engine.evaluate(data::Split::val).metrics.at("perplexity"), 12.5);
  member.reducer.message = "\"Infinity\"";
  EXPECT_EQ(member.test.engine.evaluate(data::Split::val).metrics.at("perplexity"), INFINITY);
  member.reducer.message = "";
  EXPECT_THROW(member.test.engine.evaluate(data::Split::val), Error);
}

}  // namespace
}  // namespace sinew::train
