// Inside train/: which tensor of a file becomes which of the model. Pure.
//
// Names that differ are told by rules, "encoder.*=backbone.*". Everything that does not fit is found at once and said
// with both shapes, and where a rule would put it right, that rule is proposed.
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
  bool required = true;  // buffers are not: a file may hold parameters alone
  bool anew = false;     // begins anew: nothing is taken for it
};

struct WeightFit {
  size_t wanted = 0, given = 0;  // places in the two lists
};

struct MatchedWeights {
  std::vector<WeightFit> fits;
  std::vector<std::string> problems;             // empty: it may be used
  std::vector<std::string> missing, unexpected;  // names of the model, of the file; problems only when strict
  std::string hint;
};

// `from.map` and `from.strict` count, its path is not looked at.
MatchedWeights match_weights(const std::vector<WantedWeight>& wanted, const std::vector<WeightShape>& given,
                             const spec::WeightSource& from);

// The name `rule` ("a.*=b.*") gives to `name`; nullopt: it does not fit. What a `*` stands for is put in place of the
// `*` on the right that has its number.
std::optional<std::string> renamed(const std::string& rule, const std::string& name);

}  // namespace sinew::train
