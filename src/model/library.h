// Inside model/: a shared object of the user's own, opened.
#pragma once

#include <sinew/library.h>

#include <memory>
#include <string>
#include <vector>

namespace sinew::model {

// One opened library. It stays open until the process ends: models, losses and torch's own tables may point into it.
struct OpenLibrary {
  library::Library offers;
  std::string path;
  std::string digest;  // of the file
};

// Opens the file once a process, whatever it is called with. Throws Error, before any of its code runs, for what is no
// shared object and for what was built for another interface, Sinew, libtorch, string ABI or machine.
const OpenLibrary& open_library(const std::string& path);

// Why a library with this stamp can not be opened, by line; empty: it can.
std::vector<std::string> why_not_open(const std::map<std::string, std::string>& stamp);

library::Options options_of(const std::vector<std::string>& items);  // "width=64"

}  // namespace sinew::model
