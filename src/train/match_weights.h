// Matches the tensors of a file with those of the model, by name and shape. All functions are pure. Private to train/.
//
// Rules such as "encoder.*=backbone.*" translate names. All mismatches are found at once and listed with both shapes.
// If a rule would fix them, that rule is proposed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/array.h"
#include "spec/spec.h"

namespace sinew::train {

struct WeightShape {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

struct WantedWeight : WeightShape {
  bool required = true;        // false for buffers, because a file may hold only parameters
  bool reinitialised = false;  // true: the weight keeps its initial values, and nothing is taken from the file
};

struct WeightFit {
  size_t wanted = 0, given = 0;  // indices into the two lists
};

struct MatchedWeights {
  std::vector<WeightFit> fits;
  std::vector<std::string> problems;  // if empty, the match may be used
  // tensors that only the model has, and that only the file has; problems only if strict
  std::vector<std::string> missing, unexpected;
  std::string hint;
};

// Uses `from.map` and `from.strict`, and ignores `from.path`.
MatchedWeights match_weights(const std::vector<WantedWeight>& wanted, const std::vector<WeightShape>& given,
                             const spec::WeightSource& from);

// Returns the name that `rule` ("a.*=b.*") makes of `name`, or nullopt if the rule does not match `name`. What the n-th
// `*` on the left matches replaces the n-th `*` on the right.
std::optional<std::string> renamed(const std::string& rule, const std::string& name);

}  // namespace sinew::train
