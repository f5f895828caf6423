// Lists the options of a job's model and loss.
#include "spec/option_words.h"

namespace sinew::spec {
namespace {

using namespace words;

std::vector<Option> architecture_options() {
  using M = ModelOptions;
  constexpr auto in = &Job::model;
  return {
      {"model.name",
       at<in, &M::name>(),
       choice({"linear", "svm", "mlp", "cnn", "resnet18", "resnet34", "resnet50", "lstm", "program", "torchscript",
               "library"}),
       "the architecture; program, torchscript, library: your own model in model.file",
       "",
       {},
       "type arch architecture kind",
       true},
      {"model.hidden", at<in, &M::hidden>(), list(whole(1, 1e6), 1, 64), "sizes of the hidden layers", "", kMlp,
       "hidden_layers hidden_sizes units"},
      {"model.channels", at<in, &M::channels>(), list(whole(1, 65536), 1, 16), "channels of the convolution blocks", "",
       kCnn, "filters"},
      {"model.activation", at<in, &M::activation>(), choice({"relu", "gelu", "tanh", "silu"}),
       "the activation function between layers", "", kBlocks},
      {"model.norm", at<in, &M::norm>(), choice({"none", "batch"}), "normalisation after each hidden layer or block",
       "", kBlocks, "normalization batch_norm"},
      {"model.dropout", at<in, &M::dropout>(), number(kFraction), "probability that training drops a unit", "",
       kDropout},
      {"model.width", at<in, &M::width>(), whole(1, 4096), "channels of the first stage", "", kResnet},
      {"model.stem", at<in, &M::stem>(), choice({"auto", "imagenet", "cifar"}),
       "the first layers: imagenet reduces the image's size by 4, cifar keeps it", "", kResnet},
      {"model.embedding", at<in, &M::embedding>(), whole(1, 65536), "size of a token's vector", "", kLstm,
       "embedding_size"},
      {"model.hidden_size", at<in, &M::hidden_size>(), whole(1, 65536), "size of the hidden state", "", kLstm},
      {"model.layers", at<in, &M::layers>(), whole(1, 64), "number of stacked layers", "", kLstm, "num_layers"},
      {"model.bidirectional", at<in, &M::bidirectional>(), flag(), "read the window in both directions", "", kLstm},
      {"model.file", at<in, &M::file>(), path(),
       "the model: a .pt2 of torch.export, a .pt of TorchScript, or a shared object of your C++ code",
       "none; your own model needs it", kOwn, "path program"},
      {"model.inputs", at<in, &M::inputs>(), list(text(), 1, 1000),
       "the source of each input of the program, as name=source: input, target, the name of a column, or columns "
       "first:last",
       "input, then target", kGraph},
      {"model.options", at<in, &M::options>(), list(text(), 1, 1000),
       "options for the code of the library, as name=value", "none", kLibrary, "args kwargs config"},
      {"model.freeze",
       at<in, &M::freeze>(),
       list(text(), 1, 10000),
       "names of parameters that training does not change; * matches any characters",
       "none",
       {},
       "frozen"},
      {"model.reinit",
       at<in, &M::reinit>(),
       list(text(), 1, 10000),
       "names of parameters that are initialised again, whatever the file holds; * matches any characters",
       "none",
       {},
       "reinitialize reinitialise reset"},
  };
}

std::vector<Option> weight_options() {
  using W = WeightSource;
  constexpr auto in = &Job::model;
  constexpr auto from = &ModelOptions::init_from;
  return {
      {"model.init_from.path",
       at<in, from, &W::path>(),
       path(),
       "a checkpoint, a run directory, a .safetensors file, or a registered model: NAME, NAME@champion or NAME/3",
       "the model's own initialisation",
       {},
       "file weights pretrained",
       true},
      {"model.init_from.map", at<in, from, &W::map>(), list(text(), 1, 10000),
       "renames parameters, as file=model: \"encoder.*=backbone.*\" keeps what * matches; \"old.*=\" ignores those "
       "parameters; the last entry that matches applies",
       "no renames", kWeights, "mapping rename key_mapping"},
      {"model.init_from.strict", at<in, from, &W::strict>(), flag(),
       "whether the file must hold every parameter and nothing else; false: load what matches", "", kWeights},
  };
}

}  // namespace

std::vector<Option> model_options() {
  std::vector<Option> table = architecture_options();
  for (Option& option : weight_options()) table.push_back(std::move(option));
  return table;
}

std::vector<Option> loss_options() {
  return {
      {"loss.name",
       at<&Job::loss, &LossOptions::name>(),
       choice({"auto", "cross_entropy", "mse", "l1", "hinge", "bce", "program", "library"}),
       "the function to minimise; program: the model's first output is the loss; library: your own function",
       "",
       {},
       "type kind",
       true},
      {"loss.label_smoothing", at<&Job::loss, &LossOptions::label_smoothing>(), number(kFraction),
       "fraction of the target that is spread over all classes", "", kClasses},
      {"loss.balanced", at<&Job::loss, &LossOptions::balanced>(), flag(),
       "every class counts alike, however many samples it has: each is weighted by samples / (classes x its samples)",
       "", kClasses, "class_weight balanced"},
      {"loss.focal_gamma", at<&Job::loss, &LossOptions::focal_gamma>(), number({0, 10}),
       "the focal loss: a sample whose class has probability p counts (1 - p) ^ gamma; usual: 2", "", kClasses,
       "focal gamma"},
      {"loss.class_weights", at<&Job::loss, &LossOptions::class_weights>(), list(number(kFromZero), 1, 30000),
       "weight of each class, in the order of the classes", "all 1", kClasses, "weights weight"},
      {"loss.reduction", at<&Job::loss, &LossOptions::reduction>(), choice({"mean", "sum"}),
       "how the program combines its loss terms: mean or sum", "", kProgramLoss},
      {"loss.over", at<&Job::loss, &LossOptions::over>(), choice({"samples", "targets"}),
       "the terms of the mean or sum: samples, or targets except loss.ignore_index", "", kProgramLoss},
      {"loss.ignore_index", at<&Job::loss, &LossOptions::ignore_index>(), whole(-1e9, 1e9),
       "the target value that is ignored", "", kProgramLoss},
      {"loss.library", at<&Job::loss, &LossOptions::library>(), path(), "the shared object that provides the loss",
       "model.file", kLibraryLoss},
  };
}

}  // namespace sinew::spec
