// The sections of a job file, in the order they are written.
#include "spec/options.h"

namespace sinew::spec {

const std::vector<Section>& section_table() {
  static const std::vector<Section> table = {
      {"model", "The architecture, with the options that it has"},
      {"model.init_from", "Weights that were trained before"},
      {"loss", "What training makes small"},
      {"data", "Where the samples come from and what is done to them"},
      {"data.train", "The data to learn from. Required"},
      {"data.val", "The data that judges the model during training"},
      {"data.test", "The data that judges the finished model, once"},
      {"data.split", "Parts cut from train by a seeded draw, where val or test has no files of its own"},
      {"data.columns", "Tables: which column is what"},
      {"data.image", "Image files: what they become"},
      {"data.text", "Text: how it is cut"},
      {"data.augment",
       "Random changes to training images, in this order; each depends on seed, epoch and sample alone"},
      {"data.prefetch", "Loading ahead of the training; never changes the result"},
      {"trainer", "The loop: how long, how large, with what numbers"},
      {"optimizer", "How gradients become updates"},
      {"scheduler", "How the learning rate moves"},
      {"checkpoint", "What is saved, when, and what is kept"},
      {"early_stopping", "Stop when a metric no longer improves"},
      {"logging", "What is written while training"},
      {"budget", "What the training may cost"},
      {"tune", "What `sinew tune` varies, and how long it searches; a training does not look at it"},
      {"workers", "How many processes train; --workers N says it on the command line"},
      {"resources",
       "What a command may use; beyond a limit it can not go where cgroups may be made, else it is watched"},
      {"retries", "How often a command is started again, by what ended it"},
      {"metrics", "Where a command says its metrics, one JSON object a line"},
  };
  return table;
}

}  // namespace sinew::spec
