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
       choice({"linear", "svm", "mlp", "tabular", "cnn", "resnet18", "resnet34", "resnet50", "lstm", "program",
               "torchscript", "library"}),
       "the architecture; program, torchscript, library: your own model in model.file",
       "",
       {},
       "type arch architecture kind",
       true},
      {"model.hidden", at<in, &M::hidden>(), list(whole(1, 1e6), 1, 64), "sizes of the hidden layers", "", kMlp,
       "hidden_layers hidden_sizes units"},
      {"model.channels", at<in, &M::channels>(), list(whole(1, 65536), 1, 16), "channels of the convolution blocks", "",
       kCnn, "filters"},
      {"model.activation", at<in, &M::activation>(), choice({"auto", "relu", "gelu", "tanh", "silu", "selu", "mish"}),
       "the activation function between layers; auto: relu, for tabular selu to predict classes and mish to predict "
       "numbers",
       "", kActivation},
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

std::vector<Option> tabular_options() {
  using T = TabularOptions;
  constexpr auto in = &Job::model;
  constexpr auto of = &ModelOptions::tabular;
  return {
      {"model.input_scaling", at<in, of, &T::input_scaling>(), choice({"robust", "none"}),
       "robust: scale each input by its quartiles in train, and clip it smoothly to -3 to 3", "", kTabular, "scaler"},
      {"model.numeric_embedding", at<in, of, &T::numeric_embedding>(), choice({"pbld", "none"}),
       "pbld: each number becomes several, by cosines of learned frequencies and phases, a linear layer, and itself",
       "", kTabular, "num_emb_type"},
      {"model.numeric_embedding_size", at<in, of, &T::numeric_embedding_size>(), whole(2, 1024),
       "how many numbers a number becomes, itself included", "", kTabular, "plr_hidden_2"},
      {"model.frequencies", at<in, of, &T::frequencies>(), whole(1, 4096), "cosines of each number", "", kTabular,
       "plr_hidden_1"},
      {"model.frequency_scale", at<in, of, &T::frequency_scale>(), number(kPositive),
       "standard deviation of the initial frequencies", "", kTabular, "plr_sigma sigma"},
      {"model.max_one_hot", at<in, of, &T::max_one_hot>(), whole(0, 1e6),
       "a category with more inputs than this, those for missing and other values included, has an embedding", "",
       kTabular, "max_one_hot_cat_size"},
      {"model.category_embedding", at<in, of, &T::category_embedding>(), whole(1, 65536),
       "size of the vector of a category's value", "", kTabular, "cat_embedding_size"},
      {"model.scaling_layer", at<in, of, &T::scaling_layer>(), flag(),
       "multiply each input of the first layer by a learned factor", "", kTabular, "add_front_scale"},
      {"model.parametric_activation", at<in, of, &T::parametric_activation>(), flag(),
       "learn how strongly the activation function bends each unit: x + strength (f(x) - x)", "", kTabular,
       "use_parametric_act"},
      {"model.parametrization", at<in, of, &T::parametrization>(), choice({"ntk", "standard"}),
       "ntk: the factor 1 / sqrt(inputs) of a linear layer is not part of its weights", "", kTabular, "weight_param"},
      {"model.initialization", at<in, of, &T::initialization>(), choice({"data", "random"}),
       "data: scale the initial weights, and place the biases, by the activations of training samples", "", kTabular,
       "init"},
      {"model.dropout_schedule", at<in, of, &T::dropout_schedule>(), choice({"constant", "flat_cos"}),
       "flat_cos: the dropout is constant in the first half of the training, and then falls to 0 as half a cosine", "",
       kTabular, "p_drop_sched"},
      {"model.clip_predictions", at<in, of, &T::clip_predictions>(), flag(),
       "clip predicted numbers to the range of the training targets", "", kTabular, "clamp_output"},
      {"model.scaling_lr_factor", at<in, of, &T::scaling_lr_factor>(), number(kFromZero),
       "factor of the learning rate of the scaling layer", "", kTabular, "scale_lr_factor"},
      {"model.numeric_lr_factor", at<in, of, &T::numeric_lr_factor>(), number(kFromZero),
       "factor of the learning rate of the numeric embedding", "", kTabular, "plr_lr_factor"},
      {"model.activation_lr_factor", at<in, of, &T::activation_lr_factor>(), number(kFromZero),
       "factor of the learning rate of the activations' strengths", "", kTabular, "act_lr_factor"},
      {"model.bias_lr_factor", at<in, of, &T::bias_lr_factor>(), number(kFromZero),
       "factor of the learning rate of the biases", "", kTabular},
      {"model.bias_decay_factor", at<in, of, &T::bias_decay_factor>(), number(kFromZero),
       "factor of the weight decay of the biases", "", kTabular, "bias_wd_factor"},
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
  for (Option& option : tabular_options()) table.push_back(std::move(option));
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
