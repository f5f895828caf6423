// Implements the simulated job of simulation.h: random collectives, the values of their shards (leaves), and the
// reduced results that a single process would get. The tests compare the group's results with these.
#include <bit>
#include <cmath>
#include <cstring>

#include "base/hash.h"
#include "group/simulation.h"

namespace sinew::group::simulation {
namespace {

constexpr float kBlank = -77.0F;

// Returns numbers of very different sizes, so that another order of additions gives other bits.
std::vector<float> numbers(RandomKey key, int64_t n) {
  std::vector<uint32_t> bits(static_cast<size_t>(n));
  fill_random_bits(key, bits);
  std::vector<float> values(bits.size());
  for (size_t i = 0; i < bits.size(); ++i) {
    const uint32_t exponent = 100 + (bits[i] >> 8 & 31U);
    values[i] = std::bit_cast<float>((bits[i] & 0x807FFFFFU) | exponent << 23);
  }
  return values;
}

CollectiveShape random_shape(RandomStream& random) {
  CollectiveShape shape;
  shape.shards = static_cast<int64_t>(1 + random.below(17));
  const uint64_t rows = random.below(5);  // 0 rows as in an evaluation
  for (uint64_t row = 0; row < rows; ++row) {
    const uint64_t kind = random.below(8);
    const uint64_t most = kind == 0 ? 1 : kind < 5 ? 700 : 5000;
    shape.lengths.push_back(static_cast<int64_t>(random.below(most)));
  }
  return shape;
}

uint64_t mixed(uint64_t state, std::span<const std::byte> bytes) {
  return random_key({state, digest_of(bytes).low, digest_of(bytes).high}).value;
}

}  // namespace

std::string joined(std::string_view left, std::string_view right) {
  return "(" + std::string(left) + std::string(right) + ")";
}

// Merges slowly at random, so that views change during a merge.
std::string merge(std::string_view left, std::string_view right) {
  if (digest_of(left).low % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(digest_of(right).low % 1000));
  return joined(left, right);
}

std::vector<std::vector<float>> blank(const std::vector<int64_t>& lengths) {
  std::vector<std::vector<float>> rows;
  for (const int64_t length : lengths) rows.emplace_back(static_cast<size_t>(length), kBlank);
  return rows;
}

std::vector<CollectiveShape> random_shapes(uint64_t seed, int64_t collectives) {
  RandomStream random(random_key({seed, 1}));
  std::vector<CollectiveShape> shapes;
  for (int64_t collective = 0; collective < collectives; ++collective) shapes.push_back(random_shape(random));
  return shapes;
}

std::optional<Leaf> Job::leaf(int64_t collective, int64_t shard, uint64_t state) const {
  RandomStream random(random_key({seed_, state, static_cast<uint64_t>(collective), static_cast<uint64_t>(shard)}));
  const double absent = RandomStream(random_key({seed_, static_cast<uint64_t>(collective), 2})).uniform();
  if (random.uniform() < absent * 0.4 || absent > 0.97) return std::nullopt;
  Leaf leaf;
  leaf.small = std::to_string(random.below(1000)) + ",";
  if (random.below(10) == 0) return leaf;
  auto rows = std::make_shared<std::vector<std::vector<float>>>();
  for (const int64_t length : shape(collective).lengths) {
    const bool here = random.uniform() >= absent * 0.5;
    rows->push_back(numbers(RandomKey{random.bits64()}, length));
    if (rows->back().empty()) rows->back().reserve(1);  // so that a present row of length 0 has a non-null pointer
    leaf.rows.push_back(here ? rows->back().data() : nullptr);
  }
  leaf.keep = rows;
  return leaf;
}

uint64_t Job::next_state(uint64_t state, const std::vector<std::vector<float>>& rows, const Reduced& reduced) {
  for (const auto& row : rows) state = mixed(state, std::as_bytes(std::span(row)));
  for (const bool present : reduced.present) state = random_key({state, present ? 1U : 0U}).value;
  return mixed(random_key({state, reduced.any ? 1U : 0U}).value, std::as_bytes(std::span(reduced.small)));
}

Expected Job::expected(int64_t collective, uint64_t state) const {
  const CollectiveShape& of = shape(collective);
  std::vector<std::optional<Leaf>> leaves;
  std::vector<TreeNode> places;
  std::vector<std::optional<std::string>> smalls;
  for (int64_t s = 0; s < of.shards; ++s) {
    leaves.push_back(leaf(collective, s, state));
    places.push_back({0, s});
    smalls.push_back(leaves.back() ? std::optional(leaves.back()->small) : std::nullopt);
  }
  Expected result{blank(of.lengths), {}};
  for (size_t row = 0; row < of.lengths.size(); ++row) {
    std::vector<const float*> values;
    for (const auto& one : leaves) values.push_back(one && !one->rows.empty() ? one->rows[row] : nullptr);
    result.reduced.present.push_back(tree_sum(values, of.lengths[row], result.rows[row].data()));
  }
  const auto small = tree_merge(places, smalls, joined);
  result.reduced.any = small.has_value();
  result.reduced.small = small.value_or("");
  return result;
}

std::string difference(const Expected& right, const std::vector<std::vector<float>>& rows, const Reduced& reduced) {
  if (reduced.present != right.reduced.present) return "other rows are present";
  if (reduced.any != right.reduced.any || reduced.small != right.reduced.small)
    return "small bytes are '" + reduced.small + "', not '" + right.reduced.small + "'";
  for (size_t row = 0; row < rows.size(); ++row) {
    if (std::memcmp(rows[row].data(), right.rows[row].data(), rows[row].size() * sizeof(float)) != 0)
      return "row " + std::to_string(row) + " has other bits";
  }
  return "";
}

}  // namespace sinew::group::simulation
