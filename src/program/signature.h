// Inside the room: which of a graph's inputs and outputs are weights, and what the user calls the others.
#pragma once

#include "program/graph.h"
#include "program/json.h"
#include "program/program.h"

namespace sinew::program {

// `graph_module`'s signature against the graph that was read of it: fills inputs, outputs and trees of the program.
void read_signature(const Spot& graph_module, GraphReader& reader, Program& program);

// Names of the user's inputs and outputs, and the trees they are packed in. The program has its specs.
void name_leaves(const Spot& graph_module, Program& program);

// The whole of models/model.json: everything of the program but its path, root, weights and constants. Throws Error.
Document parse_model(std::string_view text, const std::string& place);
void read_model(const Document& document, Program& program);

}  // namespace sinew::program
