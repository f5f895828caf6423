// For tests of one member against scripted frames: links that record what the member sends, and frames of other
// members.
#pragma once

#include <mutex>

#include "group/group.h"
#include "group/group_frames.h"

namespace sinew::group::protocol {

// Records the frames that are sent.
class PaperLinks final : public link::Links {
 public:
  std::string address() const override { return "paper"; }
  void set_identity(MemberId) override {}
  void connect(const std::vector<link::Peer>& peers) override {
    const std::lock_guard lock(mutex_);
    peers_ = peers;
  }
  void send(MemberId to, link::Frame frame) override {
    const std::lock_guard lock(mutex_);
    sent_.emplace_back(to, std::move(frame));
  }
  size_t queued_bytes(MemberId to) const override {
    const std::lock_guard lock(mutex_);
    return to == stuck ? queued_ : 0;
  }
  NetworkUse traffic() const override { return {}; }  // nothing leaves the paper

  // The member whose frames stay in the queue once wait_for_it() has set the queue's size.
  MemberId stuck;
  void wait_for_it(size_t bytes) {
    const std::lock_guard lock(mutex_);
    queued_ = bytes;
  }

  // Returns the frames that were sent to a member since the last call.
  std::vector<link::Frame> to(MemberId member) {
    const std::lock_guard lock(mutex_);
    std::vector<link::Frame> found;
    for (const auto& [to, frame] : sent_) {
      if (to == member) found.push_back(frame);
    }
    std::erase_if(sent_, [&](const auto& one) { return one.first == member; });
    return found;
  }
  size_t peers() const {
    const std::lock_guard lock(mutex_);
    return peers_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<link::Peer> peers_;
  std::vector<std::pair<MemberId, link::Frame>> sent_;
  size_t queued_ = 0;
};

constexpr MemberId kOne{1}, kTwo{2}, kThree{3};

inline GroupOptions options() {
  GroupOptions options;
  options.merge = [](std::string_view left, std::string_view right) { return std::string(left) + std::string(right); };
  options.patience_seconds = 60;
  options.early_bytes = 4000;
  options.joiner_bytes = 4000;
  return options;
}

inline cluster::View view_of(int64_t generation, const std::vector<MemberId>& computing,
                             const std::vector<MemberId>& joining = {}) {
  cluster::View view;
  view.generation = Generation(generation);
  view.fresh = generation == 1;
  for (const MemberId id : computing)
    view.members.push_back({.id = id, .address = "paper", .share = 1, .joining = false, .donor = {}});
  for (const MemberId id : joining) {
    view.members.push_back({.id = id, .address = "paper", .share = 1, .joining = true, .donor = computing[0]});
  }
  return view;
}

inline link::Frame frame(Kind kind, int64_t generation, int64_t collective, const link::Bytes& bytes,
                         int64_t part = 0) {
  return {static_cast<uint16_t>(kind), Generation(generation), collective, part,
          std::make_shared<const link::Bytes>(bytes)};
}

inline link::Frame report_frame(int64_t generation, int64_t collective, bool joining = false,
                                std::optional<Origin> origin = std::nullopt) {
  ViewChangeReport report;
  report.collective = collective;
  report.joining = joining;
  report.origin = origin;
  return frame(Kind::view_change_report, generation, collective, encode(report));
}

// Returns the frame that ends a collective without rows.
inline link::Frame reduced_frame(int64_t generation, int64_t collective, const std::string& control_message,
                                 uint64_t before, size_t small = 1) {
  ReducedHead reduced;
  reduced.shape = Shape(2, {}).digest;
  reduced.before = before;
  reduced.reduced.any = true;
  reduced.reduced.small = std::string(small, 's');
  reduced.reduced.control_message = control_message;
  return frame(Kind::reduced_head, generation, collective, encode(reduced));
}

inline std::string why_out(Group& group) {
  try {
    group.next_shard();
    return "not out";
  } catch (const Fenced& ended) {
    return ended.what();
  }
}

// Member 2 computes together with member 1 in collective 0 of two shards without rows. It has delivered its own shard.
struct Beside {
  PaperLinks links;
  Group group;
  explicit Beside(std::vector<MemberId> joining = {}, GroupOptions given = options())
      : group(kTwo, links, std::move(given), system_clock()) {
    group.adopt(view_of(1, {kOne, kTwo}, std::move(joining)));
    group.start_at(0, {0, 77});
    group.on_frame(kOne, report_frame(1, 0, false, Origin{0, 77}));
    begin("two");
    if (group.expects(0, 2) || group.expects(1, 2)) group.deliver(*group.next_shard(), Leaf{{}, "x", nullptr});
  }
  void begin(const std::string& control_message) { group.begin(2, {}, control_message); }
};

}  // namespace sinew::group::protocol
