#include "spec/option_words.h"

namespace sinew::spec {
namespace {

using namespace words;

template <DataSource DataOptions::*Part>
std::vector<Option> source_options(const std::string& key, const std::string& unset) {
  return {
      {key + ".path",
       at<&Job::data, Part, &DataSource::path>(),
       path(),
       "file or folder; all formats except npy; idx: a folder",
       unset,
       {},
       "file dir folder root",
       true},
      {key + ".images",
       at<&Job::data, Part, &DataSource::images>(),
       path(),
       "idx and npy: file of the inputs",
       "the split has a path",
       {},
       "inputs x"},
      {key + ".labels",
       at<&Job::data, Part, &DataSource::labels>(),
       path(),
       "idx and npy: file of the targets",
       "the split has a path",
       {},
       "targets y"},
  };
}

std::vector<Option> split_options() {
  using D = DataOptions;
  constexpr auto in = &Job::data;
  return {
      {"data.split.val",
       at<in, &D::split_val>(),
       number(kFraction),
       "fraction of train that becomes the validation data",
       "",
       {},
       "validation valid"},
      {"data.split.test", at<in, &D::split_test>(), number(kFraction), "fraction of train that becomes the test data"},
      {"data.split.stratify", at<in, &D::stratify>(), flag(),
       "classification: every class keeps its share in every split", "", kNotText, "stratified"},
      {"data.split.group", at<in, &D::split_group>(), text(),
       "a column: rows with the same value stay in one split, for example all rows of a customer", "no groups", kTable,
       "groups group_by"},
      {"data.split.by", at<in, &D::split_by>(), text(),
       "a column of dates or numbers: the last rows become test data, and those before them validation data",
       "the seed decides", kTable, "time order"},
      {"data.split.folds", at<in, &D::folds>(), or_zero(whole(2, 1000)),
       "cross-validation: divide train into so many folds, and train once for each, with that fold as validation data",
       "no cross-validation", kNotText, "k_fold kfold cv n_splits cross_validation"},
      {"data.split.fold",
       at<in, &D::fold>(),
       whole(0, 999),
       "train only with this fold as validation data, counted from 0; auto: train once for each fold",
       "",
       {"data.split.folds", {}},
       "fold_index"},
      {"data.task", at<in, &D::task>(), choice({"auto", "classification", "regression"}), "the kind of target"},
  };
}

std::vector<Option> table_options() {
  using T = TableOptions;
  using C = ColumnOptions;
  constexpr auto in = &Job::data;
  constexpr auto table = &DataOptions::table;
  constexpr auto columns = &DataOptions::columns;
  return {
      {"data.table.sep", at<in, table, &T::sep>(), choice({"auto", "comma", "semicolon", "tab", "pipe"}),
       "the character between two cells", "", kDelimited, "delimiter separator"},
      {"data.table.encoding", at<in, table, &T::encoding>(),
       choice({"auto", "utf-8", "utf-16le", "utf-16be", "latin-1", "windows-1252"}), "the encoding of the characters",
       "", kEncoded, "charset"},
      {"data.table.decimal", at<in, table, &T::decimal>(), choice({"auto", "point", "comma"}),
       "the character before the fraction of a number: 1.5 or 1,5", "", kDelimited},
      {"data.table.thousands", at<in, table, &T::thousands>(),
       choice({"auto", "none", "comma", "point", "space", "apostrophe"}),
       "the character between groups of three digits: 1,000", "", kDelimited},
      {"data.table.header", at<in, table, &T::header>(), choice({"auto", "first_line", "none"}),
       "whether the first line has the names of the columns; none: they are column_1, column_2, ...", "", kDelimited,
       "names"},
      {"data.table.dates", at<in, table, &T::dates>(), choice({"auto", "day_first", "month_first"}),
       "whether 3/4/2024 is in April or in March", "", kTable, "dayfirst"},
      {"data.columns.target", at<in, columns, &C::target>(), text(),
       "the column to predict; required for csv, tsv, jsonl and text_folder (label)", "not a table", kTable, "label y"},
      {"data.columns.features", at<in, columns, &C::features>(), list(text(), 1, 10000), "the input columns",
       "all other columns", kTable, "inputs x"},
      {"data.columns.categorical", at<in, columns, &C::categorical>(), list(text(), 1, 10000),
       "columns that are categories, even if their values are numbers", "decided from the values", kTable,
       "categories category"},
      {"data.columns.ignore", at<in, columns, &C::ignore>(), list(text(), 1, 10000), "columns that are not read",
       "none", kTable, "drop exclude"},
      {"data.columns.numeric", at<in, columns, &C::numeric>(), list(text(), 1, 10000), "columns that are numbers",
       "decided from the values", kTable, "number numbers"},
      {"data.columns.boolean", at<in, columns, &C::boolean>(), list(text(), 1, 10000),
       "columns of true/false, yes/no, y/n, t/f, on/off or 1/0", "decided from the values", kTable, "bool binary"},
      {"data.columns.date", at<in, columns, &C::date>(), list(text(), 1, 10000),
       "columns of dates, with or without time", "decided from the values", kTable, "datetime parse_dates"},
      {"data.columns.text", at<in, columns, &C::text>(), list(text(), 1, 10000),
       "columns of free text, whose words are counted", "decided from the values", kTable, "string"},
      {"data.columns.on_bad_cell", at<in, columns, &C::on_bad_cell>(), choice({"error", "missing"}),
       "what to do with a value that does not fit the kind of its column: stop with its place, or count it as missing",
       "", kTable, "errors coerce on_bad_lines"},
  };
}

std::vector<Option> data_options() {
  using D = DataOptions;
  using A = AugmentOptions;
  constexpr auto in = &Job::data;
  constexpr auto augment = &D::augment;
  return {
      {"data.image.size", at<in, &D::image, &ImageOptions::size>(), list(whole(1, 65536), 2, 2),
       "[height, width]: all images are scaled to this size", "the common size of all images", kImageFiles,
       "resize shape"},
      {"data.image.channels", at<in, &D::image, &ImageOptions::channels>(), whole_of({"1", "3"}),
       "1 (grey) or 3 (colour)", "", kImageFiles},
      {"data.text.tokens", at<in, &D::text, &TextOptions::tokens>(), choice({"chars", "bytes"}),
       "the tokens: characters or bytes", "", kText, "tokenizer"},
      {"data.text.window", at<in, &D::text, &TextOptions::window>(), whole(1, 1e6), "tokens of a sample", "", kText,
       "length context block_size seq_len"},
      {"data.normalize", at<in, &D::normalize>(), choice({"auto", "none"}),
       "auto: subtract the mean of train and divide by its standard deviation, for each channel or column", "",
       kNotText, "standardize"},
      {"data.augment.crop_padding", at<in, augment, &A::crop_padding>(), whole(0, 1024),
       "pixels of zero padding at each side of the image before a random crop to the original size", "", kImages,
       "crop padding"},
      {"data.augment.flip", at<in, augment, &A::flip>(), number(kProbability), "probability of a left-right flip", "",
       kImages, "hflip horizontal_flip"},
      {"data.augment.rotate", at<in, augment, &A::rotate>(), number({0, 180}),
       "rotate by up to this many degrees in either direction", "", kImages, "rotation"},
      {"data.augment.translate", at<in, augment, &A::translate>(), number(kFraction),
       "shift by up to this fraction of the size in either direction", "", kImages, "shift"},
      {"data.augment.scale", at<in, augment, &A::scale>(), list(number({0, 10, true, false}), 2, 2),
       "[low, high]: scale the image by a factor between these", "no scaling", kImages, "zoom"},
      {"data.augment.noise", at<in, augment, &A::noise>(), number({0, 10}),
       "standard deviation of added Gaussian noise; pixels are between 0 and 1", "", kImages},
      {"data.on_corrupt", at<in, &D::on_corrupt>(), choice({"fail", "skip"}),
       "what to do with a sample that cannot be decoded: fail, or skip it"},
      {"data.prefetch.threads",
       at<in, &D::prefetch_threads>(),
       whole(0, 1024),
       "threads that load samples ahead",
       "",
       {},
       "workers num_workers"},
      {"data.prefetch.memory", at<in, &D::prefetch_bytes>(), bytes(), "limit of the decoded batches that wait"},
  };
}

std::vector<Option> trainer_options() {
  using T = TrainerOptions;
  constexpr auto in = &Job::trainer;
  return {
      {"trainer.max_duration",
       at<in, &T::max_duration>(),
       duration(kWholeTraining),
       "how long to train",
       "",
       {},
       "epochs max_epochs num_epochs max_steps steps max_time duration"},
      {"trainer.batch_size",
       at<in, &T::batch_size>(),
       whole(1, kBillion),
       "samples of a step, over all workers",
       "",
       {},
       "batch"},
      {"trainer.shards", at<in, &T::shards>(), whole(1, 65536),
       "how many slices a step is computed in; they determine the result, so auto depends on this file alone, unless "
       "budget.memory is given and too small for them: then there are more, and resolved.yaml keeps their number"},
      {"trainer.lanes",
       at<in, &T::lanes>(),
       whole(1, 1024),
       "threads that compute shards; no effect on the result; auto: one for each core, or fewer if budget.memory is "
       "too small",
       "",
       {},
       "threads num_threads"},
      {"trainer.precision",
       at<in, &T::precision>(),
       choice({"auto", "fastest", "fp32", "bf16"}),
       "number format of the forward and backward pass; auto: by the model and the processor; fastest: a few steps "
       "before the first one measure it, and resolved.yaml keeps what was chosen",
       "",
       {},
       "dtype amp"},
      {"trainer.memory_format", at<in, &T::memory_format>(), choice({"auto", "fastest", "contiguous", "channels_last"}),
       "memory layout of images; auto and fastest: as for trainer.precision", "", kConvolution},
      {"trainer.device",
       at<in, &T::device>(),
       choice({"auto", "cpu", "cuda"}),
       "the device that computes",
       "",
       {},
       "accelerator"},
      {"trainer.grad_clip_norm",
       at<in, &T::grad_clip_norm>(),
       number({0, kBillion}),
       "largest norm of the gradient; a larger gradient is scaled down to it; 0: off",
       "",
       {},
       "gradient_clip_val max_grad_norm clip"},
      {"trainer.ema_decay",
       at<in, &T::ema_decay>(),
       number(kFraction),
       "decay of the running average of the weights, which is evaluated and exported; 0: off",
       "",
       {},
       "ema"},
      {"trainer.drop_last", at<in, &T::drop_last>(), flag(), "skip the incomplete last batch of an epoch"},
      {"trainer.seed",
       at<in, &T::seed>(),
       whole(0, 18446744073709551615.0),
       "seed of all random numbers; the same file and seed give the same model",
       "",
       {},
       "random_seed"},
      {"trainer.eval_interval",
       at<in, &T::eval_interval>(),
       duration(kAny),
       "time between two evaluations on the validation data",
       "",
       {},
       "val_interval val_check_interval"},
      {"trainer.eval_batch_size", at<in, &T::eval_batch_size>(), whole(0, kBillion),
       "samples of a step of evaluation; 0: batch_size"},
  };
}

std::vector<Option> ramp_options() {
  using T = TrainerOptions;
  constexpr auto in = &Job::trainer;
  return {
      {"trainer.batch_size_ramp",
       at<in, &T::batch_size_ramp>(),
       list(whole(1, kBillion), 0, 64),
       "batch sizes of the first stages of the training; batch_size follows",
       "always batch_size",
       {},
       "rampup_batch_size batch_size_schedule"},
      {"trainer.batch_size_ramp_interval", at<in, &T::batch_size_ramp_interval>(), duration(kCountedFromStart),
       "length of a stage, in steps of batch_size", "", kRamp},
  };
}

std::vector<Option> optimizer_options() {
  using O = OptimizerOptions;
  using S = SchedulerOptions;
  constexpr auto in = &Job::optimizer;
  constexpr auto scheduler = &Job::scheduler;
  return {
      {"optimizer.name",
       at<in, &O::name>(),
       choice({"sgd", "adam", "adamw", "rmsprop"}),
       "the update rule",
       "",
       {},
       "type kind",
       true},
      {"optimizer.lr",
       at<in, &O::lr>(),
       number(kPositive),
       "learning rate, before the scheduler",
       "",
       {},
       "learning_rate rate"},
      {"optimizer.weight_decay",
       at<in, &O::weight_decay>(),
       number(kFromZero),
       "how strongly the weights decay towards 0; decoupled in adamw",
       "",
       {},
       "wd l2"},
      {"optimizer.weight_decay_schedule",
       at<in, &O::weight_decay_schedule>(),
       choice({"constant", "flat_cos"}),
       "flat_cos: the decay is constant in the first half of the training, and then falls to 0 as half a cosine",
       "",
       {},
       "wd_sched"},
      {"optimizer.momentum", at<in, &O::momentum>(), number(kFraction), "fraction of the previous update that is kept",
       "", kMomentum},
      {"optimizer.nesterov", at<in, &O::nesterov>(), flag(), "Nesterov's momentum", "", kSgd},
      {"optimizer.betas", at<in, &O::betas>(), list(number(kFraction), 2, 2),
       "decay rates of the averages of the gradient and of its square", "", kAdam},
      {"optimizer.eps", at<in, &O::eps>(), number({0, 1, true, false}), "added to the denominator", "", kAdaptive,
       "epsilon"},
      {"optimizer.alpha", at<in, &O::alpha>(), number(kFraction), "decay rate of the average of the squared gradient",
       "", kRmsprop, "rho"},
      {"optimizer.lr_scale",
       at<in, &O::lr_scale>(),
       list(text(), 1, 10000),
       "factors of the learning rate for some parameters, as pattern=factor: \"encoder.*=0.1\"; the last pattern that "
       "matches applies",
       "all 1",
       {},
       "param_groups groups lr_mult"},
      {"scheduler.name",
       at<scheduler, &S::name>(),
       choice({"constant", "step", "cosine", "linear", "one_cycle", "coslog4"}),
       "how the learning rate changes during the training; coslog4: four waves from 0 to lr and back, each twice as "
       "long as the one before",
       "",
       {},
       "type kind",
       true},
      {"scheduler.warmup",
       at<scheduler, &S::warmup>(),
       or_zero(duration(kCounted)),
       "time in which the rate grows from 0 to lr; for every scheduler",
       "",
       {},
       "warmup_steps"},
      {"scheduler.step_size", at<scheduler, &S::step_size>(), duration(kCounted),
       "time between two multiplications by gamma", "", kStep},
      {"scheduler.gamma", at<scheduler, &S::gamma>(), number({0, 1, true, false}),
       "factor of the rate after each step_size", "", kStep},
      {"scheduler.final_factor", at<scheduler, &S::final_factor>(), number(kProbability),
       "the last rate as a fraction of lr", "", kToAnEnd, "eta_min min_lr"},
  };
}

void append(std::vector<Option>& table, std::vector<Option> more) {
  for (Option& option : more) table.push_back(std::move(option));
}

std::vector<Option> make_table() {
  std::vector<Option> table = {{"name", at<&Job::name>(), name(), "name of the job and of its directory of runs"}};
  append(table, command_options());
  append(table, model_options());
  append(table, loss_options());
  table.push_back(
      {"data.format",
       at<&Job::data, &DataOptions::format>(),
       choice({"auto", "idx", "cifar10", "cifar100", "csv", "tsv", "jsonl", "npy", "npz", "image_folder", "image_list",
               "webdataset", "text", "text_folder", "library"}),
       "the format of the files; auto: by their names and first bytes; library: your own library reads them",
       "",
       {},
       "type kind"});
  table.push_back({"data.library", at<&Job::data, &DataOptions::library>(), path(),
                   "the shared object that provides the data set", "model.file", kLibraryData});
  append(table, source_options<&DataOptions::train>("data.train", "images and labels are given instead"));
  append(table, source_options<&DataOptions::val>("data.val", "data.split.val of train"));
  append(table, source_options<&DataOptions::test>("data.test", "data.split.test of train"));
  append(table, split_options());
  append(table, table_options());
  append(table, data_options());
  append(table, trainer_options());
  append(table, ramp_options());
  append(table, optimizer_options());
  append(table, run_options());
  append(table, budget_options());
  append(table, threshold_options());
  append(table, tune_options());
  append(table, workers_options());
  append(table, cluster_options());
  append(table, resource_options());
  return table;
}

}  // namespace

const std::vector<Option>& option_table() {
  static const std::vector<Option> table = make_table();
  return table;
}

}  // namespace sinew::spec
