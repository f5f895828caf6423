// Finds the source of a node in the texts that the exporter writes into the node's metadata.
#include <algorithm>
#include <vector>

#include "program/graph.h"

namespace sinew::program {
namespace {

// Returns whether the path is that of PyTorch's own code, or of code that PyTorch generates ("<eval_with_key>.47").
// Neither helps the user.
bool is_inside_torch(std::string_view path) {
  return path.starts_with('<') || path.starts_with("torch/") || path.find("-packages/torch/") != std::string_view::npos;
}

std::string_view after_last(std::string_view text, char c) {
  const size_t at = text.rfind(c);
  return at == std::string_view::npos ? text : text.substr(at + 1);
}

}  // namespace

// A stack trace has lines such as `  File "/home/me/model.py", line 17, in forward`. The outermost call comes first,
// and a line of code follows each of them.
std::string innermost_line(std::string_view stack_trace) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ", kIn = ", in ";
  std::string found;
  for (size_t begin = 0; begin < stack_trace.size();) {
    const size_t end = std::min(stack_trace.find('\n', begin), stack_trace.size());
    std::string_view line = stack_trace.substr(begin, end - begin);
    begin = end + 1;
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const size_t number = line.find(kLine), in = line.find(kIn, number == std::string_view::npos ? 0 : number);
    if (!line.starts_with(kFile) || number == std::string_view::npos || in == std::string_view::npos) continue;
    const std::string_view path = line.substr(kFile.size(), number - kFile.size());
    if (is_inside_torch(path)) continue;
    found = after_last(path, '/');
    found += ':';
    found += line.substr(number + kLine.size(), in - number - kLine.size());
    found += " in ";
    found += line.substr(in + kIn.size());
  }
  return found;
}

// A module stack has entries `key,path,type`, separated by ';'. The outermost module comes first.
std::string innermost_module(std::string_view nn_module_stack) {
  const std::string_view entry = after_last(nn_module_stack, ';');
  const size_t first = entry.find(','), last = entry.rfind(',');
  if (first == std::string_view::npos || first == last) return "";
  const std::string_view path = entry.substr(first + 1, last - first - 1);
  const std::string type(after_last(entry.substr(last + 1), '.'));
  if (path.starts_with("_empty_nn_module_stack")) return "";
  return path.empty() ? type : std::string(path) + " (" + type + ")";
}

}  // namespace sinew::program
