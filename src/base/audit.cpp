#include "base/audit.h"

#include <algorithm>

#include "base/random.h"

namespace sinew {

bool Audit::contains(ShardIndex shard) const {
  return std::ranges::binary_search(shards, shard.value);
}

std::string shard_name(const Audit& audit, ShardIndex shard) {
  if (!audit.names.empty()) return audit.names.at(static_cast<size_t>(shard.value));
  const std::string number = std::to_string(shard.value), step = "step " + std::to_string(audit.step.value);
  return audit.evaluation ? "piece " + number + " of the evaluation at " + step : "shard " + number + " of " + step;
}

Audit audit_of(uint64_t seed, Step step, int64_t shards, double fraction) {
  Audit audit{.step = step, .evaluation = false, .shards = {}, .key = 0, .all = fraction >= 1};
  if (fraction <= 0) return audit;
  const RandomKey key = derive(random_key({seed, static_cast<uint64_t>(step.value)}), "audit");
  audit.key = key.value;
  for (int64_t shard = 0; shard < shards; ++shard) {
    if (RandomStream(derive(key, static_cast<uint64_t>(shard))).uniform() < fraction) audit.shards.push_back(shard);
  }
  return audit;
}

}  // namespace sinew
