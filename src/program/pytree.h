// Inside the room: how nested inputs and outputs are packed, and what their leaves are called.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "program/json.h"
#include "program/program.h"

namespace sinew::program {

inline constexpr size_t kLongestLeafName = 1024;

using FieldNames = std::map<std::string, std::vector<std::string>, std::less<>>;  // of named tuples, by type

// Of `spot`'s text, a treespec: "[1, {"type": ..., "context": ..., "children_spec": [...]}]".
Tree read_tree(const Spot& spot, const FieldNames& fields);

// Names of the leaves, in order; refused unless there are `wanted`. Outputs: "" for a tree that is one leaf, else the
// way to it, "0.hidden".
std::vector<std::string> output_names(const Spot& spot, const Tree& tree, size_t wanted);
// Inputs: an argument's own name first, from `arguments` by place, or "args.0"; keyword arguments by their key.
std::vector<std::string> input_names(const Spot& spot, const Tree& tree, const std::vector<std::string>& arguments,
                                     size_t wanted);

}  // namespace sinew::program
