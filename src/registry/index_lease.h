// Inside registry/: holds the lease of the index, and writes to the store under it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/store.h"

namespace sinew::registry {

// Thrown if another process has taken the lease.
struct LeaseLost {
  std::string why;
};
// Thrown if a run cannot be read or the store refuses its changes. The pass reports it; the next pass tries again.
struct Problem {
  std::string what;
};

// Ensures that only one process at a time indexes a store. One thread may use it.
class IndexLease {
 public:
  IndexLease(store::Store& store, std::string holder);
  ~IndexLease();  // releases the lease
  IndexLease(const IndexLease&) = delete;
  IndexLease& operator=(const IndexLease&) = delete;

  bool renew();           // returns false if this process does not hold the lease
  std::string acquire();  // returns "" on success, or else who holds the lease or why it was refused
  void forget() { fence_ = 0; }

  // Writes the changes. Throws LeaseLost if another process holds the lease, and Problem if the store refuses them.
  void write(std::vector<store::Change> changes) { write_if_unchanged(std::move(changes), {}); }
  // Returns false if `unchanged` is given and its subject has changed, so that the store refused the changes.
  bool write_if_unchanged(std::vector<store::Change> changes, std::optional<store::Batch::Unchanged> unchanged);

 private:
  store::Store& store_;
  std::string holder_;
  int64_t fence_ = 0;
};

}  // namespace sinew::registry
