// Inside train/: what a run tells the world, told once however many compute it.
//
// Alone, or as the lead, everything goes to the Reporter. The other members stay silent and remember the records of the
// last minutes: when the lead dies, the next one finds in the files what was written and adds what is missing. That may
// be many steps: while no coordinator is there, nobody may write, and the steps go on.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>

#include "train/train.h"

namespace sinew::train {

class Voice {
 public:
  // `members` null: alone. Who becomes the lead later drops what stands in the files after the step it has come to: the
  // lead before it, and of a run that was resumed the life before, may have been further, and it makes those steps
  // itself.
  Voice(report::ReporterOptions options, const std::map<std::string, std::string>& hparams, const Members* members,
        Clock& clock);

  bool heard();  // does this process speak? Becoming the lead is noticed here
  void metrics(Step step, int64_t samples, const report::Metrics& values);
  void ledger(Step step, Digest digest);
  void say(report::Level level, const std::string& event, const std::string& text);
  void progress(const report::Progress& progress);
  // Among others a step's records reach the kernel at once: they are remembered elsewhere for a while only.
  void end_step();
  void finish(bool success);
  void flush();
  // Whether the last flush left records in memory, which the death of this process would lose: no checkpoint may appear
  // before they are in the files, for a run that goes on from it does not write them again. Any thread.
  bool waits() const { return waits_; }

 private:
  using Record = std::function<void(report::Reporter&)>;
  void keep(Step step, Record record);

  report::ReporterOptions options_;
  std::map<std::string, std::string> hparams_;
  const Members* members_;
  Clock& clock_;
  std::atomic<bool> waits_{false};
  std::unique_ptr<report::Reporter> reporter_;
  struct Remembered {
    double when;
    Step step;
    Record record;
  };
  std::deque<Remembered> remembered_;
};

}  // namespace sinew::train
