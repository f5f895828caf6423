// `sinew models` manages the versions of trained models: it lists them, shows where they came from, and names a
// champion.
#include "cli/models.h"

#include <algorithm>
#include <charconv>

#include "cli/options.h"
#include "spec/spec.h"

namespace sinew::cli {
namespace {

using models::Given;

double margin_of(const std::string& text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !(value > -1e300 && value < 1e300))
    throw UsageError("OPTION_INVALID", "--margin is a number, not '" + text + "'", "--margin 0.01");
  return value;
}

struct Verb {
  const char* name;
  size_t least, most;  // number of arguments after the verb
  int (*run)(store::Store&, const Given&);
};
constexpr Verb kVerbs[] = {{"list", 0, 0, models::list},
                           {"show", 1, 1, models::show},
                           {"register", 1, 1, models::register_one},
                           {"promote", 1, 1, models::promote_one},
                           {"rollback", 1, 1, models::roll_back},
                           {"diff", 2, 2, models::diff},
                           {"verify", 0, 1, models::verify},
                           {"delete", 1, 1, models::delete_one},
                           {"gc", 0, 0, models::collect}};

[[noreturn]] void refuse_verb(const Options& options, const Given& given) {
  std::vector<std::string> known;
  for (const Verb& verb : kVerbs) known.emplace_back(verb.name);
  if (std::ranges::find(known, given.verb) != known.end())
    options.refuse("'" + given.verb + "' does not take these " + std::to_string(given.words.size()) + " words");
  const std::string near = spec::did_you_mean(given.verb, known);
  options.refuse("models has no command '" + given.verb + "'", near.empty() ? "" : "sinew models " + near);
}

}  // namespace

int run_models(const Arguments& arguments) {
  Given given;
  std::string margin, allowed;
  Options options("models", "Versions of trained models: register, promote, roll back, where they came from");
  options
      .about(
          "VERSION: MODEL/3, MODEL@champion, or MODEL: its champion, else its newest.\n\n"
          "  list                   all models (the default)\n"
          "  show VERSION           one model's versions, and what this one was made from\n"
          "  register RUN           makes the run's model/ the next version, and the candidate; again: the same "
          "version\n"
          "  promote VERSION        makes it the champion, if it passes: checks, and at least as good on the same "
          "data\n"
          "  rollback MODEL         makes the former champion the champion again\n"
          "  diff VERSION VERSION   what differs: options, metrics, data, environment, files\n"
          "  verify [VERSION]       reads its files (of all versions) and checks them\n"
          "  delete VERSION         deletes the version MODEL/3 unless an alias names it; the next gc removes its "
          "files\n"
          "  gc                     removes files that nothing refers to")
      .optional_argument("COMMAND", given.verb, "one of the above")
      .rest("WHAT", given.words, "versions, a run or a model")
      .text("--model", "NAME", given.model, "register: the model's name; by default the job's")
      .text("--alias", "NAME", given.alias, "the alias to move; by default champion, with register candidate")
      .text("--metric", "NAME", given.gates.metric,
            "promote: the metric to compare; by default the one the run was judged by, on the test split if possible")
      .text("--margin", "X", margin, "promote: better by at least X; below 0: it may be worse by so much")
      .choice("--allow", allowed, {"other-data", "unchecked"}, "promote: do not refuse for this reason")
      .flag("--force", given.force, "promote: move the alias although the version does not pass; the reason is kept")
      .flag("--dry-run", given.dry_run, "gc: only say what would go")
      .choice("--format", given.format, {"table", "json"}, "of the output");
  given.place.add_to(options);
  options.notes("Exit codes: 0 done; 1 error; 2 usage; 4 the version does not pass, or a file is damaged.")
      .example("sinew models register last")
      .example("sinew models promote mnist@candidate");
  if (!options.parse(arguments)) return kDone;
  if (!margin.empty()) given.gates.margin = margin_of(margin);
  given.gates.need_same_data = allowed != "other-data";
  given.gates.need_checks = allowed != "unchecked";
  for (const Verb& verb : kVerbs) {
    if (given.verb != verb.name || given.words.size() < verb.least || given.words.size() > verb.most) continue;
    if (verb.run == models::collect) given.place.need_store();
    const auto store = given.place.open_store();
    return verb.run(*store, given);
  }
  refuse_verb(options, given);
}

}  // namespace sinew::cli
