// Keys that are unknown, doubled or without a value: every problem, word by word, at its line and column.
#include "spec/expect_problems.h"

namespace sinew::spec {
namespace {

const BadFile kFiles[] = {
    {"unknown_key", std::string(kData) + "modle: cnn\n", {"job:2:1: unknown key 'modle' / did you mean 'model'?"}},
    {"unknown_key_below",
     std::string(kData) + "trainer: {batchsize: 3}\n",
     {"job:2:11: unknown key 'batchsize' in trainer / did you mean 'batch_size'?"}},
    {"key_of_other_section",
     std::string(kData) + "trainer: {lr: 0.1}\n",
     {"job:2:11: unknown key 'lr' in trainer / did you mean 'optimizer.lr'? keys here: max_duration, batch_size, "
      "shards, lanes, precision, memory_format, device, grad_clip_norm, ema_decay, drop_last, seed, eval_interval, "
      "eval_batch_size, batch_size_ramp, "
      "batch_size_ramp_interval"}},
    {"key_of_other_tools",
     std::string(kData) + "trainer: {max_epochs: 3}\n",
     {"job:2:11: unknown key 'max_epochs' in trainer / did you mean 'max_duration'?"}},
    {"nothing_close",
     std::string(kData) + "zebra: 1\n",
     {"job:2:1: unknown key 'zebra' / keys at the top: name, command, workdir, grace, params, env, model, loss, data, "
      "trainer, optimizer, scheduler, "
      "checkpoint, early_stopping, objective, logging, budget, tune, workers, resources, retries, metrics"}},
    {"dotted_key",
     std::string(kData) + "optimizer.lr: 0.1\n",
     {"job:2:1: unknown key 'optimizer.lr' / dotted keys are for the command line: write the sections as indented "
      "lines"}},
    {"twice",
     std::string(kData) + "name: a\nmodel: cnn\nname: b\n",
     {"job:4:1: 'name' is given twice, first on line 2 / keep one of them"}},
    {"section_twice",
     std::string(kData) + "model: {name: cnn}\nmodel: {norm: batch}\n",
     {"job:3:1: 'model' is given twice, first on line 2 / keep one of them"}},
    {"no_value",
     std::string(kData) + "name:\nmodel: cnn\n",
     {"job:2:1: name has no value / write a plain name, or leave the key out"}},
    {"null_value",
     std::string(kData) + "trainer: {seed: null, batch_size: ~}\n",
     {"job:2:11: trainer.seed has no value / write a whole number from 0 to 18446744073709551615, or leave the key out",
      "job:2:23: trainer.batch_size has no value / write a whole number from 1 to 1000000000, or leave the key out"}},
    {"empty_section",
     std::string(kData) + "trainer:\nmodel: cnn\n",
     {"job:2:1: trainer has no keys below it / write its keys: max_duration, batch_size, shards, lanes, precision, "
      "memory_format, device, grad_clip_norm, ema_decay, drop_last, seed, eval_interval, eval_batch_size, "
      "batch_size_ramp, "
      "batch_size_ramp_interval, indented "
      "below it; or delete the line"}},
    {"section_is_list",
     std::string(kData) + "trainer: [1]\n",
     {"job:2:10: trainer is a section of keys, got a list / write its keys: max_duration, batch_size, shards, lanes, "
      "precision, memory_format, device, grad_clip_norm, ema_decay, drop_last, seed, eval_interval, eval_batch_size, "
      "batch_size_ramp, "
      "batch_size_ramp_interval, "
      "indented below it"}},
    {"section_is_value",
     std::string(kData) + "trainer: fast\n",
     {"job:2:10: trainer is a section of keys, got the string 'fast' / write its keys: max_duration, batch_size, "
      "shards, lanes, precision, memory_format, device, grad_clip_norm, ema_decay, drop_last, seed, eval_interval, "
      "eval_batch_size, batch_size_ramp, "
      "batch_size_ramp_interval, indented below it"}},
    {"value_is_section",
     std::string(kData) + "name: {a: b}\n",
     {"job:2:7: name needs a plain name, got a section of keys / for example name: job"}},
    {"value_is_list",
     std::string(kData) + "trainer: {batch_size: [1]}\n",
     {"job:2:23: trainer.batch_size needs a whole number from 1 to 1000000000, got a list / for example batch_size: "
      "64"}},
};

INSTANTIATE_TEST_SUITE_P(Keys, BadFiles, testing::ValuesIn(kFiles),
                         [](const auto& file) { return std::string(file.param.name); });

}  // namespace
}  // namespace sinew::spec
