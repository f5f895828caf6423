// Small complete runs on a table, with a simulated clock, alone or as the only member of a group. For tests.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "train/synthetic.h"

namespace sinew::train {

// A clock that advances by a hundredth of a second with each call. At `signal_at` it sends the run a stop signal.
class TickingClock final : public Clock {
 public:
  explicit TickingClock(double signal_at = 1e9) : signal_at_(signal_at) {}
  double monotonic_seconds() const override {
    const double now = static_cast<double>(++looks_) * 0.001;
    if (now >= signal_at_) signals = 1;
    return now;
  }
  double wall_seconds() const override { return 1e9 + seconds(); }
  void sleep_seconds(double) override {}
  double seconds() const { return static_cast<double>(looks_) * 0.001; }
  mutable std::atomic<int> signals{0};

 private:
  double signal_at_;
  mutable std::atomic<int64_t> looks_{0};
};

// The only member of its run. A user makes the requests in `asked`. If `leased` is false, the other members have
// continued without this one.
class Alone : public Membership, protected loop::Members {
 public:
  explicit Alone(std::vector<ControlEntry> asked = {}, bool leased = true)
      : pending_entries_(std::move(asked)), reducer_(make_local_reducer()), leased_(leased) {}
  MemberId id() const override { return id_; }
  loop::Members& members() override { return *this; }
  Reducer& reducer() override { return *reducer_; }

 protected:
  bool is_leader() const override { return true; }
  bool has_peers() const override { return false; }
  bool is_alone() const override { return true; }
  bool may_write() const override { return leased_; }
  std::optional<checkpoint::Loaded> take_state() override { return std::nullopt; }
  void begin(Step, Digest) override {}
  void boundary(const loop::State&, const std::function<checkpoint::OwnedSnapshot()>&) override {}
  std::vector<ControlEntry> requests() override { return std::exchange(pending_entries_, {}); }
  void report(std::optional<Step>, const std::string&) override {}
  void leave() override {}
  [[noreturn]] void dissolve(const std::string& why) override { throw std::runtime_error(why); }
  GoingBack going_back() const override { return {}; }
  void check_membership() const override {
    if (!leased_) throw std::runtime_error("the others have continued without this member");
  }
  std::optional<std::string> unled(const std::string&) const override { return std::nullopt; }
  void finished(int) override {}
  std::optional<int> wait_for_end() override { return 0; }

 private:
  std::vector<ControlEntry> pending_entries_;
  std::unique_ptr<Reducer> reducer_;
  bool leased_;
  // Leaves room for the numbers of runs without a group in the same directory.
  static constexpr int64_t kBetween = 1000;
  static inline int64_t newest_ = 0;
  const MemberId id_{newest_ += kBetween};
};

class SmallRun : public testing::Test {
 protected:
  SmallRun() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sinew-run-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    run_directory_ = folder_;
    std::ofstream table(folder_ + "/table.csv");
    table << "a,b,y\n";
    for (int i = 0; i < 64; ++i) table << i % 7 << ',' << i % 5 << ',' << i % 2 << '\n';
    job_ = test_job("mlp");
    job_.model.hidden = {4};
    job_.trainer.batch_size = 16;
    job_.trainer.max_duration = {1e6, spec::Duration::Unit::epochs};
    job_.trainer.eval_interval = {1e6, spec::Duration::Unit::epochs};
    job_.checkpoint.interval = "never";
    job_.logging.interval = {1e9, spec::Duration::Unit::steps};
    job_.logging.tensorboard = false;
    job_.data.format = "csv";
    job_.data.train.path = folder_ + "/table.csv";
    job_.data.task = "classification";
    job_.data.columns.target = "y";
  }
  ~SmallRun() override { std::filesystem::remove_all(folder_); }

  RunResult run_for(TickingClock& clock, bool resume = false) {
    RunOptions options;
    options.job = job_;
    options.run_directory = run_directory_;
    options.resume = resume;
    options.ledger = ledger_;
    options.stop_signals = &clock.signals;
    options.join = join_;
    options.on_work = on_work_;
    if (slowly_) {  // gives the disk time to keep up with a save at each step
      options.on_work = [](int, const Work& work) {
        if (work.kind == Work::Kind::updating) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      };
    }
    return run(options, *disk_, clock);
  }
  // Runs the job in the directory `name` below the test's directory.
  RunResult run_in(const std::string& name, bool resume = false) {
    run_directory_ = folder_ + "/" + name;
    std::filesystem::create_directories(run_directory_);
    TickingClock clock;
    return run_for(clock, resume);
  }
  std::vector<nlohmann::json> lines_of(const std::string& file) const {
    std::ifstream in(run_directory_ + "/" + file);
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  std::string folder_, run_directory_;
  Disk* disk_ = &system_disk();
  bool ledger_ = false, slowly_ = false;
  OnWork on_work_ = nullptr;
  std::function<std::unique_ptr<Membership>(const Identity&)> join_ = nullptr;
  spec::Job job_;
};

}  // namespace sinew::train
