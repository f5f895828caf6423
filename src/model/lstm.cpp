// Makes LSTM models. For tokens, the model predicts the next token at every position. For any other data, it reads a
// sample row by row (the rows of an image, the columns of a table) and computes its outputs from the last row.
#include "base/error.h"
#include "model/makers.h"
#include "model/module_model.h"

namespace sinew::model {
namespace {

struct LstmNet : torch::nn::Module {
  LstmNet(const spec::ModelOptions& options, const data::DataInfo& data, int64_t outputs)
      : tokens(data.task == data::Task::next_token), dropout(options.dropout) {
    int64_t inputs = options.embedding;
    if (tokens) {
      embedding = register_module("embedding", torch::nn::Embedding(data.classes, options.embedding));
    } else {
      inputs = row_size(data.input_shape);
    }
    lstm = register_module("lstm", torch::nn::LSTM(torch::nn::LSTMOptions(inputs, options.hidden_size)
                                                       .num_layers(options.layers)
                                                       .batch_first(true)
                                                       .dropout(options.layers > 1 ? options.dropout : 0.0)
                                                       .bidirectional(options.bidirectional)));
    output =
        register_module("output", torch::nn::Linear(options.hidden_size * (options.bidirectional ? 2 : 1), outputs));
  }

  // Returns the number of features of one time step: one row of an image over all channels, or one column of a table.
  static int64_t row_size(const Shape& shape) { return shape.size() == 3 ? shape[0] * shape[2] : 1; }

  torch::Tensor as_rows(const torch::Tensor& input) {
    if (input.dim() == 4) return input.transpose(1, 2).flatten(2);  // [batch, height, channels * width]
    return input.flatten(1).unsqueeze(2);                           // [batch, columns, 1]
  }

  torch::Tensor forward(const torch::Tensor& input) {
    const torch::Tensor rows = tokens ? embedding->forward(input) : as_rows(input);
    torch::Tensor x = std::get<0>(lstm->forward(rows));  // [batch, time, hidden]
    if (!tokens) x = x.select(1, -1);
    if (dropout > 0) x = torch::dropout(x, dropout, is_training());
    return output->forward(x);
  }

  bool tokens;
  double dropout;
  torch::nn::Embedding embedding{nullptr};
  torch::nn::LSTM lstm{nullptr};
  torch::nn::Linear output{nullptr};
};

}  // namespace

std::unique_ptr<Model> make_lstm(const spec::ModelOptions& options, const data::DataInfo& data, int64_t outputs) {
  if (options.bidirectional && data.task == data::Task::next_token) {
    throw Error("MODEL_DATA_MISMATCH", "a bidirectional LSTM would see the tokens that it must predict",
                "set model.bidirectional: false");
  }
  return as_model(std::make_shared<LstmNet>(options, data, outputs));
}

}  // namespace sinew::model
