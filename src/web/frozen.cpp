#include "web/frozen.h"

#include <algorithm>
#include <map>

#include "base/cost_limit.h"
#include "base/lower_case.h"
#include "web/artifacts.h"
#include "web/mlflow.h"
#include "web/upload.h"

namespace sinew::web {
namespace {

// Returns nullopt if the URI is not on this server. The URI of another server has "//" after its scheme, and what
// follows is no valid path here.
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

// Returns the scheme in lower case, or "" if the text does not begin with a scheme: then it is a path.
std::string scheme_of(const std::string& uri) {
  const size_t colon = uri.find(':');
  if (colon == std::string::npos || colon == 0 || uri.find('/') < colon) return "";
  return lower_case(uri.substr(0, colon));
}

}  // namespace

bool is_on_this_server(const std::string& uri) {
  const std::string scheme = scheme_of(uri);
  const bool own = scheme == "runs" || scheme == "models" || scheme == "mlflow-artifacts";
  return uri.empty() || (own && uri.find("://") == std::string::npos);  // "runs://host/..." names another server
}

bool is_allowed_elsewhere(const Context& context, const std::string& uri) {
  return context.options.source_schemes.contains(scheme_of(uri));
}

std::string allowed_elsewhere(const Context& context) {
  std::string text;
  for (const std::string& scheme : context.options.source_schemes) text += (text.empty() ? "" : ", ") + scheme + "://";
  return text;
}

void check_source(const Context& context, const std::string& uri) {
  if (is_on_this_server(uri) || is_allowed_elsewhere(context, uri)) return;
  throw Refused(kSourceRefused,
                "Invalid model version source: '" + uri + "' is at no place from which versions may come",
                "use one of runs:/, models:/, mlflow-artifacts:/, " + allowed_elsewhere(context) +
                    "; upload other files to a run first");
}

bool is_pending(const store::Record& version) {
  return body_of(version).value(kPending, false);
}

void check_has_files(const store::Record& version) {
  if (!is_pending(version)) return;
  throw Refused(
      kNoFiles,
      "version " + std::to_string(version.subject.number) + " of model '" + version.subject.id + "' has no files yet",
      "upload them to its source, then POST /api/v1/models/" + version.subject.id + "/versions/" +
          std::to_string(version.subject.number) + "/freeze");
}

FrozenFiles freeze_files(Context& context, const std::string& uri) {
  auto pin = context.artifacts.pin();
  FrozenFiles frozen{{}, std::move(pin)};
  const auto ref = artifact_ref_of(uri);
  if (!ref) return frozen;
  std::map<std::string, registry::BlobInfo> files;
  each_run_directory_file(context, ref->subject, ref->path, [&](const std::string& path, const BeneathFile& file) {
    CostLimit::check_current();
    // What is new in the artifacts counts as an upload. Otherwise a token with a limit could fill the disk with
    // versions of the runs of others.
    files[path] = frozen.pin.put_file(file.path(), [&, copied = int64_t{0}](int64_t bytes) mutable {
      copied += bytes;
      count_upload(context, copied, bytes, ref->path.empty() ? path : ref->path + "/" + path);
    });
  });
  for (const store::Attachment& file : context.store.attachments(ref->subject, ref->path)) {
    const std::string path = ref->path.empty() ? file.path : file.path.substr(ref->path.size() + 1);
    if (files.contains(path)) continue;
    const auto kept = frozen.pin.keep(file.digest);
    if (!kept) {
      throw Refused(kResourceConflict, "the file '" + file.path + "' was removed just now", "try again");
    }
    context.artifacts.check(file.digest);
    files[path] = *kept;
  }
  for (const auto& [path, stored] : files) frozen.files.push_back({path, stored.digest, stored.bytes});
  registry::check_model_files(context.artifacts, frozen.files, uri);
  return frozen;
}

}  // namespace sinew::web
