// Variables, and rules between options: every problem, word by word, at its line and column.
#include "spec/expect_problems.h"

namespace sinew::spec {
namespace {

const BadFile kFiles[] = {
    {"unset",
     "data: {train: '${DATA_DIR}/x'}\n",
     {"job:1:15: data.train.path: the environment variable DATA_DIR is not set / set it before the command: export "
      "DATA_DIR=..., or give a default: ${DATA_DIR:-...}"}},
    {"not_closed",
     "data: {train: '${DATA_DIR/x'}\n",
     {"job:1:15: data.train.path: a '${' is not closed / write ${NAME}, or $$ for a dollar"}},
    {"bad_variable",
     "data: {train: '${1}'}\n",
     {"job:1:15: data.train.path: '${1}' names no variable / write ${NAME} or ${NAME:-default}, or $$ for a dollar"}},
    {"variable_in_number",
     std::string(kData) + "optimizer: {lr: '${LR}'}\n",
     {"job:2:17: optimizer.lr needs a number above 0 and at most 1000000, got the string '${LR}' / variables are "
      "replaced in names and paths only; use an override: optimizer.lr=..."}},
    {"no_data",
     "name: a\n",
     {"job: data.train is missing: there is nothing to train on / give a file or folder, 'train: path', or for idx and "
      "npy 'train: {images: path, labels: path}'"}},
    {"no_train",
     "data:\n  format: csv\n  columns: {target: y}\n",
     {"job:1:1: data.train is missing: there is nothing to train on / give a file or folder, 'train: path', or for idx "
      "and npy 'train: {images: path, labels: path}'"}},
    {"no_file",
     "data:\n  train: {}\n",
     {"job:2:3: data.train names no file / give a file or folder, 'train: path', or for idx and npy 'train: {images: "
      "path, labels: path}'"}},
    {"path_and_images",
     "data:\n  train: {path: x, images: y, labels: z}\n",
     {"job:2:20: data.train has both a path and images / keep path, or images and labels (for idx and npy)"}},
    {"images_alone",
     "data:\n  train: {images: y}\n",
     {"job:2:11: data.train.images stands without data.train.labels / idx and npy need both files"}},
    {"npy_with_path",
     "data:\n  format: npy\n  train: x\n",
     {"job:3:10: the format npy needs images and labels, not one path / write 'train: {images: path, labels: path}'"}},
    {"csv_with_images",
     "data:\n  format: csv\n  train: {images: a, labels: b}\n  columns: {target: y}\n",
     {"job:3:11: the format csv needs one path, not images and labels / write 'train: path', or choose data.format: "
      "idx or npy"}},
    {"csv_without_target",
     "data:\n  format: csv\n  train: x\n",
     {"job:2:11: the format csv needs data.columns.target / name the column to predict: 'columns: {target: price}'"}},
    {"split_and_files",
     "data:\n  train: x\n  val: y\n  split: {val: 0.1}\n",
     {"job:4:16: data.split.val has no effect, because data.val names files / delete one of the two"}},
    {"split_all",
     "data:\n  train: x\n  split: {val: 0.5, test: 0.5}\n",
     {"job:3:27: data.split.val and data.split.test leave nothing of train / their sum must be below 1, got 0.5 + "
      "0.5"}},
    {"hidden_of_resnet",
     std::string(kData) + "model: {name: resnet18, hidden: [3]}\n",
     {"job:2:25: model.hidden has no effect with model.name: resnet18 / delete it, or choose model.name: mlp"}},
    {"momentum_of_default",
     std::string(kData) + "optimizer: {momentum: 0.9}\n",
     {"job:2:13: optimizer.momentum has no effect with optimizer.name: adamw (the default) / delete it, or choose "
      "optimizer.name: sgd or rmsprop"}},
    {"nesterov",
     std::string(kData) + "optimizer: {name: sgd, nesterov: true}\n",
     {"job:2:34: optimizer.nesterov needs a momentum above 0 / for example momentum: 0.9"}},
    {"weights_of_mse",
     std::string(kData) + "loss: {name: mse, class_weights: [1]}\n",
     {"job:2:19: loss.class_weights has no effect with loss.name: mse / delete it, or choose loss.name: auto or "
      "cross_entropy"}},
    {"more_to_begin_than_there_are",
     std::string(kData) + "workers: {min: 3}\n",
     {"job:2:16: workers.min is 3, more than workers.max: 1 (the default) / max is how many there are; min is how many "
      "of them it takes to begin"}},
    {"patience_alone",
     std::string(kData) + "early_stopping: {patience: 3}\n",
     {"job:2:18: early_stopping.patience has no effect without early_stopping.monitor / give early_stopping.monitor, "
      "or delete this line"}},
    {"scale_order",
     "data: {train: x, augment: {scale: [1.1, 0.9]}}\n",
     {"job:1:35: data.augment.scale begins with the larger factor / write [low, high]"}},
    {"window_of_csv",
     "data: {train: x, format: csv, columns: {target: y}, text: {window: 3}}\n",
     {"job:1:60: data.text.window has no effect with data.format: csv / delete it, or choose data.format: auto or "
      "text"}},
    {"typo_of_train", "data: {trian: x}\n", {"job:1:8: unknown key 'trian' in data / did you mean 'train'?"}},
    {"many",
     "data:\n  trian: x\nmodle: cnn\ntrainer:\n  batch_size: 0\n  seed: x\n",
     {"job:2:3: unknown key 'trian' in data / did you mean 'train'?",
      "job:3:1: unknown key 'modle' / did you mean 'model'?",
      "job:5:15: trainer.batch_size is 0, but must be a whole number from 1 to 1000000000 / for example batch_size: 64",
      "job:6:9: trainer.seed needs a whole number from 0 to 18446744073709551615, got the string 'x' / for example "
      "seed: 4"}},
    {"problems_before_a_syntax_error",
     std::string(kData) + "modle: cnn\ntrainer:\n  seed: x\n  name: a: b\n",
     {"job:2:1: unknown key 'modle' / did you mean 'model'?",
      "job:4:9: trainer.seed needs a whole number from 0 to 18446744073709551615, got the string 'x' / for example "
      "seed: 4",
      "job:5:3: unknown key 'name' in trainer / keys here: max_duration, batch_size, shards, lanes, precision, "
      "memory_format, device, grad_clip_norm, ema_decay, drop_last, seed, eval_interval, eval_batch_size, "
      "batch_size_ramp, "
      "batch_size_ramp_interval",
      "job:5:10: a second ':' on this line / put a value that holds ': ' in quotes, or start a new line"}},
};

INSTANTIATE_TEST_SUITE_P(Rules, BadFiles, testing::ValuesIn(kFiles),
                         [](const auto& file) { return std::string(file.param.name); });

}  // namespace
}  // namespace sinew::spec
