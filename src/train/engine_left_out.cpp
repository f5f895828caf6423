// The samples that do not decode (data.on_corrupt: skip). All members must leave out the same ones, although each reads
// its own copy of the data.
//
// The identity of a member cannot ensure that. For image files, the digest of the data covers the names and sizes of
// all files, but the content of only 64 of each split, because reading all would take as long as an epoch. So the group
// decides about each sample once, when a member first meets bytes that do not decode:
//
// - The member computes its shard without the sample, and its contribution names the sample. Every member receives the
//   same list with the reduced result, before it changes its state.
// - If the list is not empty, the members run a collective with one shard for each of these samples. Two members read
//   each sample, as for an audit, on two machines if there are several. If it decodes for neither, it is left out:
//   every state has it in `left_out` from now on. Checkpoints have it, and a joiner receives it.
// - If it decodes for one of the two, the copy of the other is damaged, because damage does not make a file decode.
//   The group fences that member and names the file. If neither of the two is the member that met the sample, that
//   member finds here that it was wrong, and ends. Then all compute the step again.
//
// So which samples a step uses depends on its state and on the lists of its reduced results, which are the same for all
// members; it does not depend on which of them computed a shard. A member that leaves a sample out does so whether its
// own copy decodes or not. What this does not find: a damaged copy that decodes. Audits find that (base/audit.h).
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "train/engine.h"

namespace sinew::train {
namespace {

constexpr size_t kMostAtOnce = 4096;  // samples in one collective

// Returns the array with only those rows for which `keep` is true.
Array kept_rows(const Array& array, const std::vector<bool>& keep) {
  Shape shape = array.shape;
  shape[0] = std::ranges::count(keep, true);
  Array kept(array.dtype, std::move(shape));
  const size_t row = array.bytes.size() / keep.size();
  std::byte* out = kept.bytes.data();
  for (size_t i = 0; i < keep.size(); ++i) {
    if (!keep[i]) continue;
    std::memcpy(out, array.bytes.data() + i * row, row);
    out += row;
  }
  return kept;
}

}  // namespace

// Removes the samples that the group leaves out. Returns the samples that do not decode here and about which the group
// has not decided. Any lane may call it.
std::vector<int64_t> Engine::leave_out(data::Split split, data::Batch& batch) {
  const auto is_out = [&](int64_t sample) { return state_.left_out.contains({split, sample}); };
  std::vector<bool> keep;
  for (const int64_t sample : batch.samples) keep.push_back(!is_out(sample));
  if (std::ranges::find(keep, false) != keep.end()) {
    batch.input = kept_rows(batch.input, keep);
    batch.target = kept_rows(batch.target, keep);
    std::erase_if(batch.samples, is_out);
  }
  std::vector<int64_t> undecided;
  for (const data::Skipped& skipped : batch.skipped) {
    if (!is_out(skipped.sample)) undecided.push_back(skipped.sample);
  }
  if (undecided.empty()) return undecided;
  const std::lock_guard lock(skipped_mutex_);
  not_decoded_here_.insert(undecided.begin(), undecided.end());
  return undecided;
}

// Returns which of these samples decode for none of the members that read them. Runs a collective.
std::vector<int64_t> Engine::torn_everywhere(data::Split split, const std::vector<int64_t>& samples) {
  Audit audit;
  audit.step = state_.step;
  audit.key = state_.seed;
  audit.all = audit.of_copies = true;
  for (size_t i = 0; i < samples.size(); ++i) {
    audit.shards.push_back(static_cast<int64_t>(i));
    audit.names.push_back("the test whether " + options_.dataset->describe(split, samples[i]) + " is damaged");
  }
  const bool compares = options_.reducer->compares();
  options_.reducer->begin(std::ssize(samples), {}, "", std::nullopt, compares ? audit : Audit(),
                          {Purpose::Kind::copies, state_.step});
  while (const auto task = options_.reducer->next_shard()) {
    const int64_t sample = samples[static_cast<size_t>(task->shard.value)];
    std::optional<Contribution> leaf;
    try {
      if (options_.dataset->load(split, std::span(&sample, 1), {state_.seed, 0, false}).count() == 0)
        leaf.emplace().not_decoded = {sample};
    } catch (const Error& error) {
      options_.reducer->give_up();
      throw ShardFailed("TRAIN_SHARD_FAILED", options_.dataset->describe(split, sample) + ": " + error.what(),
                        error.hint);
    }
    task->audit ? options_.reducer->deliver_audit(*task, std::move(leaf))
                : options_.reducer->deliver(*task, std::move(leaf));
  }
  options_.reducer->reduce();
  const Reducer::Reduced reduced = options_.reducer->reduced();
  damaged_copies_.insert(damaged_copies_.end(), reduced.wrong.begin(), reduced.wrong.end());
  return reduced.sums.not_decoded;
}

void Engine::undo_left_out() {
  for (const loop::LeftOut& one : newly_left_out_) state_.left_out.erase(one);
  newly_left_out_.clear();
}

// Decides about samples that did not decode for some member in a collective. Returns false if the result of that
// collective cannot be used: a sample decodes for other members. Throws ShardFailed if this worker's copy is the
// damaged one.
bool Engine::agree_to_leave_out(data::Split split, const std::vector<int64_t>& samples) {
  const std::set<int64_t> mine = std::exchange(not_decoded_here_, {});
  bool agreed = true;
  report_work(0, {Work::Kind::reducing, state_.step.value});
  for (size_t first = 0; first < samples.size(); first += kMostAtOnce) {
    const size_t last = std::min(samples.size(), first + kMostAtOnce);
    const std::vector<int64_t> asked(samples.begin() + static_cast<ptrdiff_t>(first),
                                     samples.begin() + static_cast<ptrdiff_t>(last));
    const std::vector<int64_t> torn = torn_everywhere(split, asked);
    for (const int64_t sample : asked) {
      const std::string name = options_.dataset->describe(split, sample);
      if (std::ranges::find(torn, sample) != torn.end()) {
        if (state_.left_out.insert({split, sample}).second) newly_left_out_.push_back({split, sample});
        if (++left_out_.count <= static_cast<int64_t>(SkippedSamples::kNamed)) left_out_.names.push_back(name);
      } else if (mine.contains(sample)) {
        throw ShardFailed("DATA_COPY_DAMAGED",
                          name +
                              " did not decode on this machine, but it decodes for other workers, or when it is "
                              "read again",
                          "copy the data to this machine again, and check its disk");
      } else {
        agreed = false;
        damaged_copies_.push_back(name + " does not decode for one worker, but it decodes for another");
      }
    }
  }
  return agreed;
}

}  // namespace sinew::train
