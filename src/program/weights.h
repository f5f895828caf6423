// Inside the room: where tensors lie in the archive, and that they do lie there.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "program/archive.h"
#include "program/json.h"
#include "program/program.h"

namespace sinew::program {

// A config of weights or constants: `folder` is where its files are, "net/data/weights/".
std::map<std::string, Stored> read_stored(const Document& document, const Archive& archive, const std::string& folder);

// Every weight and constant that the signature names is there, and is what the graph says. Throws Error.
void check_stored(const Program& program);

// Bytes of the tensor in C order. Only of a Stored that read_stored made: nothing overflows.
uint64_t dense_bytes(const Stored& stored);
// The first byte of its member that the tensor reads, and the end of the last; 0, 0 for an empty one.
std::pair<uint64_t, uint64_t> extent(const Stored& stored);
bool is_dense(const Stored& stored);  // in C order, nothing between

// Calls visit(place in the dense array, place in the member), both in elements, for every element in C order.
template <typename Visit>
void for_each_element(const Stored& stored, Visit visit) {
  const size_t rank = stored.sizes.size();
  const int64_t count = element_count(stored.sizes);
  Shape index(rank, 0);
  int64_t place = stored.offset;
  for (int64_t i = 0; i < count; ++i) {
    visit(i, place);
    for (size_t d = rank; d-- > 0;) {
      if (++index[d] < stored.sizes[d]) {
        place += stored.strides[d];
        break;
      }
      place -= stored.strides[d] * (stored.sizes[d] - 1);  // as read_stored has reckoned it
      index[d] = 0;
    }
  }
}

}  // namespace sinew::program
