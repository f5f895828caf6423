// A trainer of numbers instead of a model. For tests.
#pragma once

#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "loop/loop.h"

namespace sinew::loop {

// Its state is one number, in one tensor. A step makes the next one.
class NumberTrainer : public Trainer {
 public:
  State& state() override { return state_; }
  int64_t batch_size(Step) const override { return 1; }
  StepResult step(const StepMessage& own, bool) override {
    if (before_step) before_step(state_.step.value);
    rates.push_back(own.learning_rate);
    number = digest_of("after " + std::to_string(number)).low;
    state_.step = state_.step.next();
    state_.samples += 1;
    StepResult result{.loss = 1, .loss_sum = 1, .weight = 1, .samples = 1};
    result.entries = own.entries;
    if (state_.step.value == wrong_step) result.wrong = {"member 2 computed a wrong result"};
    return result;
  }
  void audit_next_step() override { audited.push_back(state_.step.value); }
  EvaluationResult evaluate(data::Split, const std::function<bool()>& too_late = nullptr) override {
    if (before_evaluation) before_evaluation();
    if (too_late && too_late()) throw OutOfTime();
    return {.metrics = {{"loss", loss_at ? loss_at(state_.step.value) : 1.0 / static_cast<double>(state_.step.value)}}};
  }
  Digest digest() override {
    checkpoint::StateDigest digest;
    digest.add(std::as_bytes(std::span(&number, 1)));
    return digest.finish(digest_of_text());
  }
  void compare(Digest own) override {
    if (on_compare) on_compare(own);
  }
  void check_memory() override {
    if (on_check) on_check();
  }
  checkpoint::OwnedSnapshot snapshot(const StateFacts& facts) override {
    checkpoint::OwnedSnapshot taken;
    taken.step = state_.step;
    taken.digest = digest();
    nlohmann::json document = state_document(state_, facts);
    document[checkpoint::kStateDigestKey] =
        checkpoint::state_digest_json(digest_of_text(), {{.part = "model", .name = "number"}});
    taken.state_json = document.dump();
    Buffer bytes(sizeof number);
    std::memcpy(bytes.data(), &number, sizeof number);
    if (spoiled.contains(state_.step.value)) bytes.data()[0] ^= std::byte{1};
    taken.parts["model"].emplace_back(
        checkpoint::TensorEntry{.name = "number", .dtype = DType::u8, .shape = {sizeof number}}, std::move(bytes));
    return taken;
  }
  StateFacts restore(const checkpoint::Loaded& loaded) override {
    StateFacts facts;
    const auto document = nlohmann::json::parse(loaded.state_json);
    read_document(document, state_, facts);
    std::memcpy(&number, loaded.parts.at("model").tensors.at("number").bytes.data(), sizeof number);
    if (restores_wrong) number ^= 1;
    return facts;
  }
  std::string warm_start() override { return ""; }
  void leave_group() override { in_group = false; }
  std::string write_artifact(Disk&) override { return ""; }

  uint64_t number = 1;
  bool in_group = true;
  bool restores_wrong = false;   // memory changes while a state is restored
  int64_t wrong_step = -1;       // a member computed a wrong result in the step that led to this one
  std::set<int64_t> spoiled;     // steps at which the copy of the state changes in memory before it is saved
  std::vector<double> rates;     // the learning rate of each step
  std::vector<int64_t> audited;  // the steps in which every shard is computed twice
  std::function<void(int64_t step)> before_step = nullptr;
  std::function<void()> before_evaluation = nullptr;
  std::function<double(int64_t step)> loss_at = nullptr;  // the loss of an evaluation
  std::function<void(Digest)> on_compare = nullptr;
  std::function<void()> on_check = nullptr;

 private:
  Digest digest_of_text() const { return digest_of(counts_text(state_) + decisions_text(state_)); }
  State state_;
};

}  // namespace sinew::loop
