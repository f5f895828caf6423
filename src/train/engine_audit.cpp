// How the engine audits shards if no other member can: it computes a shard twice and compares the results bit by bit.
// With other members, their results are compared (group/).
#include "train/engine.h"

namespace sinew::train {
namespace {

Digest bytes_of(const torch::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const torch::Tensor values = tensor.cpu();
  return digest_of(std::span(static_cast<const std::byte*>(values.const_data_ptr()), values.nbytes()));
}

template <typename T>
Digest bytes_of(const std::vector<T>& values) {
  return digest_of(std::as_bytes(std::span(values)));
}

// The digest of everything that the contribution of a shard adds to a step.
Digest contribution_digest(const std::optional<Contribution>& leaf) {
  if (!leaf) return {};
  std::vector<Digest> parts;
  for (const torch::Tensor& gradient : leaf->gradients) parts.push_back(bytes_of(gradient));
  for (const torch::Tensor& buffer : leaf->buffers) parts.push_back(bytes_of(buffer));
  const double sums[] = {leaf->loss, leaf->weight, static_cast<double>(leaf->samples)};
  parts.push_back(digest_of(std::as_bytes(std::span(sums))));
  parts.push_back(bytes_of(leaf->counts));
  parts.push_back(bytes_of(leaf->sums));
  parts.push_back(bytes_of(leaf->scores));
  return digest_of(parts);
}

}  // namespace

Audit Engine::audit_of_evaluation(int64_t pieces) const {
  const RandomKey key = derive(random_key({state_.seed}), "evaluation");
  Audit audit = audit_of(key.value, state_.step, pieces, options_.job.cluster.audit);
  audit.evaluation = true;
  return audit;
}

std::optional<Contribution> Engine::computed_twice(const Work& work, const Compute& compute) {
  auto leaf = compute(false);
  const Digest first = contribution_digest(leaf), second = contribution_digest(compute(true));
  if (first == second) return leaf;
  const Digest third = contribution_digest(compute(true));
  const std::lock_guard lock(skipped_mutex_);
  audit_failure_ =
      "this worker computed " + to_string(work) + " twice, with results " + to_hex(first) + " and " + to_hex(second) +
      "; a third time it got " + to_hex(third) +
      (third == second  ? ", so the first result was wrong"
       : third == first ? ", so the second result was wrong"
                        : ", so its results cannot be trusted. A model that does not compute the same result "
                          "twice does this, too; sinew check finds out");
  return leaf;
}

void Engine::check_audits() {
  if (audit_failure_.empty()) return;
  throw MemoryChanged(std::exchange(audit_failure_, ""));
}

}  // namespace sinew::train
