// read_job: checks the tree against the option table, then the rules between options.
#include <algorithm>
#include <tuple>

#include "spec/aliases.h"
#include "spec/options.h"
#include "spec/overrides.h"
#include "spec/rules.h"
#include "spec/search.h"
#include "spec/spec.h"
#include "spec/tree.h"
#include "spec/values.h"

namespace sinew::spec {
namespace {

class JobReader {
 public:
  explicit JobReader(const Environment& environment) : environment_(environment) {}

  void read_section(const std::string& section, const Node& node) {
    for (const Entry& entry : node.entries) {
      const std::string key = section.empty() ? entry.key : section + "." + entry.key;
      // A key that contains a dot is not a dotted path: in a file, sections are nested.
      const bool plain = entry.key.find('.') == std::string::npos;
      if (const Option* option = plain ? find_option(key) : nullptr) {
        read_option(*option, entry.position, entry.value);
      } else if (plain && find_section(key) != nullptr) {
        read_subsection(key, entry);
      } else {
        refuse_key(section, entry);
      }
    }
  }

  // Call it after the whole file was read, because the defaults depend on the model.
  void take_defaults() {
    take_model_defaults(job, [this](const std::string& key) { return given.contains(key); });
  }

  Job job;
  std::vector<Finding> findings;
  GivenKeys given;

 private:
  void read_option(const Option& option, Position key, const Node& node) {
    const bool good = read_value(option, node, environment_, job, findings);
    given[option.key] = {key, node.position, good};
  }

  void read_subsection(const std::string& key, const Entry& entry) {
    given[key] = {entry.position, entry.value.position, true};
    if (entry.value.kind == Node::Kind::map) return read_section(key, entry.value);
    given[key].good = !entry.value.broken;
    if (entry.value.broken) return;
    const Option* short_form = short_form_of(key);
    if (short_form != nullptr && entry.value.kind == Node::Kind::scalar) {
      return read_option(*short_form, entry.position, entry.value);
    }
    given[key].good = false;
    const std::string keys = "its keys: " + listed(keys_below(key));
    if (entry.value.kind == Node::Kind::null) {
      findings.push_back({entry.position, "SPEC_MISSING_VALUE", key + " has no keys",
                          "write " + keys + ", indented below it, or delete the line"});
    } else {
      findings.push_back({entry.value.position, "SPEC_WRONG_TYPE",
                          key + " is a section and needs keys, got " + described(entry.value),
                          "write " + keys + ", indented below it"});
    }
  }

  void refuse_key(const std::string& section, const Entry& entry) {
    const std::string where = section.empty() ? "" : " in " + section;
    findings.push_back(
        {entry.position, "SPEC_UNKNOWN_KEY", "unknown key " + shown(entry.key) + where, key_hint(section, entry.key)});
    // Treats the key that the user probably meant as given, so that no rule reports it as missing.
    const std::string meant = did_you_mean(entry.key, keys_below(section));
    if (!meant.empty())
      given.insert({section.empty() ? meant : section + "." + meant, {entry.position, entry.position, false}});
  }

  const Environment& environment_;
};

Problem to_problem(const Finding& finding, std::string_view file, const std::vector<std::string>& overrides) {
  if (finding.position.override_index < 0) {
    return {std::string(file), finding.position.line, finding.position.column,
            finding.code,      finding.what,          finding.hint};
  }
  const std::string& text = overrides[static_cast<size_t>(finding.position.override_index)];
  return {"override", 0, 0, finding.code, shown(text) + ": " + finding.what, finding.hint};
}

// Sorts the findings by position, with those of overrides last. Removes duplicates: the reader reports a problem in an
// anchored value once more for each alias of it.
std::vector<Problem> in_order(std::vector<Finding> findings, std::string_view file,
                              const std::vector<std::string>& overrides) {
  const auto rank = [](const Finding& finding) {
    const Position& position = finding.position;
    return std::tuple(position.override_index, position.line, position.column);
  };
  std::stable_sort(findings.begin(), findings.end(),
                   [&](const Finding& a, const Finding& b) { return rank(a) < rank(b); });
  std::vector<Problem> problems;
  for (const Finding& finding : findings) {
    Problem problem = to_problem(finding, file, overrides);
    const bool repeated = !problems.empty() && problems.back().what == problem.what &&
                          problems.back().line == problem.line && problems.back().column == problem.column;
    if (!repeated) problems.push_back(std::move(problem));
  }
  return problems;
}

constexpr size_t kMostProbes = 1000, kMostProbedNodes = 500'000;  // each probe reads the whole file again

size_t count_nodes(const Node& node) {
  size_t count = 1;
  for (const Node& item : node.items) count += count_nodes(item);
  for (const Entry& entry : node.entries) count += 1 + count_nodes(entry.value);
  return count;
}

Position place_of_parameter(Node& root, const std::string& key) {
  Node* tune = root.find("tune");
  Node* search = tune == nullptr ? nullptr : tune->find("search");
  if (search == nullptr) return {};
  for (const Entry& entry : search->entries) {
    if (entry.key == key) return entry.position;
  }
  return search->position;
}

// Checks the rules between options for values that a study may try: the ends of each range, and the choices. read_job
// does not call this if an override gives a value to one of the parameters: such a job is a single training, such as
// one trial.
std::vector<Finding> check_search(const Node& file, Node& root, const Job& job,
                                  const std::vector<std::string>& overrides, const Environment& environment) {
  std::vector<Finding> found;
  const std::vector<SearchProbe> probes = probes_of(job, std::min(kMostProbes, kMostProbedNodes / count_nodes(file)));
  for (size_t i = 0; i < probes.size(); ++i) {
    std::vector<std::string> words = overrides;
    words.insert(words.end(), probes[i].overrides.begin(), probes[i].overrides.end());
    Node probed = file;
    JobReader reader(environment);
    apply_overrides(probed, words, reader.findings);
    reader.read_section("", probed);
    reader.take_defaults();
    for (Finding& finding : check_rules(reader.job, reader.given)) reader.findings.push_back(std::move(finding));
    if (reader.findings.empty()) continue;
    found.push_back({place_of_parameter(root, job.tune.search[probes[i].at].key), "SPEC_BAD_TRIAL",
                     "tune.search: with " + listed(probes[i].overrides) + ": " + reader.findings[0].what,
                     reader.findings[0].hint});
  }
  return found;
}

}  // namespace

Reading read_job(std::string_view yaml, std::string_view file_name, const std::vector<std::string>& overrides,
                 const Environment& environment) {
  Tree tree = parse_tree(yaml);
  JobReader reader(environment);
  std::vector<Finding>& findings = reader.findings;
  findings = std::move(tree.findings);
  const bool empty = !tree.root || tree.root->kind == Node::Kind::null;
  const bool is_map = !empty && tree.root->kind == Node::Kind::map;
  if (tree.complete && empty) {
    findings.push_back({{},
                        "SPEC_NOT_A_JOB",
                        "the file is empty",
                        "begin with 'data: {train: path}', or create a job file with sinew init"});
  } else if (tree.complete && !is_map) {
    findings.push_back({tree.root->position, "SPEC_NOT_A_JOB",
                        "a job file consists of 'key: value' lines, got " + described(*tree.root),
                        "begin with the line 'data:', and write 'train: path' indented below it"});
  }
  Node root;
  root.kind = Node::Kind::map;
  if (is_map) root = std::move(*tree.root);
  replace_aliases(root, "", findings);
  const Node file = root;
  for (const std::string& key : apply_overrides(root, overrides, findings)) reader.given[key].good = false;
  reader.read_section("", root);
  reader.take_defaults();
  // After a syntax error, rules would complain about options that the parser did not reach.
  if (tree.complete && is_map) {
    for (Finding& finding : check_rules(reader.job, reader.given)) findings.push_back(std::move(finding));
    if (findings.empty() && overridden(reader.job.tune.search, overrides).empty())
      findings = check_search(file, root, reader.job, overrides, environment);
  }
  return {std::move(reader.job), in_order(std::move(findings), file_name, overrides)};
}

std::string to_string(const Problem& problem) {
  std::string text = problem.file;
  if (problem.line > 0) text += ":" + std::to_string(problem.line) + ":" + std::to_string(problem.column);
  text += ": " + problem.what + " [" + std::string(problem.code.text()) + "]";
  return problem.hint.empty() ? text : text + " / " + problem.hint;
}

bool AugmentOptions::any() const {
  return crop_padding > 0 || flip > 0 || rotate > 0 || translate > 0 || !scale.empty() || noise > 0;
}

}  // namespace sinew::spec
