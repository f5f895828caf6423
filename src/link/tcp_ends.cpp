#include "link/tcp_ends.h"

#include <utility>

#include "base/check.h"

namespace sinew::link {
namespace {

// Limits of one write. The system gathers at most 64 buffers, two for each frame, and takes about this many bytes.
constexpr size_t kBatchFrames = 32, kBatchBytes = size_t{1} << 20;

}  // namespace

const Ends::Shared* Ends::find(MemberId peer) const {
  const auto found = ends_.find(peer);
  return found == ends_.end() ? nullptr : &found->second;
}

Ends::Shared* Ends::find(MemberId peer, int64_t incarnation) {
  const auto found = ends_.find(peer);
  return found == ends_.end() || found->second.end.incarnation != incarnation ? nullptr : &found->second;
}

void Ends::set_me(MemberId me) {
  const std::lock_guard lock(mutex_);
  SINEW_CHECK(!me_, me);
  me_ = me;
}

std::optional<MemberId> Ends::me() const {
  const std::lock_guard lock(mutex_);
  return me_;
}

void Ends::name(const std::vector<Peer>& peers, Time deadline) {
  const std::lock_guard lock(mutex_);
  SINEW_CHECK(me_.has_value());
  std::map<MemberId, Shared> named;
  for (const Peer& peer : peers) {
    SINEW_CHECK(peer.id != *me_, peer.id);
    if (auto known = ends_.extract(peer.id)) {
      named.insert(std::move(known));
    } else if (!named.contains(peer.id)) {
      named.emplace(peer.id, Shared{{peer.id, ++lives_, peer.address}, deadline});
    }
  }
  ends_ = std::move(named);
}

bool Ends::wants(MemberId peer) const {
  const std::lock_guard lock(mutex_);
  const Shared* const shared = find(peer);
  return shared != nullptr && shared->is != Shared::Is::lost;
}

bool Ends::push(MemberId to, Outgoing frame) {
  const std::lock_guard lock(mutex_);
  const auto found = ends_.find(to);
  if (found == ends_.end() || found->second.is == Shared::Is::lost) return false;
  Shared& shared = found->second;
  shared.queued += frame.bytes();
  shared.queue.push_back(std::move(frame));
  return shared.is == Shared::Is::standing && !std::exchange(shared.woken, true);
}

size_t Ends::queued_bytes(MemberId to) const {
  const std::lock_guard lock(mutex_);
  const Shared* const shared = find(to);
  return shared == nullptr ? 0 : shared->queued;
}

std::vector<End> Ends::begin_new() {
  const std::lock_guard lock(mutex_);
  std::vector<End> ends;
  for (auto& [peer, shared] : ends_) {
    if (!std::exchange(shared.begun, true)) ends.push_back(shared.end);
  }
  return ends;
}

std::optional<End> Ends::waiting(MemberId peer) const {
  const std::lock_guard lock(mutex_);
  const Shared* const shared = find(peer);
  if (shared == nullptr || shared->is != Shared::Is::waiting) return std::nullopt;
  return shared->end;
}

bool Ends::stands(MemberId peer, int64_t incarnation) const {
  const std::lock_guard lock(mutex_);
  const Shared* const shared = find(peer);
  return shared != nullptr && shared->end.incarnation == incarnation && shared->is == Shared::Is::standing;
}

bool Ends::waits(MemberId peer, int64_t incarnation) const {
  const auto end = waiting(peer);
  return end && end->incarnation == incarnation;
}

bool Ends::given_up(MemberId peer) const {
  const std::lock_guard lock(mutex_);
  const Shared* const shared = find(peer);
  return shared != nullptr && shared->is == Shared::Is::lost;
}

bool Ends::stand(MemberId peer, int64_t incarnation) {
  const std::lock_guard lock(mutex_);
  Shared* const shared = find(peer, incarnation);
  if (shared == nullptr || shared->is != Shared::Is::waiting) return false;
  shared->is = Shared::Is::standing;
  return true;
}

std::vector<Outgoing> Ends::take(MemberId peer, int64_t incarnation) {
  const std::lock_guard lock(mutex_);
  Shared* const shared = find(peer, incarnation);
  std::vector<Outgoing> batch;
  if (shared == nullptr || shared->is != Shared::Is::standing) return batch;
  size_t bytes = 0;
  while (!shared->queue.empty() && batch.size() < kBatchFrames && bytes < kBatchBytes) {
    bytes += shared->queue.front().bytes();
    batch.push_back(std::move(shared->queue.front()));
    shared->queue.pop_front();
  }
  if (shared->queue.empty()) shared->woken = false;
  return batch;
}

void Ends::wrote(MemberId peer, int64_t incarnation, size_t bytes) {
  const std::lock_guard lock(mutex_);
  Shared* const shared = find(peer, incarnation);
  if (shared == nullptr || shared->is == Shared::Is::lost) return;
  SINEW_CHECK(shared->queued >= bytes, shared->queued, bytes);
  shared->queued -= bytes;
}

bool Ends::lose(MemberId peer, int64_t incarnation) {
  std::deque<Outgoing> dropped;  // declared before the lock, so that it is freed after the mutex is released
  const std::lock_guard lock(mutex_);
  Shared* const shared = find(peer, incarnation);
  if (shared == nullptr || shared->is == Shared::Is::lost) return false;
  shared->is = Shared::Is::lost;
  shared->queued = 0;
  shared->queue.swap(dropped);
  return true;
}

std::vector<End> Ends::late(Time now) const {
  const std::lock_guard lock(mutex_);
  std::vector<End> ends;
  for (const auto& [peer, shared] : ends_) {
    if (shared.is == Shared::Is::waiting && shared.deadline <= now) ends.push_back(shared.end);
  }
  return ends;
}

}  // namespace sinew::link
