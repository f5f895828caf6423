// For the tests of program/: prints a whole program as text, so that tests can compare two programs and show the
// difference.
#pragma once

#include <sstream>
#include <string>

#include "program/program.h"

namespace sinew::program {

class Dump {
 public:
  static std::string of(const Program& program) {
    Dump dump;
    dump.program(program);
    return dump.out_.str();
  }

 private:
  void program(const Program& program) {
    out_ << program.root << ' ' << program.torch_version << ' ' << program.schema_version[0] << '.'
         << program.schema_version[1] << '\n';
    graph(program.graph, "");
    for (const InputSpec& input : program.inputs) {
      out_ << "input " << static_cast<int>(input.kind) << " %" << input.value << " '" << input.name << "' "
           << input.persistent << ' ';
      argument(input.constant, "");
      out_ << '\n';
    }
    for (const OutputSpec& output : program.outputs) {
      out_ << "output " << static_cast<int>(output.kind) << " '" << output.name << "' ";
      argument(output.value, "");
      out_ << '\n';
    }
    for (const auto& [name, stored] : program.weights) this->stored("weight", name, stored);
    for (const auto& [name, stored] : program.constants) this->stored("constant", name, stored);
    for (const auto& [name, range] : program.ranges) {
      out_ << "range " << name << ' ' << (range.min ? std::to_string(*range.min) : "-") << ".."
           << (range.max ? std::to_string(*range.max) : "-") << '\n';
    }
    tree(program.input_tree);
    tree(program.output_tree);
    out_ << '\n';
  }

  void stored(const char* what, const std::string& name, const StoredTensor& stored) {
    out_ << what << " '" << name << "' " << name_of(stored.dtype) << numbers(stored.sizes) << numbers(stored.strides)
         << '+' << stored.offset << ' ' << stored.member << '@' << stored.begin << ':' << stored.member_bytes << ' '
         << stored.checksum << ' ' << stored.is_parameter << '\n';
  }

  static std::string numbers(const Shape& shape) {
    std::string text = "[";
    for (const int64_t size : shape) text += std::to_string(size) + ' ';
    return text + ']';
  }

  void graph(const Graph& graph, const std::string& indent) {
    for (const Value& value : graph.values) {
      out_ << indent << '%' << &value - graph.values.data() << " = " << value.name << ' '
           << static_cast<int>(value.kind);
      if (value.meta) {
        out_ << ' ' << name_of(value.meta->dtype) << (value.meta->requires_grad ? " grad [" : " [");
        for (const Dim& dim : value.meta->sizes) {
          out_ << (dim.fixed ? std::to_string(*dim.fixed) : dim.expression + '|' + dim.symbol)
               << (dim.hint ? '~' + std::to_string(*dim.hint) : "") << ' ';
        }
        out_ << ']';
      }
      out_ << '\n';
    }
    out_ << indent << "takes";
    for (const ValueId id : graph.inputs) out_ << " %" << id;
    out_ << '\n';
    for (const Node& node : graph.nodes) {
      out_ << indent << node.name << " := " << node.target;
      for (const NamedArgument& input : node.inputs) {
        out_ << ' ' << input.name << '=';
        argument(input.value, indent + "    ");
      }
      out_ << " ->";
      for (const Argument& output : node.outputs) argument(output, indent);
      out_ << (node.returns_list_of_one ? " list of one" : "") << " at " << node.where << " in " << node.module << '\n';
    }
    out_ << indent << (graph.single_output ? "gives single" : "gives");
    for (const Argument& output : graph.outputs) {
      out_ << ' ';
      argument(output, indent);
    }
    out_ << '\n';
  }

  void argument(const Argument& value, const std::string& indent) {
    std::visit([&](const auto& held) { print(held, indent); }, value.value);
  }
  void print(const None&, const std::string&) { out_ << "None"; }
  void print(const ValueRef& ref, const std::string&) { out_ << '%' << ref.id; }
  void print(int64_t number, const std::string&) { out_ << number; }
  void print(double number, const std::string&) { out_ << std::hexfloat << number << 'f'; }
  void print(bool truth, const std::string&) { out_ << (truth ? "True" : "False"); }
  void print(const std::string& text, const std::string&) { out_ << '"' << text << '"'; }
  void print(const Complex& z, const std::string&) { out_ << z.real << '+' << z.imag << 'j'; }
  void print(ScalarType type, const std::string&) { out_ << name_of(type); }
  void print(MemoryFormat format, const std::string&) { out_ << "format" << static_cast<int>(format); }
  void print(Layout layout, const std::string&) { out_ << "layout" << static_cast<int>(layout); }
  void print(const Device& device, const std::string&) { out_ << "device:" << device.type; }
  void print(const OperatorName& name, const std::string&) { out_ << "op:" << name.name; }
  void print(const List& list, const std::string& indent) {
    out_ << static_cast<int>(list.of) << '[';
    for (const Argument& item : list.items) {
      argument(item, indent);
      out_ << ' ';
    }
    out_ << ']';
  }
  void print(const Dictionary& dictionary, const std::string& indent) {
    out_ << '{';
    for (const auto& [name, item] : dictionary.items) {
      out_ << name << ": ";
      argument(item, indent);
      out_ << ' ';
    }
    out_ << '}';
  }
  void print(const std::shared_ptr<const Graph>& body, const std::string& indent) {
    out_ << "{\n";
    graph(*body, indent + "  ");
    out_ << indent << '}';
  }

  void tree(const Tree& tree) {
    out_ << static_cast<int>(tree.kind) << '(';
    for (size_t i = 0; i < tree.children.size(); ++i) {
      if (!tree.keys.empty()) out_ << tree.keys[i] << ':';
      this->tree(tree.children[i]);
    }
    out_ << ')';
  }

  std::ostringstream out_;
};

}  // namespace sinew::program
