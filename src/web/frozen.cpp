#include "web/frozen.h"

#include <algorithm>
#include <map>

#include "web/artifacts.h"

namespace sinew::web {
namespace {

// Returns nullopt if the URI is not on this server. The URI of another server has "//" after its scheme, so it is not a
// valid path.
std::optional<ArtifactRef> artifact_ref_of(std::string uri) {
  constexpr std::string_view kArtifacts = "mlflow-artifacts:/", kRuns = "runs:/";
  while (uri.ends_with('/')) uri.pop_back();
  try {
    if (uri.starts_with(kArtifacts)) return parse_artifact_ref(uri.substr(kArtifacts.size()));
    if (!uri.starts_with(kRuns)) return std::nullopt;
    const std::string rest = uri.substr(kRuns.size());
    const size_t slash = std::min(rest.find('/'), rest.size());
    ArtifactRef ref{{store::Kind::kRun, rest.substr(0, slash), 0}, slash < rest.size() ? rest.substr(slash + 1) : ""};
    check_path(ref.path, true);
    return ref;
  } catch (const Refused&) {
    return std::nullopt;
  }
}

}  // namespace

FrozenFiles freeze_files(Context& context, const std::string& uri) {
  auto pin = context.artifacts.pin();
  FrozenFiles frozen{{}, std::move(pin)};
  const auto ref = artifact_ref_of(uri);
  if (!ref) return frozen;
  std::map<std::string, registry::BlobInfo> files;
  for (const auto& [path, file] : run_directory_files(context, ref->subject, ref->path)) {
    files[path] = frozen.pin.put_file(file);
  }
  for (const store::Attachment& file : context.store.attachments(ref->subject, ref->path)) {
    const std::string path = ref->path.empty() ? file.path : file.path.substr(ref->path.size() + 1);
    if (files.contains(path)) continue;
    const auto kept = frozen.pin.keep(file.digest);
    if (!kept) {
      throw Refused(kResourceConflict, "the file '" + file.path + "' was removed just now", "try again");
    }
    files[path] = *kept;
  }
  for (const auto& [path, stored] : files) frozen.files.push_back({path, stored.digest, stored.bytes});
  return frozen;
}

}  // namespace sinew::web
