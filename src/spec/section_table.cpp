// Lists the sections of a job file, in the order of the file.
#include "spec/options.h"

namespace sinew::spec {

const std::vector<Section>& section_table() {
  static const std::vector<Section> table = {
      {"model", "The architecture and its options"},
      {"model.init_from", "Pretrained weights to start from"},
      {"loss", "The function that training minimises"},
      {"data", "Where the samples come from and how they are prepared"},
      {"data.train", "The training data. Required"},
      {"data.val", "The data that evaluates the model during training"},
      {"data.test", "The data that evaluates the finished model, once"},
      {"data.split",
       "Shares of train that become val or test, drawn with the seed, if these have no files of their own"},
      {"data.table", "Tables: how the cells of the files are read; auto: as the beginning of the file shows"},
      {"data.columns", "Tables: the roles and kinds of the columns"},
      {"data.image", "Image files: the size and channels of the samples"},
      {"data.text", "Text: how it is split into samples"},
      {"data.augment",
       "Random changes of training images, in this order; each depends on seed, epoch and sample alone"},
      {"data.prefetch", "Loading samples ahead of the training; no effect on the result"},
      {"trainer", "The training loop: its length, batch size, number formats and evaluation"},
      {"optimizer", "How gradients become updates of the parameters"},
      {"scheduler", "How the learning rate changes during the training"},
      {"checkpoint", "When the state is saved, and which checkpoints are kept"},
      {"early_stopping", "Stop when a metric no longer improves"},
      {"logging", "What the training writes while it runs"},
      {"budget", "Limits of the training's time, length, cost and energy"},
      {"threshold", "Two classes: from which probability a sample counts as one of the second class"},
      {"tune", "What `sinew tune` varies, and how long it searches; a training ignores it"},
      {"workers", "How many processes train; --workers N sets it on the command line"},
      {"cluster", "How the processes that train watch one another; no effect on the result"},
      {"resources",
       "Limits of a command; enforced by cgroups where sinew may create them, otherwise by watching the command"},
      {"retries", "How often a command is restarted, by the reason of its end"},
      {"metrics", "Where a command reports its metrics, one JSON object for each line"},
  };
  return table;
}

}  // namespace sinew::spec
