#include "train/match_weights.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace sinew::train {
namespace {

std::vector<std::string> pieces_of(const std::string& pattern) {
  std::vector<std::string> pieces(1);
  for (const char letter : pattern) {
    if (letter == '*') {
      pieces.emplace_back();
    } else {
      pieces.back() += letter;
    }
  }
  return pieces;
}

// Returns the texts that the `*` of a pattern match in a name, or nullopt if the name does not match. Earlier `*` match
// as little as possible.
std::optional<std::vector<std::string>> stars_of(const std::string& pattern, const std::string& name) {
  const std::vector<std::string> pieces = pieces_of(pattern);
  if (pieces.size() == 1) return pattern == name ? std::optional(std::vector<std::string>{}) : std::nullopt;
  if (!name.starts_with(pieces.front())) return std::nullopt;
  std::vector<std::string> stars;
  size_t at = pieces.front().size();
  for (size_t i = 1; i + 1 < pieces.size(); ++i) {
    const size_t next = name.find(pieces[i], at);
    if (next == std::string::npos) return std::nullopt;
    stars.push_back(name.substr(at, next - at));
    at = next + pieces[i].size();
  }
  if (name.size() < at + pieces.back().size() || !name.ends_with(pieces.back())) return std::nullopt;
  stars.push_back(name.substr(at, name.size() - at - pieces.back().size()));
  return stars;
}

std::string text_of(const WeightShape& weight) {
  std::string text = std::string(name_of(weight.dtype)) + " [";
  for (size_t i = 0; i < weight.shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(weight.shape[i]);
  return text + "]";
}

bool is_real(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

// Floating-point tensors are converted to the model's type; an integer tensor must have exactly the model's type.
bool same_kind(DType a, DType b) {
  return a == b || (is_real(a) && is_real(b));
}

// Removes the longest common end that consists of whole words between dots: "a.b.c.weight" and "x.c.weight" give
// {"a.b", "x"}.
std::pair<std::string, std::string> without_common_end(const std::string& a, const std::string& b) {
  size_t common = 0, word = 0;
  while (common < a.size() && common < b.size() && a[a.size() - 1 - common] == b[b.size() - 1 - common]) {
    if (a[a.size() - 1 - common] == '.') word = common + 1;
    ++common;
  }
  if (common == a.size() && b.size() > common && b[b.size() - 1 - common] == '.') word = common + 1;
  if (common == b.size() && a.size() > common && a[a.size() - 1 - common] == '.') word = common + 1;
  return {word > a.size() ? "" : a.substr(0, a.size() - word), word > b.size() ? "" : b.substr(0, b.size() - word)};
}

// Returns the rule that supplies most of the missing tensors. For each missing tensor, the most similar unexpected
// tensor of the same shape is found. The two prefixes in which they differ get a vote.
std::string proposed_rule(const std::vector<const WantedWeight*>& missing,
                          const std::vector<const WeightShape*>& unexpected) {
  std::map<std::pair<std::string, std::string>, size_t> votes;
  for (const WantedWeight* want : missing) {
    std::pair<std::string, std::string> best;
    size_t longest = 0;
    for (const WeightShape* have : unexpected) {
      if (have->shape != want->shape) continue;
      const auto begins = without_common_end(have->name, want->name);
      const size_t common = want->name.size() - begins.second.size();
      if (common <= longest) continue;
      longest = common;
      best = begins;
    }
    if (longest > 0) ++votes[best];
  }
  const auto most = std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second; });
  if (most == votes.end()) return "";
  const auto side = [](const std::string& begin) { return begin.empty() ? "*" : begin + ".*"; };
  return side(most->first.first) + "=" + side(most->first.second);
}

class WeightMatcher {
 public:
  WeightMatcher(const std::vector<WantedWeight>& wanted, const std::vector<WeightShape>& given,
                const spec::WeightSource& from)
      : wanted_(wanted), given_(given), from_(from), taken_(wanted.size()) {}

  MatchedWeights run() {
    check_rules();
    for (size_t g = 0; g < given_.size(); ++g) match(g);
    for (size_t w = 0; w < wanted_.size(); ++w) {
      if (taken_[w] || wanted_[w].reinitialised || !wanted_[w].required) continue;
      missing_.push_back(&wanted_[w]);
      result_.missing.push_back(wanted_[w].name);
    }
    if (from_.strict) {
      for (const WantedWeight* want : missing_)
        result_.problems.push_back("missing: " + want->name + " " + text_of(*want));
      for (size_t i = 0; i < unexpected_.size(); ++i)
        result_.problems.push_back("unexpected: " + result_.unexpected[i] + " " + text_of(*unexpected_[i]));
    } else if (result_.fits.empty() && result_.problems.empty()) {
      result_.problems.emplace_back("none of its tensors has a name that the model uses");
    }
    if (!result_.problems.empty()) result_.hint = hint();
    return std::move(result_);
  }

 private:
  void check_rules() {
    for (const std::string& rule : from_.map) {
      const size_t at = rule.find('=');
      const auto left = std::count(rule.begin(), rule.begin() + static_cast<std::ptrdiff_t>(at), '*');
      if (std::count(rule.begin() + static_cast<std::ptrdiff_t>(at), rule.end(), '*') > left) {
        result_.problems.push_back("the rule '" + rule + "' has more * on the right than on the left");
      } else if (std::ranges::none_of(given_,
                                      [&](const WeightShape& have) { return renamed(rule, have.name).has_value(); })) {
        result_.problems.push_back("the rule '" + rule + "' matches none of its names");
      }
    }
  }

  std::string name_in_model(const std::string& name) const {
    for (auto rule = from_.map.rbegin(); rule != from_.map.rend(); ++rule) {
      if (auto made = renamed(*rule, name)) return *made;
    }
    return name;
  }

  void match(size_t g) {
    const WeightShape& have = given_[g];
    const std::string name = name_in_model(have.name);
    if (name.empty()) return;  // the rule drops this tensor
    const std::string label = have.name + (name == have.name ? "" : " (as " + name + ")");
    const auto want = std::ranges::find(wanted_, name, &WantedWeight::name);
    if (want == wanted_.end()) {
      unexpected_.push_back(&have);
      result_.unexpected.push_back(label);
      return;
    }
    if (want->reinitialised) return;
    const auto w = static_cast<size_t>(want - wanted_.begin());
    if (taken_[w]) {
      result_.problems.push_back("twice: " + name + ", from " + *taken_[w] + " and from " + have.name);
      return;
    }
    taken_[w] = have.name;
    if (have.shape != want->shape || !same_kind(have.dtype, want->dtype)) {
      result_.problems.push_back("wrong shape: " + label + " is " + text_of(have) + ", the model has " +
                                 text_of(*want));
      misshapen_ = name;
      return;
    }
    result_.fits.push_back({w, g});
  }

  std::string hint() const {
    const std::string rule = proposed_rule(missing_, unexpected_);
    if (!rule.empty()) return "model.init_from.map: ['" + rule + "']";
    std::vector<std::string> names;
    for (const WantedWeight* want : missing_) names.push_back(want->name);
    for (const WeightShape* have : unexpected_) {
      const std::string close = spec::did_you_mean(have->name, names);
      if (!close.empty())
        return "did you mean " + close + " by " + have->name + "? model.init_from.map: ['" + have->name + "=" + close +
               "']";
    }
    if (!misshapen_.empty())
      return "model.reinit: ['" + misshapen_ + "'] initialises it again; or use the job that trained the weights";
    return "set model.init_from.map to translate names, model.init_from.strict: false to take the tensors that match, "
           "or model.reinit to initialise parameters again";
  }

  const std::vector<WantedWeight>& wanted_;
  const std::vector<WeightShape>& given_;
  const spec::WeightSource& from_;
  std::vector<std::optional<std::string>> taken_;  // for each entry of wanted_: the name of the tensor that was taken
  std::vector<const WantedWeight*> missing_;
  std::vector<const WeightShape*> unexpected_;
  std::string misshapen_;
  MatchedWeights result_;
};

}  // namespace

std::optional<std::string> renamed(const std::string& rule, const std::string& name) {
  const size_t at = rule.find('=');
  const auto stars = stars_of(rule.substr(0, at), name);
  if (!stars) return std::nullopt;
  std::string made;
  size_t star = 0;
  for (const char letter : rule.substr(at + 1)) {
    if (letter != '*') {
      made += letter;
    } else if (star < stars->size()) {
      made += (*stars)[star++];
    }
  }
  return made;
}

MatchedWeights match_weights(const std::vector<WantedWeight>& wanted, const std::vector<WeightShape>& given,
                             const spec::WeightSource& from) {
  return WeightMatcher(wanted, given, from).run();
}

}  // namespace sinew::train
