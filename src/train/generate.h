// Chooses the next token from the outputs of a text model. Private to train/.
#pragma once

#include <cstdint>
#include <span>

#include "base/random.h"
#include "train/train.h"

namespace sinew::train {

// Draws a token with the probability softmax(outputs / temperature), among the `top_k` tokens with the highest outputs;
// temperature 0 chooses the highest, and top_k 0 allows all. Of equal outputs, the first token counts as the higher.
// Never chooses a token at or above `tokens`. Throws Error if an output is not a finite number.
int64_t choose_token(std::span<const float> outputs, int64_t tokens, const Generation& options, RandomStream& random);

}  // namespace sinew::train
