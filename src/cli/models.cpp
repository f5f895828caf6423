// `sinew models` manages the versions of trained models: it lists them, shows where they came from, and names a
// champion.
#include "cli/models.h"

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

}  // namespace

int run_models(const Arguments& arguments) {
  Given given;
  std::string margin, allowed;
  const auto on_store = [&](int (*run)(store::Store&, const Given&)) {
    return [&, run](const std::vector<std::string>& words) {
      given.words = words;
      if (!margin.empty()) given.gates.margin = margin_of(margin);
      given.gates.need_same_data = allowed != "other-data";
      given.gates.need_checks = allowed != "unchecked";
      if (run == models::collect) given.place.need_store();
      const auto store = given.place.open_store();
      return run(*store, given);
    };
  };
  Options options("models", "Versions of trained models: register, promote, roll back, where they came from");
  options.about("VERSION is MODEL/3, MODEL@champion, or MODEL: its champion, else its newest.")
      .verb("list", "", "all models", on_store(models::list))
      .verb("show", "VERSION", "one model's versions, and what this one was made from", on_store(models::show))
      .verb("register", "RUN", "makes the run's model/ the next version, and the candidate; again: the same version",
            on_store(models::register_one))
      .verb("promote", "VERSION", "makes it the champion, if it passes: checks, and at least as good on the same data",
            on_store(models::promote_one))
      .verb("rollback", "MODEL", "makes the former champion the champion again", on_store(models::roll_back))
      .verb("diff", "VERSION VERSION", "what differs: options, metrics, data, environment, files",
            on_store(models::diff))
      .verb("verify", "[VERSION]", "reads its files (of all versions) and checks them", on_store(models::verify))
      .verb("delete", "VERSION", "deletes the version MODEL/3 unless an alias names it; the next gc removes its files",
            on_store(models::delete_one))
      .verb("gc", "", "removes files that nothing refers to", on_store(models::collect))
      .default_verb("list")
      .text("--model", "NAME", given.model, "register: the model's name; by default the job's")
      .text("--alias", "NAME", given.alias, "the alias to move; by default champion, with register candidate")
      .text("--metric", "NAME", given.gates.metric,
            "promote: the metric to compare; by default the one the run was judged by, on the test split if possible")
      .text("--margin", "X", margin, "promote: better by at least X; below 0: it may be worse by so much")
      .choice("--allow", allowed, {"other-data", "unchecked"}, "promote: do not refuse for this reason")
      .flag("--force", given.force, "promote: move the alias although the version does not pass; the reason is kept")
      .flag("--restore", given.restore, "register: also if the model was deleted")
      .flag("--dry-run", given.dry_run, "gc: only say what would go")
      .choice("--format", given.format, {"table", "json"}, "of the output");
  given.place.add_to(options);
  options.notes("Exit codes: 0 done; 1 error; 2 usage; 4 the version does not pass, or a file is damaged.")
      .example("sinew models register last")
      .example("sinew models promote mnist@candidate");
  return options.parse(arguments) ? options.run_verb() : kDone;
}

}  // namespace sinew::cli
