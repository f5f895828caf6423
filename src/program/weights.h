// Private to program/: finds the tensors in the archive, and checks that they lie inside their members.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "program/archive.h"
#include "program/json.h"
#include "program/program.h"

namespace sinew::program {

// Reads a config of weights or constants. `folder` holds their files: "net/data/weights/".
std::map<std::string, StoredTensor> read_stored_tensors(const Document& document, const Archive& archive,
                                                        const std::string& folder);

// Checks that every weight and constant of the signature exists, with the dtype and the shape that the graph expects.
// Also checks that as dense arrays they are, in all, not larger than a file of `file_bytes` can justify. If a check
// fails, throws Error.
void check_stored_tensors(const Program& program, uint64_t file_bytes);

// Returns the bytes of the tensor in C order. Takes only a StoredTensor from read_stored_tensors, whose sizes cannot
// overflow.
uint64_t dense_bytes(const StoredTensor& stored);
// Returns the bytes [first, last) of its member that the tensor covers, or {0, 0} for an empty tensor.
std::pair<uint64_t, uint64_t> extent(const StoredTensor& stored);
bool is_dense(const StoredTensor& stored);  // in C order without gaps

// Calls visit(index in the dense array, index in the member) for every element, in C order. Both indices count
// elements, not bytes.
template <typename Visit>
void for_each_element(const StoredTensor& stored, Visit visit) {
  const size_t rank = stored.sizes.size();
  const int64_t count = element_count(stored.sizes);
  Shape index(rank, 0);
  int64_t at = stored.offset;
  for (int64_t i = 0; i < count; ++i) {
    visit(i, at);
    for (size_t d = rank; d-- > 0;) {
      if (++index[d] < stored.sizes[d]) {
        at += stored.strides[d];
        break;
      }
      at -= stored.strides[d] * (stored.sizes[d] - 1);  // read_stored_tensors has checked this product
      index[d] = 0;
    }
  }
}

}  // namespace sinew::program
