// Limits the memory for waiting frames, in this process and in the links' queues. Each limit is a fixed number of bytes
// (an option), but at least the size of 4 to 16 reduced results of the largest collective so far: a large model would
// not fit any fixed limit. The callers of all functions in this file hold the mutex.
#include <algorithm>

#include "group/group_state.h"

namespace sinew::group {
namespace {

// number of results: the two that are kept, and those that come while the state is transferred
constexpr size_t kResultsForJoiner = 8;
constexpr size_t kResultsQueued = 4;
// number of results: a collective's sums (several nodes of each member) and its result
constexpr size_t kResultsEarly = 16;

}  // namespace

// Estimates the size of a reduced result as the size of one piece times the number of pieces. The last piece of a slice
// may be smaller and gives a smaller estimate, so the largest estimate is kept.
void Group::State::learn_result_size(const link::Frame& one) {
  const auto kind = static_cast<Kind>(one.kind);
  if (!one.payload || (kind != Kind::reduced_piece && kind != Kind::sums)) return;
  const auto head = decode_head(*one.payload);
  if (!head) return;
  constexpr size_t kMostPieces = size_t{1} << 28;
  const auto piece = static_cast<size_t>(std::min(head->end - head->begin, options.piece_floats)) * sizeof(float);
  result_bytes = std::max(result_bytes, piece * std::min(static_cast<size_t>(head->pieces), kMostPieces));
}

size_t Group::State::most_for_joiner() const {
  return std::max(options.joiner_bytes, kResultsForJoiner * result_bytes);
}

size_t Group::State::most_early() const {
  return std::max(options.early_bytes, kResultsEarly * result_bytes);
}

// Stops sending results to a joiner that receives too slowly, because the queue for it would fill this member's memory.
bool Group::State::takes(MemberId joiner, Outbox& outbox) {
  if (given_up.contains(joiner)) return false;
  const size_t queued = links.queued_bytes(joiner);
  if (queued <= options.handover_bytes + std::max(options.queue_bytes, kResultsQueued * result_bytes)) return true;
  given_up.insert(joiner);
  outbox.lost.emplace_back(
      joiner, "it takes reduced results too slowly: " + std::to_string(queued >> 20) + " MiB of them wait for it");
  return false;
}

}  // namespace sinew::group
