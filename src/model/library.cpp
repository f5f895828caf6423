#include "model/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>

#include "base/check.h"
#include "base/disk.h"
#include "base/error.h"
#include "base/hash.h"
#include "program/program.h"

namespace sinew::model {
namespace {

// SINEW_LIBRARY_STAMP lists the versions that a library was built for. The entries below must be equal in the library
// and in this program, because class layouts and symbol names may depend on them.
constexpr const char* kMustAgree[] = {"interface", "sinew", "torch", "string_abi", "platform"};

std::map<std::string, std::string> own_stamp() {
  std::map<std::string, std::string> stamp;
  std::istringstream lines(SINEW_LIBRARY_STAMP);
  for (std::string line; std::getline(lines, line);)
    stamp[line.substr(0, line.find(' '))] = line.substr(line.find(' ') + 1);
  return stamp;
}

void check_stamp(const std::string& path) {
  const std::vector<std::string> reasons = why_not_open(program::read_library_info(path));
  if (reasons.empty()) return;
  std::string text = path + " cannot be opened:";
  for (const std::string& reason : reasons) text += "\n  " + reason;
  throw Error("LIBRARY_INCOMPATIBLE", text,
              "rebuild it with the include/ of this Sinew and with its libtorch (" TORCH_VERSION ")");
}

library::Library load(const std::string& path) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    throw Error("LIBRARY_UNLOADABLE", std::string("cannot open a library: ") + ::dlerror(),
                "look for missing libraries with: ldd " + path);
  using Open = void (*)(library::Library&);
  const auto open = reinterpret_cast<Open>(::dlsym(handle, "sinew_library_open"));
  if (open == nullptr)
    throw Error("LIBRARY_OFFERS_NONE", path + " has no SINEW_LIBRARY",
                "end the file with SINEW_LIBRARY(library) { ... }");
  library::Library offers;
  open(offers);
  return offers;
}

}  // namespace

std::vector<std::string> why_not_open(const std::map<std::string, std::string>& stamp) {
  if (stamp.empty()) return {"it has no SINEW_LIBRARY (sinew/library.h), so nothing says what it was built for"};
  std::vector<std::string> reasons;
  for (const auto& [name, own] : own_stamp()) {
    const bool must = std::ranges::find(kMustAgree, name) != std::end(kMustAgree);
    const auto found = stamp.find(name);
    if (must && (found == stamp.end() || found->second != own))
      reasons.push_back("it was built for " + name + " " + (found == stamp.end() ? "unknown" : found->second) +
                        ", this is " + name + " " + own);
  }
  return reasons;
}

const OpenLibrary& open_library(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, OpenLibrary> opened;  // dlopen also returns the same object for a second open
  const std::lock_guard lock(mutex);
  if (!system_disk().exists(path))
    throw Error("MODEL_FILE_MISSING", "there is no file " + path, "build the library, or check model.file");
  // dlopen searches other directories if the path has no slash
  const std::string whole = std::filesystem::absolute(path).string();
  if (const auto found = opened.find(whole); found != opened.end()) return found->second;
  check_stamp(whole);
  std::vector<std::byte> bytes = system_disk().read(whole);
  const std::string digest = to_hex(digest_of(std::span(bytes)));
  OpenLibrary library{load(whole), path, digest, std::move(bytes)};
  return opened.emplace(whole, std::move(library)).first->second;
}

library::Options options_of(const std::vector<std::string>& items) {
  library::Options options;
  for (const std::string& item : items) {
    const size_t at = item.find('=');
    SINEW_CHECK(at != std::string::npos, item);  // spec/ has checked it
    options[item.substr(0, at)] = item.substr(at + 1);
  }
  return options;
}

}  // namespace sinew::model
