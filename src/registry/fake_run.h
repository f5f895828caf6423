// For tests inside registry/: makes a run directory that grows, dies and resumes as a real one does.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "registry/testing.h"
#include "report/report.h"
#include "rundir/rundir.h"

namespace sinew::registry {

class FakeRun {
 public:
  FakeRun(std::string root, std::string path, RandomStream& random, std::string job = "")
      : random_(random), path_(std::move(path)), directory_(root + "/" + path_) {
    if (job.empty()) job = path_.substr(0, path_.find('/'));
    std::filesystem::create_directories(directory_);
    take_lock();
    lr_ = 1 + random.below(1'000'000);
    write_file(directory_ + "/job.yaml", "name: " + job + "\noptimizer: {lr: 0." + std::to_string(lr_) + "}\n");
    write_file(directory_ + "/resolved.yaml", "name: " + job + "\noptimizer:\n  lr: 0." + std::to_string(lr_) +
                                                  "  # as given\ntrainer: {lanes: auto}\n");
    write_file(directory_ + "/environment.json", "{\"sinew\":\"0.1.0\",\"cpu\":\"test\"}\n");
    log("start");
  }
  ~FakeRun() { let_go(); }
  FakeRun(const FakeRun&) = delete;
  FakeRun& operator=(const FakeRun&) = delete;

  const std::string& directory() const { return directory_; }
  const std::string& path() const { return path_; }
  bool alive() const { return lock_ >= 0; }
  int64_t step() const { return step_; }

  void grow(int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) {
      ++step_;
      std::string line = "{\"step\":" + std::to_string(step_) + ",\"samples\":" + std::to_string(step_ * 64) +
                         ",\"time\":" + time() + ",\"train/loss\":" + std::to_string(random_.uniform());
      if (step_ % 3 == 0) line += ",\"val/accuracy\":" + std::to_string(random_.uniform());
      if (step_ % 7 == 0) line += ",\"val/loss\":\"NaN\"";
      lines_.push_back({step_, line + "}\n"});
      if (random_.below(5) == 0)
        lines_.back().text +=
            "{\"step\":" + std::to_string(step_) + ",\"samples\":1,\"time\":" + time() + ",\"time/step_ms\":5}\n";
      append_file(directory_ + "/metrics.jsonl", lines_.back().text);
    }
  }
  // Appends an incomplete line, as a process does that dies in the middle of a write.
  void tear() { append_file(directory_ + "/metrics.jsonl", "{\"step\":" + std::to_string(step_ + 1) + ",\"samp"); }
  void die() { let_go(); }
  void resume_at(int64_t step) {
    take_lock();
    std::erase_if(lines_, [&](const Line& line) { return line.step > step; });
    std::string text;
    for (const Line& line : lines_) text += line.text;
    std::filesystem::remove(directory_ + "/report.json");
    if (random_.below(2) == 0) {  // either cut the file in place or replace it by a new file
      if (std::filesystem::exists(directory_ + "/metrics.jsonl"))
        std::filesystem::resize_file(directory_ + "/metrics.jsonl", text.size());
    } else {
      write_file(directory_ + "/metrics.new", text);
      std::filesystem::rename(directory_ + "/metrics.new", directory_ + "/metrics.jsonl");
    }
    step_ = step;
    log("start");
    log("resume");
  }
  void end(const std::string& status) {
    rundir::Outcome outcome;
    outcome.status = status;
    outcome.steps = step_;
    outcome.started_wall_seconds = 1'763'697'600;
    outcome.seconds = static_cast<double>(step_);
    outcome.digest = std::string(28, '0') + std::to_string(1000 + random_.below(1000));
    outcome.error = status == "failed" ? "loss is NaN" : "";
    write_file(directory_ + "/model/model.safetensors", "weights");
    write_file(directory_ + "/report.tmp", rundir::outcome_json(outcome));
    std::filesystem::rename(directory_ + "/report.tmp", directory_ + "/report.json");
    let_go();
  }
  void move_to(const std::string& root, const std::string& path) {
    std::filesystem::create_directories(std::filesystem::path(root + "/" + path).parent_path());
    std::filesystem::rename(directory_, root + "/" + path);
    path_ = path;
    directory_ = root + "/" + path;
  }
  void remove() {
    let_go();
    std::filesystem::remove_all(directory_);
  }

 private:
  struct Line {
    int64_t step;
    std::string text;
  };
  std::string time() { return std::to_string(1'763'697'600 + ticks_++) + ".5"; }  // returns a new time on each call
  void log(const std::string& event) {
    append_file(directory_ + "/log.jsonl", "{\"ts\":\"2026-11-21T03:15:02.123Z\",\"level\":\"info\",\"event\":\"" +
                                               event + "\",\"text\":\"...\"}\n");
  }
  void take_lock() {
    lock_ = ::open((directory_ + "/.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_EQ(::flock(lock_, LOCK_EX), 0);
  }
  void let_go() {
    if (lock_ >= 0) ::close(lock_);
    lock_ = -1;
  }

  RandomStream& random_;
  std::string path_, directory_;
  std::vector<Line> lines_;
  int64_t step_ = 0, ticks_ = 0;
  uint64_t lr_ = 0;
  int lock_ = -1;
};

}  // namespace sinew::registry
