// Implements to_yaml. It writes every option that has an effect on this job with its value, and writes options that are
// not set as comments.
#include <algorithm>

#include "base/printable.h"
#include "spec/options.h"
#include "spec/values.h"

namespace sinew::spec {
namespace {

// A comment at the end of a line. Reasons quote the names and contents of files, which may hold any bytes. A line break
// would end the comment, and invalid bytes would make resolved.yaml unreadable.
std::string comment(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return "  # " + printable(line);
}

// A study may vary the option that this option depends on. This option then has no effect in some trials, and read_job
// would refuse it in those. to_yaml therefore leaves it out if it has its default.
bool may_be_without_effect(const Option& option, const Job& job) {
  const bool varied =
      std::ranges::find(job.tune.search, option.effect.key, &SearchParameter::key) != job.tune.search.end();
  return varied && value_text(option, job) == value_text(option, default_job(job.model.name));
}

bool is_written(const Option& option, const Job& job) {
  return has_effect(option, job) && is_set(option, job) && !may_be_without_effect(option, job);
}

class YamlWriter {
 public:
  YamlWriter(const Job& job, const Reasons& reasons) : job_(job), reasons_(reasons) {}

  std::string write() {
    write_section("", 0);
    return std::move(text_);
  }

 private:
  void write_section(const std::string& section, size_t depth) {
    for (const std::string& leaf : keys_below(section)) {
      const std::string key = section.empty() ? leaf : section + "." + leaf;
      const std::string indent(2 * depth, ' ');
      if (const Option* option = find_option(key)) {
        write_option(*option, indent);
      } else if (anything_below(key)) {
        text_ += indent + leaf + ":\n";
        write_section(key, depth + 1);
      } else if (anything_possible_below(key)) {
        text_ += indent + "# " + leaf + ": not given\n";
      }
    }
  }

  void write_option(const Option& option, const std::string& indent) {
    if (!has_effect(option, job_) || may_be_without_effect(option, job_)) return;
    const auto reason = reasons_.find(option.key);
    if (is_set(option, job_)) {
      text_ += indent + option.leaf() + ": " + value_text(option, job_);
      text_ += (reason == reasons_.end() ? "" : comment(reason->second)) + "\n";
    } else {
      text_ += indent + "# " + option.leaf() + ": not given" + (option.unset.empty() ? "" : " (" + option.unset + ")");
      text_ += (reason == reasons_.end() ? "" : ";" + comment(reason->second).substr(3)) + "\n";
    }
  }

  bool anything_below(const std::string& section) const {
    for (const Option& option : option_table()) {
      if (option.key.starts_with(section + ".") && is_written(option, job_)) return true;
    }
    return false;
  }

  // Returns whether this kind of job can have the section at all. to_yaml does not mention other sections: a job with a
  // command has no model, and a training has no retries.
  bool anything_possible_below(const std::string& section) const {
    for (const Option& option : option_table()) {
      const bool of_commands = option.effect.key == "command" || option.key == "metrics.file";
      const bool possible = job_.command.given() ? !is_of_training(option.key) : !of_commands;
      if (option.key.starts_with(section + ".") && possible) return true;
    }
    return false;
  }

  const Job& job_;
  const Reasons& reasons_;
  std::string text_;
};

}  // namespace

std::string to_yaml(const Job& job, const Reasons& reasons) {
  return YamlWriter(job, reasons).write();
}

}  // namespace sinew::spec
