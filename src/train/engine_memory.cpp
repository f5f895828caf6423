// Notices if the memory of the engine's state changes although no step changed it.
//
// If there are other members, each step compares parts of the state with theirs: a part of the tensors that steps
// change (`moving_`), and a part of those that no step changes (`still_`). If this worker is alone, the engine looks at
// each part twice. A moving part must be the same before and after the shards of a step are computed. A still part must
// be as it was when first seen.
#include "train/engine.h"
#include "train/state.h"

namespace sinew::train {
namespace {

MemoryChanged changed_in(const char* which, Step step) {
  return MemoryChanged(std::string(which) + " changed in the memory of this worker at step " +
                       std::to_string(step.value) + ", although no step changed it");
}

}  // namespace

void Engine::list_memory() {
  for (size_t p = 0; p < state_.parameters.size(); ++p) {
    const bool trained = replica_parameters_[0][p].tensor.requires_grad();
    MemoryParts& parts = trained ? moving_ : still_;
    parts.add(state_.parameters[p].tensor);
    parts.add(shadows_[p]);
    if (!state_.ema.empty()) parts.add(state_.ema[p].tensor);
  }
  for (const auto& buffer : state_.buffers) moving_.add(buffer.tensor);
  for (const auto& [name, tensors] : state_.optimizer) {
    for (const torch::Tensor& tensor : tensors) moving_.add(tensor);
  }
  still_digests_.resize(static_cast<size_t>(still_.count()));
}

// Returns the mark of the part of the state that this step looks at. The first part also covers everything that is not
// a tensor.
Mark Engine::next_mark(bool compares) {
  Mark mark{.step = state_.step.value, .part = state_.step.value % moving_.count(), .digest = {}};
  const int64_t still = state_.step.value % still_.count();
  std::vector<Digest> parts = {moving_.digest(mark.part), still_.digest(still)};
  auto& first_seen = still_digests_[static_cast<size_t>(still)];
  if (!first_seen) first_seen = parts[1];
  if (!compares) {
    if (*first_seen != parts[1]) throw changed_in("a frozen parameter", state_.step);
    mark.digest = parts[0];
    return mark;
  }
  if (mark.part == 0) parts.push_back(digest_of(digest_text(state_)));
  mark.digest = digest_of(parts);
  return mark;
}

// Throws if the part that `before` covers has changed. A worker that is alone makes `before` before the shards of a
// step.
void Engine::check_unchanged(const Mark& before) {
  if (moving_.digest(before.part) != before.digest) throw changed_in("the state", state_.step);
}

void Engine::check_memory() {
  for (int64_t part = 0; part < still_.count() && still_.bytes() > 0; ++part) {
    auto& first_seen = still_digests_[static_cast<size_t>(part)];
    const Digest now = still_.digest(part);
    if (!first_seen) first_seen = now;
    if (*first_seen != now) throw changed_in("a frozen parameter", state_.step);
  }
}

void Engine::compare(Digest own) {
  std::vector<Digest> all = {own};
  bool derived = false;  // the shadows are part of no checkpoint, but steps are computed with them
  for (const torch::Tensor& shadow : shadows_) derived = derived || shadow.defined();
  if (derived) {
    MemoryParts shadows;
    for (const torch::Tensor& shadow : shadows_) shadows.add(shadow);
    all.push_back(shadows.digest());
  }
  exchange({Purpose::Kind::comparison, state_.step}, "",
           Mark{.step = state_.step.value, .digest = derived ? digest_of(all) : own});
}

}  // namespace sinew::train
