// A member of an imaginary group. It has peers, is not the leader and receives no requests. A test overrides the
// methods that matter to it. For tests.
#pragma once

#include <stdexcept>

#include "loop/loop.h"

namespace sinew::loop {

class MembersStub : public Members {
 public:
  bool is_leader() const override { return false; }
  bool has_peers() const override { return true; }
  bool is_alone() const override { return false; }
  bool may_write() const override { return false; }
  std::optional<checkpoint::Loaded> take_state() override { return std::nullopt; }
  void begin(Step, Digest) override {}
  void boundary(const State&, const std::function<checkpoint::OwnedSnapshot()>&) override {}
  std::vector<ControlEntry> requests() override { return {}; }
  void report(std::optional<Step>, const std::string&) override {}
  void leave() override {}
  [[noreturn]] void dissolve(const std::string& why) override { throw std::runtime_error(why); }
  GoingBack going_back() const override { return {}; }
  void check_membership() const override {}
  std::optional<std::string> unled(const std::string&) const override { return std::nullopt; }
  void finished(int) override {}
  std::optional<int> wait_for_end() override { return 0; }
};

}  // namespace sinew::loop
