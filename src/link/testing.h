// For tests of links: a member that records its events, and what it needs.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "link/handshake.h"
#include "link/link.h"

namespace sinew::link {

constexpr auto kLong = std::chrono::seconds(60);  // a time limit that no passing test comes near

// Options whose time limits no passing test reaches, even on a busy machine.
inline TcpOptions patient() {
  TcpOptions options;
  options.job = "digits";
  options.credentials = self_certified("a secret of the tests");
  options.connect_seconds = 60;
  options.silence_seconds = 60;
  return options;
}

inline Frame frame_of(int64_t collective, int64_t part = 0, size_t bytes = 0) {
  Frame frame{7, Generation(3), collective, part, nullptr};
  if (bytes == 0) return frame;
  auto payload = std::make_shared<Bytes>(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    (*payload)[i] = static_cast<std::byte>((i * 2654435761U + static_cast<size_t>(collective)) >> 13);
  }
  frame.payload = std::move(payload);
  return frame;
}

inline bool same(const Frame& a, const Frame& b) {
  const Bytes none;
  return a.kind == b.kind && a.generation == b.generation && a.collective == b.collective && a.part == b.part &&
         (a.payload ? *a.payload : none) == (b.payload ? *b.payload : none);
}

// A member: its links, and a record of all its events. It calls `answer` from on_frame.
class Member {
 public:
  using Answer = std::function<void(Links& links, MemberId from, const Frame& frame)>;
  using Make = std::function<std::unique_ptr<Links>(Events)>;

  Member(int64_t id, const Make& make, Answer answer = nullptr) : id_(id), answer_(std::move(answer)) {
    links_ = make({[this](MemberId from, Frame frame) { arrived(from, std::move(frame)); },
                   [this](MemberId peer, std::string why) { lost(peer, std::move(why)); }});
    open_ = links_.get();
    open_->set_identity(id_);
  }
  ~Member() { close(); }
  void close() { links_.reset(); }

  MemberId id() const { return id_; }
  Peer peer() const { return {id_, links_->address()}; }
  Links& links() { return *links_; }
  void connect(const std::vector<const Member*>& members) {
    std::vector<Peer> peers;
    for (const Member* member : members) {
      if (member != this) peers.push_back(member->peer());
    }
    links_->connect(peers);
  }

  std::vector<Frame> frames(MemberId from) const {
    const std::lock_guard lock(mutex_);
    const auto found = frames_.find(from);
    return found == frames_.end() ? std::vector<Frame>{} : found->second;
  }
  std::vector<std::string> losses(MemberId peer) const {
    const std::lock_guard lock(mutex_);
    const auto found = losses_.find(peer);
    return found == losses_.end() ? std::vector<std::string>{} : found->second;
  }
  bool late_frame() const {  // a frame arrived after the loss of its sender
    const std::lock_guard lock(mutex_);
    return late_frame_;
  }
  bool overlapped() const {  // two events ran at the same time
    const std::lock_guard lock(mutex_);
    return overlapped_;
  }
  bool await_frames(const Member& from, size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLong, [&] { return frames_[from.id()].size() >= count; });
  }
  bool await_loss(MemberId peer) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLong, [&] { return !losses_[peer].empty(); });
  }

 private:
  void arrived(MemberId from, Frame frame) {
    std::unique_lock lock(mutex_);
    overlapped_ |= std::exchange(inside_, true);
    late_frame_ |= losses_.contains(from) && !losses_.at(from).empty();
    frames_[from].push_back(frame);
    changed_.notify_all();
    lock.unlock();
    if (answer_) answer_(*open_, from, frame);
    lock.lock();
    inside_ = false;
  }
  void lost(MemberId peer, std::string why) {
    const std::lock_guard lock(mutex_);
    overlapped_ |= inside_;
    losses_[peer].push_back(std::move(why));
    changed_.notify_all();
  }

  const MemberId id_;
  const Answer answer_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<MemberId, std::vector<Frame>> frames_;
  std::map<MemberId, std::vector<std::string>> losses_;
  bool late_frame_ = false, overlapped_ = false, inside_ = false;
  std::unique_ptr<Links> links_;
  Links* open_ = nullptr;  // the events use this pointer, because reset() clears links_ before the last event has ended
};

// The functions below are for tests of several files.
// Returns the hello of a member of the run of the tests.
inline Hello certified_hello(Role role, int64_t from, int64_t to, const MemberCredentials& credentials) {
  Hello hello = make_hello(role, MemberId(from), MemberId(to), patient().job);
  hello.key = credentials.key.public_key();
  hello.certificate = credentials.certificate(MemberId(from));
  return hello;
}

inline void join_all(const std::vector<Member*>& members) {
  const std::vector<const Member*> all(members.begin(), members.end());
  for (Member* member : members) member->connect(all);
}

inline std::unique_ptr<Member> tcp_member(int64_t id, const TcpOptions& options) {
  return std::make_unique<Member>(id, [&](Events events) { return tcp_links(options, std::move(events)); });
}

// Expects that `here` has lost `peer` once, for a reason that contains `words`.
inline void expect_loss(Member& here, MemberId peer, const std::string& words) {
  ASSERT_TRUE(here.await_loss(peer));
  ASSERT_EQ(here.losses(peer).size(), 1U);
  EXPECT_NE(here.losses(peer)[0].find(words), std::string::npos) << here.losses(peer)[0];
}

// Expects that `a` can still exchange frames with a new member.
inline void expect_service(Member& a, int64_t id, const TcpOptions& options) {
  const auto b = tcp_member(id, options);
  a.links().connect({b->peer()});
  b->links().connect({a.peer()});
  a.links().send(b->id(), frame_of(1, 2, 5000));
  b->links().send(a.id(), frame_of(2, 3, 5000));
  ASSERT_TRUE(b->await_frames(a, 1) && a.await_frames(*b, 1));
  EXPECT_TRUE(same(b->frames(a.id())[0], frame_of(1, 2, 5000)));
  EXPECT_TRUE(a.losses(b->id()).empty());
}

}  // namespace sinew::link
