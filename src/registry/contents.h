// Inside registry/: where contents lie in the artifacts' folder, and finding them (docs/formats/artifacts.md).
//
//   ab/<digest>             the bytes
//   ab/<digest>.recipe      instead: which contents, one after the other, make them
//   ab/<either>.leaving-... looked at by a collection, which will remove it or give it its name back
//   store                   the id of the store that says what is referred to
//   holds/<time>-...        digests, one a line, that somebody puts or keeps right now
//   incoming/<time>-...     bytes on their way in
#pragma once

#include <cerrno>
#include <expected>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/disk.h"
#include "checkpoint/checkpoint.h"
#include "registry/registry.h"

namespace sinew::registry {

inline constexpr std::string_view kRecipe = ".recipe", kLeaving = ".leaving-", kOwner = "/store";
inline constexpr int kMostLooks = 100;             // for a content whose name comes and goes
inline constexpr double kHoldSeconds = 24 * 3600;  // a hold or incoming file older than that was left by the dead

// What makes up a content that is not there as one file.
struct Recipe {
  int64_t bytes = 0;
  std::vector<Stored> parts;
  bool operator==(const Recipe&) const = default;
};
std::string to_text(const Recipe& recipe);
std::expected<Recipe, std::string> parse_recipe(std::string_view text);

// A file of a content, by its name in its folder.
struct ContentName {
  std::string digest;
  bool recipe = false, leaving = false;
};
std::optional<ContentName> parse_content_name(std::string_view name);

class Contents {
 public:
  Contents(std::string root, Disk& disk, Clock& clock) : root(std::move(root)), disk(disk), clock(clock) {}

  struct Found {
    std::string path;
    bool recipe = false, leaving = false;
  };
  std::optional<Found> find(const std::string& digest);  // under whatever name it stands
  Found get(const std::string& digest);                  // throws Error when it is not there
  Recipe recipe(const std::string& path);                // throws Error when it is damaged
  uint64_t size(const std::string& digest);              // of the content; throws Error likewise
  // `use` is called with what was found, again if a collection took the name or gave it back in between.
  template <typename Use>
  auto with(const std::string& digest, Use use) {
    for (int attempt = 1;; ++attempt) {
      const Found found = get(digest);
      try {
        return use(found);
      } catch (const DiskError& error) {
        if (error.system_code != ENOENT || attempt == kMostLooks) throw;
      }
    }
  }

  void make_folder(const std::string& digest);  // durably
  std::string folder(const std::string& digest) const { return root + "/" + digest.substr(0, 2); }
  std::string path(const std::string& digest) const { return folder(digest) + "/" + digest; }
  std::string unique_name();  // <seconds since 1970>-<host>-<random>-<process>-<n>; never given twice
  bool is_old(std::string_view unique_name) const;

  struct Entry {
    std::string path;
    ContentName name;
  };
  std::vector<Entry> list();
  std::set<std::string> held();  // digests of all holds that are not old

  const std::string root;
  Disk& disk;
  Clock& clock;

 private:
  std::optional<Found> find_named(const std::string& digest);
  std::mutex mutex_;
  std::set<std::string> made_;  // folders whose names are durable
};

// Where to cut a safetensors file of that index so that what versions share are whole pieces: ends of the pieces,
// the last one `file_bytes`. Big tensors singly, small neighbours together. Fewer than three: keep it whole.
std::vector<uint64_t> cuts_of(const checkpoint::SafetensorsIndex& index, uint64_t file_bytes);

}  // namespace sinew::registry
