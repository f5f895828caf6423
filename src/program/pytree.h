// Inside program/: how nested inputs and outputs are packed, and the names of their leaves.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "program/json.h"
#include "program/program.h"

namespace sinew::program {

inline constexpr size_t kMaxLeafName = 1024;  // bytes

using FieldNames = std::map<std::string, std::vector<std::string>, std::less<>>;  // of named tuples, by type

// Parses the text of `view`, a treespec: "[1, {"type": ..., "context": ..., "children_spec": [...]}]".
Tree read_tree(const JsonView& view, const FieldNames& fields);

// The names of the leaves, in order. Throws Error unless there are `wanted` leaves.
// Outputs: the path to the leaf, such as "0.hidden"; "" where the tree is one leaf.
std::vector<std::string> output_names(const JsonView& view, const Tree& tree, size_t wanted);
// Inputs: the name of the argument, followed by the path inside it. `arguments` has the names of the positional
// arguments; without a name it is "args.0". Keyword arguments have their key.
std::vector<std::string> input_names(const JsonView& view, const Tree& tree, const std::vector<std::string>& arguments,
                                     size_t wanted);

}  // namespace sinew::program
