// Values of the wrong type, form or range: every problem, word by word, at its line and column.
#include "spec/expect_problems.h"

namespace sinew::spec {
namespace {

const BadFile kFiles[] = {
    {"string_for_whole",
     std::string(kData) + "trainer: {batch_size: many}\n",
     {"job:2:23: trainer.batch_size needs a whole number from 1 to 1000000000, got the string 'many' / for example "
      "batch_size: 64"}},
    {"quoted_number",
     std::string(kData) + "trainer: {batch_size: '64'}\n",
     {"job:2:23: trainer.batch_size needs a whole number from 1 to 1000000000, got the quoted string '64' / remove the "
      "quotes: 64"}},
    {"fraction_for_whole",
     std::string(kData) + "trainer: {batch_size: 2.5}\n",
     {"job:2:23: trainer.batch_size needs a whole number from 1 to 1000000000, got the number 2.5 / for example "
      "batch_size: 64"}},
    {"underscore",
     std::string(kData) + "trainer: {batch_size: 1_000}\n",
     {"job:2:23: trainer.batch_size needs a whole number from 1 to 1000000000, got the string '1_000' / write 1000"}},
    {"comma",
     std::string(kData) + "trainer:\n  batch_size: 1,000\n",
     {"job:3:15: trainer.batch_size needs a whole number from 1 to 1000000000, got the string '1,000' / write 1000"}},
    {"octal",
     std::string(kData) + "trainer: {seed: 012}\n",
     {"job:2:17: trainer.seed needs a whole number from 0 to 18446744073709551615, got the string '012' / write 12"}},
    {"hex",
     std::string(kData) + "trainer: {seed: 0x1F}\n",
     {"job:2:17: trainer.seed needs a whole number from 0 to 18446744073709551615, got the string '0x1F' / write it in "
      "decimal"}},
    {"trailing",
     std::string(kData) + "trainer: {seed: 12abc}\n",
     {"job:2:17: trainer.seed needs a whole number from 0 to 18446744073709551615, got the string '12abc' / for "
      "example seed: 4"}},
    {"bool_for_whole",
     std::string(kData) + "trainer: {seed: true}\n",
     {"job:2:17: trainer.seed needs a whole number from 0 to 18446744073709551615, got true / for example seed: 4"}},
    {"zero",
     std::string(kData) + "trainer: {batch_size: 0}\n",
     {"job:2:23: trainer.batch_size is 0, but must be a whole number from 1 to 1000000000 / for example batch_size: "
      "64"}},
    {"negative_seed",
     std::string(kData) + "trainer: {seed: -1}\n",
     {"job:2:17: trainer.seed is -1, but must be a whole number from 0 to 18446744073709551615 / for example seed: 4"}},
    {"seed_too_large",
     std::string(kData) + "trainer: {seed: 18446744073709551616}\n",
     {"job:2:17: trainer.seed is 18446744073709551616, but must be a whole number from 0 to 18446744073709551615 / for "
      "example seed: 4"}},
    {"huge",
     std::string(kData) + "trainer: {batch_size: 1e999}\n",
     {"job:2:23: trainer.batch_size is 1e999, but must be a whole number from 1 to 1000000000 / for example "
      "batch_size: 64"}},
    {"nan",
     std::string(kData) + "optimizer: {lr: .nan}\n",
     {"job:2:17: optimizer.lr needs a number above 0 and at most 1000000, got the string '.nan' / for example lr: "
      "0.001"}},
    {"inf",
     std::string(kData) + "optimizer: {lr: .inf}\n",
     {"job:2:17: optimizer.lr needs a number above 0 and at most 1000000, got the string '.inf' / for example lr: "
      "0.001"}},
    {"overflow",
     std::string(kData) + "optimizer: {lr: 1e999}\n",
     {"job:2:17: optimizer.lr is 1e999, but must be a number above 0 and at most 1000000 / for example lr: 0.001"}},
    {"string_for_number",
     std::string(kData) + "optimizer: {lr: fast}\n",
     {"job:2:17: optimizer.lr needs a number above 0 and at most 1000000, got the string 'fast' / for example lr: "
      "0.001"}},
    {"zero_lr",
     std::string(kData) + "optimizer: {lr: 0}\n",
     {"job:2:17: optimizer.lr is 0, but must be a number above 0 and at most 1000000 / for example lr: 0.001"}},
    {"negative_lr",
     std::string(kData) + "optimizer: {lr: -1e-3}\n",
     {"job:2:17: optimizer.lr is -1e-3, but must be a number above 0 and at most 1000000 / for example lr: 0.001"}},
    {"yes",
     std::string(kData) + "trainer: {drop_last: yes}\n",
     {"job:2:22: trainer.drop_last needs true or false, got the string 'yes' / only true and false are booleans here, "
      "lower case and without quotes"}},
    {"capital_true",
     std::string(kData) + "trainer: {drop_last: True}\n",
     {"job:2:22: trainer.drop_last needs true or false, got the string 'True' / only true and false are booleans here, "
      "lower case and without quotes"}},
    {"one",
     std::string(kData) + "trainer: {drop_last: 1}\n",
     {"job:2:22: trainer.drop_last needs true or false, got the number 1 / only true and false are booleans here, "
      "lower case and without quotes"}},
    {"quoted_true",
     std::string(kData) + "trainer: {drop_last: 'true'}\n",
     {"job:2:22: trainer.drop_last needs true or false, got the string 'true' / only true and false are booleans here, "
      "lower case and without quotes"}},
    {"no_as_choice",
     std::string(kData) + "model: {norm: no}\n",
     {"job:2:15: model.norm can not be 'no' / choose one of: none, batch"}},
    {"choice",
     std::string(kData) + "optimizer: adamx\n",
     {"job:2:12: optimizer.name can not be 'adamx' / did you mean 'adam'? choose one of: sgd, adam, adamw, rmsprop"}},
    {"choice_case",
     std::string(kData) + "model: {activation: ReLU}\n",
     {"job:2:21: model.activation can not be 'ReLU' / did you mean 'relu'? choose one of: relu, gelu, tanh, silu"}},
    {"number_as_choice",
     std::string(kData) + "trainer: {precision: 32}\n",
     {"job:2:22: trainer.precision needs one of auto, fp32, bf16, got the number 32 / for example precision: auto"}},
    {"no_as_text",
     "data: {train: x, columns: {target: no}}\n",
     {"job:1:36: data.columns.target needs a string, got the string 'no' / put it in quotes if it is meant as text: "
      "'no'"}},
    {"number_as_text",
     std::string(kData) + "name: 5\n",
     {"job:2:7: name needs a plain name, got the number 5 / put it in quotes if it is meant as text: '5'"}},
    {"octal_as_text",
     std::string(kData) + "name: 012\n",
     {"job:2:7: name needs a plain name, got the string '012' / put it in quotes if it is meant as text: '012'"}},
    {"empty_text", std::string(kData) + "name: ''\n", {"job:2:7: name is empty / for example name: job"}},
    {"empty_path",
     "data: {train: ''}\n",
     {"job:1:15: data.train.path is empty / to mean 'images and labels are given instead', leave the key out"}},
    {"bad_name",
     std::string(kData) + "name: a/b\n",
     {"job:2:7: name can not be 'a/b' / use at most 64 letters, digits, '_', '-', '.' or spaces, and begin with a "
      "letter, digit or '_'"}},
    {"dot_name",
     std::string(kData) + "name: ../x\n",
     {"job:2:7: name can not be '../x' / use at most 64 letters, digits, '_', '-', '.' or spaces, and begin with a "
      "letter, digit or '_'"}},
    {"duration_without_unit",
     std::string(kData) + "trainer: {max_duration: 10}\n",
     {"job:2:25: trainer.max_duration needs a duration in ep, st, sp, tok, s, m, h, d, got the number 10 / say the "
      "unit: 10ep (epochs), 10st (steps)"}},
    {"duration_with_space",
     std::string(kData) + "trainer: {max_duration: 10 ep}\n",
     {"job:2:25: trainer.max_duration needs a duration in ep, st, sp, tok, s, m, h, d, got the string '10 ep' / "
      "without the space: 10ep"}},
    {"duration_unit",
     std::string(kData) + "trainer: {max_duration: 10epochs}\n",
     {"job:2:25: trainer.max_duration needs a duration in ep, st, sp, tok, s, m, h, d, got the string '10epochs' / a "
      "number and one of ep, st, sp, tok, s, m, h, d; k, M and G before st, sp, tok: 10ep"}},
    {"duration_zero",
     std::string(kData) + "trainer: {max_duration: 0ep}\n",
     {"job:2:25: trainer.max_duration must be more than 0, got '0ep' / for example 10ep"}},
    {"duration_negative",
     std::string(kData) + "trainer: {max_duration: -1ep}\n",
     {"job:2:25: trainer.max_duration needs a duration in ep, st, sp, tok, s, m, h, d, got the string '-1ep' / a "
      "number and one of ep, st, sp, tok, s, m, h, d; k, M and G before st, sp, tok: 10ep"}},
    {"duration_of_itself",
     std::string(kData) + "trainer: {max_duration: 0.5dur}\n",
     {"job:2:25: trainer.max_duration can not be given in this unit: '0.5dur' / use ep, st, sp, tok, s, m, h, d"}},
    {"warmup_by_clock",
     std::string(kData) + "scheduler: {warmup: 5m}\n",
     {"job:2:21: scheduler.warmup can not be given in this unit: '5m' / use ep, st, sp, tok, dur: the result must not "
      "depend on the clock"}},
    {"half_step",
     std::string(kData) + "trainer: {max_duration: 0.5st}\n",
     {"job:2:25: trainer.max_duration needs a duration in ep, st, sp, tok, s, m, h, d, got the string '0.5st' / a "
      "number and one of ep, st, sp, tok, s, m, h, d; k, M and G before st, sp, tok: 10ep"}},
    {"interval",
     std::string(kData) + "checkpoint: {interval: sometimes}\n",
     {"job:2:24: checkpoint.interval needs a duration in ep, st, sp, tok, s, m, h, d, dur, or never, got the string "
      "'sometimes' / a number and one of ep, st, sp, tok, s, m, h, d, dur; k, M and G before st, sp, tok: 1ep"}},
    {"budget_number",
     std::string(kData) + "budget: {time: 2}\n",
     {"job:2:16: budget.time needs a time in s, m, h, d, got the number 2 / say the unit: 2h (hours), 2m (minutes)"}},
    {"budget_unit",
     std::string(kData) + "budget: {time: 2ep}\n",
     {"job:2:16: budget.time can not be given in this unit: '2ep' / use s, m, h, d"}},
    {"size_with_space",
     "data: {train: x, prefetch: {memory: 4 GiB}}\n",
     {"job:1:37: data.prefetch.memory needs a size in bytes, got the string '4 GiB' / write a whole number and B, kB, "
      "MB, GB, TB, KiB, MiB, GiB or TiB, without a space: 256MiB"}},
    {"size_unit",
     "data: {train: x, prefetch: {memory: 4Gb}}\n",
     {"job:1:37: data.prefetch.memory needs a size in bytes, got the string '4Gb' / write a whole number and B, kB, "
      "MB, GB, TB, KiB, MiB, GiB or TiB, without a space: 256MiB"}},
    {"size_zero",
     "data: {train: x, prefetch: {memory: 0}}\n",
     {"job:1:37: data.prefetch.memory must be more than 0 / for example 256MiB"}},
    {"objective",
     std::string(kData) + "objective: accuracy > 0.9\n",
     {"job:2:12: objective needs a metric, '>=' or '<=', and a number, got the string 'accuracy > 0.9' / for example "
      "objective: val/accuracy >= 0.92"}},
    {"objective_equal",
     std::string(kData) + "objective: val/accuracy = 0.9\n",
     {"job:2:12: objective needs a metric, '>=' or '<=', and a number, got the string 'val/accuracy = 0.9' / for "
      "example objective: val/accuracy >= 0.92"}},
    {"monitor",
     std::string(kData) + "early_stopping: {monitor: accuracy}\n",
     {"job:2:27: early_stopping.monitor needs a metric like val/loss, got the string 'accuracy' / say of which part: "
      "val/accuracy"}},
    {"scalar_for_list",
     std::string(kData) + "model: {hidden: 64}\n",
     {"job:2:17: model.hidden needs a list, each a whole number from 1 to 1000000, got the number 64 / put it in "
      "brackets: hidden: [256]"}},
    {"empty_list",
     std::string(kData) + "model: {hidden: []}\n",
     {"job:2:17: model.hidden needs 1 to 64 items, got 0 / for example hidden: [256]"}},
    {"bad_items",
     std::string(kData) + "model: {hidden: [64, x, 0, 1.5]}\n",
     {"job:2:22: an item of model.hidden needs a whole number from 1 to 1000000, got the string 'x' / for example "
      "hidden: [256]",
      "job:2:25: an item of model.hidden is 0, but must be a whole number from 1 to 1000000 / for example hidden: "
      "[256]",
      "job:2:28: an item of model.hidden needs a whole number from 1 to 1000000, got the number 1.5 / for example "
      "hidden: [256]"}},
    {"three_betas",
     std::string(kData) + "optimizer: {betas: [0.9, 0.99, 0.999]}\n",
     {"job:2:20: optimizer.betas needs exactly 2 items, got 3 / for example betas: [0.9, 0.999]"}},
    {"beta_one",
     std::string(kData) + "optimizer: {betas: [0.9, 1]}\n",
     {"job:2:26: an item of optimizer.betas is 1, but must be a number of at least 0 and below 1 / for example betas: "
      "[0.9, 0.999]"}},
    {"two_channels",
     "data: {train: x, image: {channels: 2}}\n",
     {"job:1:36: data.image.channels is 2, but must be 1 or 3 / for example channels: 3"}},
    {"auto_for_number",
     std::string(kData) + "optimizer: {lr: auto}\n",
     {"job:2:17: optimizer.lr needs a number above 0 and at most 1000000, got the string 'auto' / for example lr: "
      "0.001"}},
};

INSTANTIATE_TEST_SUITE_P(Types, BadFiles, testing::ValuesIn(kFiles),
                         [](const auto& file) { return std::string(file.param.name); });

}  // namespace
}  // namespace sinew::spec
