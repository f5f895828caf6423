// Private to program/: finds out which inputs and outputs of a graph are weights, and gives names to the others.
#pragma once

#include "program/graph.h"
#include "program/json.h"
#include "program/program.h"

namespace sinew::program {

// Reads the signature of `graph_module`, and checks it against the graph that `reader` has read. Sets the inputs, the
// outputs and the trees of the program.
void read_signature(const JsonView& graph_module, GraphReader& reader, Program& program);

// Sets the names of the user's inputs and outputs, and the trees that describe their structure. The program must
// already have its specs.
void name_leaves(const JsonView& graph_module, Program& program);

// parse_model parses models/model.json. read_model takes from it everything in a program except path, root, weights and
// constants. Both throw Error if the text is not valid.
Document parse_model(std::string_view text, const std::string& place);
void read_model(const Document& document, Program& program);

}  // namespace sinew::program
