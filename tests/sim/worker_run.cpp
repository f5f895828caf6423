// Runs the threads of a simulated worker: the step thread with the real loop, its lanes, and the checkpoint writer's.
#include <algorithm>
#include <exception>
#include <utility>

#include "rundir/rundir.h"
#include "worker.h"

namespace sinew::sim {
namespace {

// The real membership. In addition, it calls on_begin when this member begins without the state of another member.
class Members final : public loop::GroupMembers {
 public:
  Members(group::Membership& member, std::function<double()> speed, Clock& clock,
          std::function<void(Step step)> on_begin)
      : GroupMembers(member, std::move(speed), clock), on_begin_(std::move(on_begin)) {}

  std::optional<checkpoint::Loaded> take_state() override {
    auto taken = GroupMembers::take_state();
    joins_ = taken.has_value();
    return taken;
  }
  void begin(Step step, Digest origin) override {
    if (!joins_) on_begin_(step);
    GroupMembers::begin(step, origin);
  }

 private:
  std::function<void(Step step)> on_begin_;
  bool joins_ = false;
};

}  // namespace

// ---- threads -------------------------------------------------------------------------------------------------------

void Worker::start_thread(std::function<void()> body) {
  std::erase_if(threads_, [](const auto& thread) { return thread->over(); });
  threads_.push_back(std::make_unique<Fiber>(process, std::move(body)));
  process.after(scene_.world.random.uniform(0, 0.0003), [thread = threads_.back().get()] { thread->resume(); });
}

// Resumes the threads that wait, so that they check their conditions again.
void Worker::wake() {
  if (std::exchange(awake_, true)) return;
  process.after(scene_.world.random.uniform(0, 0.0003), [this] {
    awake_ = false;
    std::vector<Fiber*> waiting;
    for (const auto& thread : threads_) {
      if (thread->waits()) waiting.push_back(thread.get());
    }
    for (Fiber* thread : waiting) thread->resume();
  });
}

void Worker::wait_until(const std::function<bool()>& condition) {
  while (!condition()) Fiber::current()->wait();
}

// ---- the step thread -----------------------------------------------------------------------------------------------

void Worker::run() {
  std::string why;
  const ProcessEnd end = run_loop(why);
  process.after(0, [this, end, why] { end_process(end, why); });  // an event, because it unwinds this thread
}

// Does the work that worker/train.cpp, distribute/members.cpp and train/run.cpp do around the loop in the product.
ProcessEnd Worker::run_loop(std::string& why) {
  wait_until([this] { return !out_.empty() || role_->in_view(); });
  const auto ends = [&](const std::string& reason, int code) {
    why = reason;
    return ProcessEnd{code, 0};
  };
  if (!out_.empty()) return ends(out_, static_cast<int>(finished_.value_or(kRejoin)));
  const auto speed = [this] {
    const double usual = static_cast<double>(lanes_) / (pace_ * scene_.shard_seconds);
    return computed_ ? usual * scene_.world.random.uniform(0.9, 1.1) : 0;
  };
  trainer_ = std::make_unique<Trainer>(scene_, pid, static_cast<Lanes&>(*this));
  Members members(*this, speed, scene_.world, [this](Step step) {
    trainer_->origin = scene_.judge.begins(membership_->id(), *role_->view(), step.value, trainer_->numbers(),
                                           trainer_->origin, scene_.judge.is_disturbed(pid));
  });
  loop::RunOptions options{.run_directory = scene_.run_directory, .ledger = true};
  options.screen.output = options.screen.errors = [](std::string_view) {};
  options.stop_signals = &stop_signals_;
  options.on_work = [this](int lane, const Work& work) { post(lane, work); };
  options.began = loop::begin_time(scene_.world);
  options.in_background = [this](std::function<void()> work) {
    start_thread([this, work = std::move(work)] { write_in_background(work); });
  };
  fence_.emplace(scene_.disk, scene_.run_directory, number());
  try {
    const loop::RunResult result = loop::run(scene_.plan, options, *trainer_, &members, *fence_, scene_.world);
    return ends("the run is over", result.exit_code);
  } catch (const group::Fenced& out) {
    if (std::string(out.what()).find("has taken over") != std::string::npos) scene_.judge.learns_that_it_was_replaced();
    return ends(out.what(), members.exit_code_if_fenced());
  } catch (const group::MembersDiffer& differ) {
    return ends(differ.what(), kTrainingError);
  } catch (const Error& error) {
    scene_.judge.complain("process " + std::to_string(pid) + ": " + error.what());
    return ends(error.what(), kTrainingError);
  }
}

// The body of the checkpoint writer's thread. Reports to the judge which step is durable.
void Worker::write_in_background(const std::function<void()>& work) {
  Fiber::current()->sleep(scene_.world.random.uniform(0, 0.05));
  work();
  const std::string last = rundir::file_in(scene_.run_directory, rundir::kCheckpoints) + "/last";
  if (!scene_.disk.exists(last)) return;
  if (const auto durable = checkpoint::describe(scene_.disk, last))
    scene_.judge.durable(durable->step.value, trainer_->origin->attempt);
}

// ---- lanes ---------------------------------------------------------------------------------------------------------

group::Reduced Worker::collective(int64_t number, const std::string& control_message, std::optional<Mark> mark,
                                  const LeafOf& leaf_of, std::vector<std::vector<float>>& rows) {
  const auto& shape = scene_.job.numbers.shape(number);
  in_collective_ = number;
  const double part = scene_.job.is_comparison(number) ? 0 : scene_.plan.job.cluster.audit;
  group_->begin(shape.shards, shape.lengths, control_message, mark, audit_of(7, Step(number), shape.shards, part));
  int running = lanes_;
  std::exception_ptr failure;
  for (int i = 0; i < lanes_; ++i) {
    start_thread([&, this, i] {
      try {
        lane(i, number, leaf_of);
      } catch (const group::Fenced&) {
        failure = std::current_exception();
      } catch (const group::MembersDiffer& differ) {
        scene_.judge.notices(trainer_->origin->attempt, differ.outvoted.empty());
        failure = std::current_exception();
      }
      --running;
      wake();
    });
  }
  wait_until([&] { return running == 0; });
  if (failure) std::rethrow_exception(failure);
  std::vector<float*> out;
  for (auto& row : rows) out.push_back(row.data());
  if (group_->view().computing().size() < 2)
    scene_.judge.is_alone(membership_->id(), trainer_->origin->attempt, trainer_->state().step.value);
  return group_->finish(out);
}

// A wrong result of this worker, other than that of any other worker.
std::optional<group::Leaf> Worker::a_lie(std::optional<group::Leaf> leaf) {
  scene_.judge.lies(pid, membership_->id(), trainer_->origin->attempt);
  if (!leaf) leaf.emplace();
  leaf->small += "a lie of " + std::to_string(pid) + ",";
  return leaf;
}

void Worker::lane(int lane, int64_t number, const LeafOf& leaf_of) {
  using Kind = group::Group::Turn::Kind;
  while (true) {
    const group::Group::Turn turn = group_->turn();
    if (turn.kind == Kind::over) return;
    if (turn.kind == Kind::idle) {
      post(lane, {.kind = Work::Kind::reducing, .step = number});
      Fiber::current()->wait();
      continue;
    }
    if (turn.kind == Kind::worked) {
      Fiber::current()->sleep(scene_.world.random.uniform(0, 0.001));
    } else {
      post(lane, {.kind = Work::Kind::computing, .step = number, .shard = turn.shard.value});
      const double factor = pace_ * scene_.world.random.uniform(kLeastOfUsual, kMostOfUsual);
      Fiber::current()->sleep(scene_.shard_seconds * factor);
      auto leaf = leaf_of(turn.shard.value);
      if (!scene_.job.is_comparison(number) && std::exchange(lies_, false)) leaf = a_lie(std::move(leaf));
      if (turn.audit) {
        group_->deliver_audit(turn.shard, leaf);
        wake();
        continue;
      }
      group_->deliver(turn.shard, std::move(leaf));
      if (!scene_.job.is_comparison(number))
        scene_.judge.delivers(trainer_->origin->attempt, number, turn.shard.value, pid);
      computed_ = true;
    }
    wake();
  }
}

void Worker::post(int lane, const Work& work) {
  LaneActivity& activity = activity_[lane];
  activity = {lane, activity.sequence + 1, work};
}

std::vector<LaneActivity> Worker::activity() const {
  std::vector<LaneActivity> all;
  for (const auto& [lane, activity] : activity_) all.push_back(activity);
  return all;
}

}  // namespace sinew::sim
