// Makes an experiment with the steps of a run: sets the condition of each step and measures it. Private to loop/.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/experiment.h"
#include "loop/loop.h"

namespace sinew::loop {

// The thread that makes the steps calls it.
class Experimenter {
 public:
  // `wanted`: an experiment is to be made without a request. Both references must outlive this object.
  // `accounts` leave the experiment out; null: there are none.
  Experimenter(bool wanted, Trainer& trainer, Accounts* accounts, const Clock& clock);
  void ask(const ControlEntry& request);  // a user's request, until the pace of the steps is known
  // Returns the entry that begins the experiment that is wanted or asked for, once the pace is known.
  std::optional<ControlEntry> due(const Pace& steps);
  // All members begin at the same step. They all go through the same conditions, so that their windows agree. A worker
  // that is alone leaves out those that it cannot have; with others, none waits for samples, because the others would
  // wait for it. A second experiment replaces the first one. `computing`: the members that compute. The accounts leave
  // it out.
  void begin(int64_t window, int64_t computing, int64_t batch_size);
  bool runs() const { return experiment_.has_value(); }
  // Returns false if the experiment ended, because other members compute now, or steps of another size. May wait some
  // seconds for samples.
  bool before_step(int64_t computing, int64_t batch_size);
  // Returns true after the last step of an experiment.
  bool after_step();
  void end();  // no further step follows
  // Of the newest experiment that was made to its end, without conditions that could not be had in all its steps.
  const std::vector<ConditionTime>& results() const { return results_; }

 private:
  std::optional<ControlEntry> asked_;
  Trainer& trainer_;
  Accounts* accounts_;
  const Clock& clock_;
  std::optional<Experiment> experiment_;
  std::array<bool, kConditions> can_use_{};
  int64_t computing_ = 1, batch_size_ = 0;
  double began_ = 0;  // the step under way
  std::vector<ConditionTime> results_;
};

}  // namespace sinew::loop
