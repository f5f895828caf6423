// Inside model/: a shared object of the user's own, opened.
#pragma once

#include <sinew/library.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "data/data.h"
#include "spec/spec.h"

namespace sinew::model {

// One opened library. It stays open until the process ends: models, losses and torch's own tables may point into it.
struct OpenLibrary {
  library::Library offers;
  std::string path;
  std::string digest;                 // of the file
  std::vector<std::byte> bytes = {};  // of the file: it may be built again while this one is trained
};

// Opens the file once a process, whatever it is called with. Throws Error, before any of its code runs, for what is no
// shared object and for what was built for another interface, Sinew, libtorch, string ABI or machine.
const OpenLibrary& open_library(const std::string& path);

// Why a library with this stamp can not be opened, by line; empty: it can.
std::vector<std::string> why_not_open(const std::map<std::string, std::string>& stamp);

// The data set of an opened library, for open_library_data and open_library_inputs. It points into `opened`.
std::unique_ptr<data::Dataset> data_of(const OpenLibrary& opened, const spec::Job& job);
std::unique_ptr<data::Dataset> inputs_of(const OpenLibrary& opened, const spec::Job& job, const data::DataInfo& train,
                                         const spec::DataSource& source, bool labelled);

library::Options options_of(const std::vector<std::string>& items);  // "width=64"

}  // namespace sinew::model
