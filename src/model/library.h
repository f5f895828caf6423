// Private to model/: opens a shared object that the user wrote against include/sinew/library.h.
#pragma once

#include <sinew/library.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "data/data.h"
#include "spec/spec.h"

namespace sinew::model {

// One opened library. It stays open until the process ends, because models, losses and libtorch's own tables may point
// into it.
struct OpenLibrary {
  library::Library offers;
  std::string path;
  std::string digest;                 // digest of the file
  std::vector<std::byte> bytes = {};  // content of the file, because a user may build it again during training
};

// Opens the file. A second call with the same path returns the same library. Throws Error if the file is no shared
// object, or was built for another interface, Sinew, libtorch, string ABI or machine. No code of the file runs before
// that check.
const OpenLibrary& open_library(const std::string& path);

// Returns the reasons why a library cannot be opened, or an empty list if it can. `stamp` lists the versions that the
// library was built for, as program::read_library_info returns them.
std::vector<std::string> why_not_open(const std::map<std::string, std::string>& stamp);

// These functions open a data set of an opened library, for open_library_data and open_library_inputs. The data set
// keeps a reference to `opened`.
std::unique_ptr<data::Dataset> data_of(const OpenLibrary& opened, const spec::Job& job);
std::unique_ptr<data::Dataset> inputs_of(const OpenLibrary& opened, const spec::Job& job, const data::DataInfo& train,
                                         const spec::DataSource& source, bool labelled);

library::Options options_of(const std::vector<std::string>& items);  // "width=64"

}  // namespace sinew::model
