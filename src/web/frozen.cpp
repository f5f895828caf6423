#include "web/frozen.h"

#include <algorithm>
#include <map>

#include "web/artifacts.h"

namespace sinew::web {
namespace {

// nullopt: it is no place of this server.
std::optional<Spot> spot_at(std::string place) {
  constexpr std::string_view kPlaces = "mlflow-artifacts:/", kRuns = "runs:/";
  while (place.ends_with('/')) place.pop_back();
  try {
    if (place.starts_with(kPlaces)) return spot_of(place.substr(kPlaces.size()));  // of another server: "//"
    if (!place.starts_with(kRuns)) return std::nullopt;
    const std::string rest = place.substr(kRuns.size());
    const size_t slash = std::min(rest.find('/'), rest.size());
    Spot spot{{store::Kind::kRun, rest.substr(0, slash), 0}, slash < rest.size() ? rest.substr(slash + 1) : ""};
    judge_path(spot.path, true);
    return spot;
  } catch (const Refused&) {
    return std::nullopt;
  }
}

}  // namespace

Frozen freeze(Context& context, const std::string& place) {
  Frozen frozen{{}, context.artifacts.pin()};
  const auto spot = spot_at(place);
  if (!spot) return frozen;
  std::map<std::string, registry::BlobInfo> files;
  for (const auto& [path, file] : own_files_below(context, spot->subject, spot->path)) {
    files[path] = frozen.pin.put_file(file);
  }
  for (const store::Attachment& file : context.store.attachments(spot->subject, spot->path)) {
    const std::string path = spot->path.empty() ? file.path : file.path.substr(spot->path.size() + 1);
    if (files.contains(path)) continue;
    const auto kept = frozen.pin.keep(file.digest);
    if (!kept) {
      throw Refused(409, "RESOURCE_CONFLICT", "the file '" + file.path + "' was taken away just now", "try again");
    }
    files[path] = *kept;
  }
  for (const auto& [path, stored] : files) frozen.files.push_back({path, stored.digest, stored.bytes});
  return frozen;
}

}  // namespace sinew::web
