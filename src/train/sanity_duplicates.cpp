// Checks whether samples of val or test are also in train.
#include <algorithm>
#include <unordered_map>

#include "train/sanity.h"

namespace sinew::train::sanity {
namespace {

constexpr double kRepeated = 0.01;  // fraction of a split; images and texts without copies have far fewer repetitions
constexpr double kOftenRepeated = 0.03;  // the same, of rows that repeat within train about as often
constexpr int64_t kMostCompared = 400;   // pairs whose targets are compared
constexpr int64_t kFewestCompared = 5;
constexpr double kMostContradictions = 0.02;  // share of pairs with different targets; copies have the same target

struct DigestHash {
  size_t operator()(const Digest& digest) const { return digest.low; }
};
using Places = std::unordered_map<Digest, std::vector<size_t>, DigestHash>;  // places in Facts.samples

struct Copies {
  std::vector<int64_t> here, in_train;  // samples with equal inputs
  double share = 0;
};

Copies copies_of(const Facts& facts, const Facts& train, const Places& places) {
  Copies copies;
  for (size_t i = 0; i < facts.inputs.size(); ++i) {
    const auto found = places.find(facts.inputs[i]);
    if (found == places.end()) continue;
    copies.here.push_back(facts.samples[i]);
    copies.in_train.push_back(train.samples[found->second.front()]);
  }
  copies.share =
      static_cast<double>(copies.here.size()) / static_cast<double>(std::max<size_t>(1, facts.inputs.size()));
  return copies;
}

// The share of training samples that have a twin in train. If copies arise naturally, because rows have few distinct
// values, then a sample of another split has a twin in train about as often.
double twins(const Facts& train, const Places& places) {
  size_t count = 0;
  for (const auto& [digest, at] : places) count += at.size() > 1 ? at.size() : 0;
  return static_cast<double>(count) / static_cast<double>(std::max<size_t>(1, train.inputs.size()));
}

// Whether rows with equal inputs have different targets, which copies do not have.
bool contradict(const Subject& subject, data::Split split, const Copies& copies) {
  const auto n = std::min<int64_t>(kMostCompared, static_cast<int64_t>(copies.here.size()));
  if (n < kFewestCompared) return false;
  const auto size = static_cast<size_t>(n);
  const torch::Tensor here = tensor_of(subject.load(split, std::span(copies.here).first(size)).target),
                      there =
                          tensor_of(subject.load(data::Split::train, std::span(copies.in_train).first(size)).target);
  if (here.sizes() != there.sizes()) return false;
  const double differ = (here != there).reshape({n, -1}).any(1).to(torch::kFloat64).mean().item<double>();
  return differ > kMostContradictions;
}

void judge_copies(const Subject& subject, data::Split split, const Copies& copies, double natural,
                  SanityFinding& finding) {
  const std::string name = to_string(split);
  finding.what += ", first: " + subject.data.describe(split, copies.here.front()) + " = " +
                  subject.data.describe(data::Split::train, copies.in_train.front());
  if (subject.info().input_shape.size() == 1 && copies.share < 2 * natural) {
    finding.what += format("; %.1f %% of train have a twin in train", 100 * natural);
    if (subject.reads_tokens() || copies.share <= kOftenRepeated) return;
    if (contradict(subject, split, copies)) {
      finding.what += ", often with another target: the rows have few distinct values";
      return;
    }
    judge(finding, Verdict::warn, "rows_repeat", "rows have few distinct values, or copies were made before the split",
          "if copies were made, split first");
    return;
  }
  judge(finding, Verdict::fail, "duplicates",
        "train and " + name + " overlap, so " + name + " would reward overfitting",
        "remove the copies from train, or split again: data.split." + name);
}

}  // namespace

void check_duplicates(Subject& subject, SanityFinding& finding) {
  const Facts& train = subject.train;
  if (subject.val.samples.empty() && subject.test.samples.empty()) {
    finding.verdict = Verdict::skip;
    finding.what = "there is no validation and no test data";
    return;
  }
  Places places;
  for (size_t i = 0; i < train.inputs.size(); ++i) places[train.inputs[i]].push_back(i);
  const double natural = twins(train, places);
  for (const auto& [facts, split] :
       {std::pair{&subject.val, data::Split::val}, std::pair{&subject.test, data::Split::test}}) {
    if (facts->samples.empty() || finding.verdict != Verdict::pass) continue;
    const Copies copies = copies_of(*facts, train, places);
    finding.what += (finding.what.empty() ? "" : "; ") + format("%zu of %zu inputs of %s (%.1f %%) are also in train",
                                                                copies.here.size(), facts->inputs.size(),
                                                                to_string(split).c_str(), 100 * copies.share);
    if (copies.here.size() > 1 && copies.share > kRepeated) judge_copies(subject, split, copies, natural, finding);
  }
  if (!train.complete()) finding.what += " (" + coverage_text(train) + " of train checked)";
}

}  // namespace sinew::train::sanity
