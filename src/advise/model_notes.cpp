// What is known about the built-in models before they are trained: how their work grows, and what other devices do not
// take well.
#include <algorithm>
#include <map>

#include "advise/advise.h"
#include "base/short_number.h"

namespace sinew::advise {
namespace {

struct ModelNotes {
  const char* work;  // of an epoch; n, d, k, P and T are explained in what follows it
  std::vector<std::string> deployment;
};

constexpr const char* kShapes =
    "TPU: XLA compiles a program for each shape, so a shorter last batch compiles again; set trainer.drop_last";
constexpr const char* kBlocksOf128 =
    "TPU: products are padded to blocks of 8 x 128, so layers narrower than 128 leave most of the unit idle";
constexpr const char* kChannels =
    "TPU: channels are padded to 128, so convolutions with fewer channels leave most of the unit idle";
constexpr const char* kFloat32 =
    "TPU: products of float32 are made of several bfloat16 ones, slower and with other last digits";
constexpr const char* kEasy =
    "small devices: products, convolutions and ReLU have 8-bit forms in ONNX Runtime and TFLite; gelu, silu and mish "
    "may stay in float";

const std::map<std::string, ModelNotes>& all_notes() {
  static const std::map<std::string, ModelNotes> notes = {
      {"linear", {"O(n d k)", {kBlocksOf128, kShapes, kEasy}}},
      {"svm",
       {"O(n d k); it is a linear one, trained by gradients, so nothing grows with n^2",
        {kBlocksOf128, kShapes, kEasy}}},
      {"mlp", {"O(n P)", {kBlocksOf128, kFloat32, kShapes, kEasy}}},
      {"tabular",
       {"O(n P); P grows with the number of columns and categories",
        {"TPU: embeddings of categories read single rows, which use no matrix unit", kBlocksOf128, kFloat32, kShapes,
         "small devices: the export prepares categories with LabelEncoder of ai.onnx.ml, which a reduced build of ONNX "
         "Runtime must include and TFLite does not have; there the program must prepare the columns"}}},
      {"cnn", {"O(n H W P) with images of H x W, less behind each halving", {kChannels, kFloat32, kShapes, kEasy}}},
      {"resnet", {"O(n H W P) with images of H x W, less behind each stride", {kChannels, kFloat32, kShapes, kEasy}}},
      {"lstm",
       {"O(n T P), and the T positions come one after another: more cores help across samples only",
        {"TPU: an LSTM is a loop of T small products, each of which waits for the one before; most of the unit is idle",
         kFloat32, kShapes,
         "small devices: LSTM is one operator in ONNX Runtime and can be quantised dynamically only; TFLite has a "
         "fused one for one direction, and a bidirectional LSTM becomes two"}}},
  };
  return notes;
}

const ModelNotes* notes_about(const std::string& model) {
  const auto found = all_notes().find(model.starts_with("resnet") ? "resnet" : model);
  return found == all_notes().end() ? nullptr : &found->second;
}

}  // namespace

std::string complexity(const PlannedJob& job) {
  const ModelNotes* notes = notes_about(job.model);
  if (notes == nullptr) return "";
  std::string text = std::string("an epoch takes ") + notes->work +
                     ": n = " + short_count(static_cast<double>(job.train_samples)) +
                     " samples, d = " + short_count(static_cast<double>(job.inputs)) +
                     " inputs, k = " + short_count(static_cast<double>(job.outputs)) +
                     " outputs, P = " + short_count(static_cast<double>(job.parameters)) + " parameters";
  if (job.model == "lstm") text += ", T = " + short_count(static_cast<double>(job.length));
  return text;
}

std::vector<std::string> deployment_notes(const std::string& model) {
  if (const ModelNotes* notes = notes_about(model)) return notes->deployment;
  return {"TPU and small devices: it depends on the operators of the model's file; sinew inspect lists them"};
}

}  // namespace sinew::advise
