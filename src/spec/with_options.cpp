// Changes options in the text of a job file, and keeps the rest of it: order, comments, form.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "spec/spec.h"

namespace sinew::spec {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

size_t line_start(const std::string& text, size_t at) {
  const size_t end = text.rfind('\n', at == 0 ? 0 : at - 1);
  return at == 0 || end == std::string::npos ? 0 : end + 1;
}

std::vector<std::string> words_of(const std::string& key) {
  std::vector<std::string> words;
  for (size_t at = 0; at <= key.size();) {
    const size_t dot = std::min(key.find('.', at), key.size());
    words.push_back(key.substr(at, dot - at));
    at = dot + 1;
  }
  return words;
}

// "b: {c: 4}" for the words from `first` on.
std::string written(const std::vector<std::string>& words, size_t first, const std::string& value) {
  std::string text = words[first] + ": ";
  for (size_t i = first + 1; i < words.size(); ++i) text += "{" + words[i] + ": ";
  return text + value + std::string(words.size() - first - 1, '}');
}

// The length of a scalar of one line that begins at `at`.
size_t scalar_length(const std::string& text, size_t at, const std::string& value) {
  const char quote = text[at];
  if (quote != '"' && quote != '\'') return text.compare(at, value.size(), value) == 0 ? value.size() : 0;
  const size_t end = text.find(quote, at + 1);
  return end == std::string::npos ? 0 : end + 1 - at;
}

// Sets one option. Returns nullopt if the text has a form that this does not change.
std::optional<std::string> with_option(std::string text, const std::string& key, const std::string& value,
                                       const std::string& reason) {
  const std::vector<std::string> words = words_of(key);
  const size_t mark = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  YAML::Node section = YAML::Load(text.substr(mark));
  if (!section.IsMap()) return std::nullopt;
  const auto place = [&](const YAML::Node& node) { return mark + static_cast<size_t>(std::max(0, node.Mark().pos)); };
  size_t section_key = 0;  // where the key of `section` begins
  const auto change = [&](size_t at, size_t length, const std::string& put, const std::string& indent) {
    const size_t start = std::max(mark, line_start(text, at));
    text.replace(at, length, put);
    if (!reason.empty()) text.insert(start, indent + "# " + key + ": " + reason + "\n");  // above the changed line
    return text;
  };
  const auto indent_at = [&](size_t at) {
    const size_t start = std::max(mark, line_start(text, at));
    return text.substr(start, text.find_first_not_of(' ', start) - start);
  };
  for (size_t i = 0; i < words.size(); ++i) {
    const YAML::Node& here = section;  // looking into it must not add a key
    if (const YAML::Node found = here[words[i]]; found.IsDefined()) {
      const size_t at = place(found);
      if (i + 1 < words.size()) {
        if (!found.IsMap() || at >= text.size()) return std::nullopt;
        for (const auto& entry : here) {
          if (entry.first.Scalar() == words[i]) section_key = place(entry.first);
        }
        section.reset(found);
        continue;
      }
      const size_t length = found.IsScalar() && at < text.size() ? scalar_length(text, at, found.Scalar()) : 0;
      if (length == 0) return std::nullopt;
      return change(at, length, value, indent_at(at));
    }
    const std::string put = written(words, i, value);
    if (section.Style() == YAML::EmitterStyle::Flow) {
      const size_t at = place(section);
      if (text[at] != '{') return std::nullopt;
      return change(at + 1, 0, put + (section.size() > 0 ? ", " : ""), indent_at(at));
    }
    if (i == 0) {
      if (!text.ends_with('\n')) text += '\n';
      return change(text.size(), 0, put + "\n", "");
    }
    if (section.size() == 0) return std::nullopt;
    const size_t first = place(section.begin()->first), below = text.find('\n', section_key) + 1;
    const std::string indent = indent_at(first);
    if (line_start(text, first) + indent.size() != first || below == 0 || below > first) return std::nullopt;
    return change(below, 0, indent + put + "\n", indent);
  }
  return std::nullopt;
}

}  // namespace

std::string with_options(const std::string& yaml, const std::string& file_name,
                         const std::vector<std::string>& overrides, const Reasons& reasons,
                         const Environment& environment) {
  const Reading wanted = read_job(yaml, file_name, overrides, environment);
  if (!wanted.problems.empty()) {
    const Problem& problem = wanted.problems[0];
    throw UsageError("JOB_UNREADABLE", to_string(problem), problem.hint);
  }
  try {
    std::optional<std::string> text = yaml;
    for (const std::string& one : overrides) {
      const size_t equals = one.find('=');
      const std::string key = one.substr(0, equals);
      const auto reason = reasons.find(key);
      text = with_option(std::move(*text), key, one.substr(equals + 1), reason == reasons.end() ? "" : reason->second);
      if (!text) break;
    }
    if (text) {
      const Reading changed = read_job(*text, file_name, {}, environment);
      if (changed.problems.empty() && changed.job == wanted.job) return *text;
    }
  } catch (const YAML::Exception&) {
    // a form that the YAML library reads otherwise than read_job
  }
  return to_yaml(wanted.job, reasons);
}

}  // namespace sinew::spec
