// Private to program/: reads the structure of nested inputs and outputs, and names their leaves.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "program/json.h"
#include "program/program.h"

namespace sinew::program {

inline constexpr size_t kMaxLeafName = 1024;  // bytes

// the field names of named tuples, by type
using FieldNames = std::map<std::string, std::vector<std::string>, std::less<>>;

// Parses the text of `view`, a treespec: "[1, {"type": ..., "context": ..., "children_spec": [...]}]".
Tree read_tree(const JsonView& view, const FieldNames& fields);

// output_names and input_names return the names of the leaves, in order. They throw Error unless there are `wanted`
// leaves. The name of an output is the path to the leaf, such as "0.hidden", or "" if the tree is one leaf.
std::vector<std::string> output_names(const JsonView& view, const Tree& tree, size_t wanted);
// The name of an input is the name of the argument, followed by the path inside the argument. `arguments` has the names
// of the positional arguments; without a name, argument 0 is called "args.0". A keyword argument is named by its
// key.
std::vector<std::string> input_names(const JsonView& view, const Tree& tree, const std::vector<std::string>& arguments,
                                     size_t wanted);

}  // namespace sinew::program
