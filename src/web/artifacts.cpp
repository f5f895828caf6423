#include "web/artifacts.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "base/cost_limit.h"
#include "web/args.h"
#include "web/frozen.h"
#include "web/mlflow.h"
#include "web/upload.h"

namespace sinew::web {
namespace {

namespace fs = std::filesystem;
using store::Kind;

constexpr int kDeepestFolder = 64;     // how deep folders may be nested if all files of a run's directory are copied
constexpr int64_t kEntryBytes = 1000;  // roughly what an entry of a list takes in memory and in the response

// Returns whether a name in the path begins with '.'. Such names include ".." and those of files that are still being
// written.
bool is_hidden(const fs::path& relative) {
  return std::any_of(relative.begin(), relative.end(),
                     [](const fs::path& name) { return name != "." && name.string().starts_with("."); });
}

// Opens a file or folder in the directory. Returns nullopt if it does not exist, is hidden, contains the run's secret,
// or is reached through a symbolic link.
std::optional<BeneathFile> open_in(const BeneathFile& directory, const std::string& path) {
  if (is_hidden(path) || fs::path(path).filename() == "coordinator.json") return std::nullopt;
  auto file = open_beneath(directory, path);
  return file ? std::optional(*std::move(file)) : std::nullopt;
}

void list_directory(const BeneathFile& directory, const std::string& path, std::map<std::string, FileEntry>& found) {
  const auto folder = open_in(directory, path);
  std::error_code error;
  if (!folder || !folder->is_directory()) return;
  for (const auto& entry : fs::directory_iterator(folder->path(), error)) {
    const std::string name = entry.path().filename().string();
    CostLimit::hold_current(kEntryBytes);
    CostLimit::check_current();
    if (name.starts_with(".") || name == "coordinator.json" || entry.is_symlink(error)) continue;
    if (entry.is_directory(error)) {
      found.try_emplace(name, FileEntry{name, true, 0});
    } else if (entry.is_regular_file(error)) {
      found.try_emplace(name, FileEntry{name, false, static_cast<int64_t>(entry.file_size(error))});
    }
  }
}

// Opens a file in the run's directory. Such a file hides an uploaded file with the same path.
std::optional<BeneathFile> run_directory_file(Context& context, const store::Subject& subject,
                                              const std::string& path) {
  const auto directory = open_run_directory(context, subject);
  if (!directory) return std::nullopt;
  auto file = open_in(*directory, path);
  return file && file->is_regular() ? std::move(file) : std::nullopt;
}

// Refuses a file that does not match the list of digests in its folder, if the folder (of a model or a checkpoint) has
// such a list.
void check_run_file(Context& context, const store::Subject& subject, const std::string& path) {
  const auto directory = open_run_directory(context, subject);
  const size_t slash = path.rfind('/');
  if (!directory || slash == std::string::npos) return;  // only folders have lists
  const std::string folder = path.substr(0, slash);
  if (const auto opened = open_in(*directory, folder))
    context.run_files.check(opened->path(), path.substr(slash + 1), folder);
}

void each_file(const BeneathFile& directory, const std::string& path, const std::string& name_before, int depth,
               const TakeFile& take) {
  if (depth > kDeepestFolder) refuse_invalid("the run's folders are nested too deeply", "name a folder inside them");
  std::map<std::string, FileEntry> entries;
  list_directory(directory, path, entries);
  for (const auto& [name, entry] : entries) {
    const std::string at = path.empty() ? name : path + "/" + name;
    if (entry.directory) {
      each_file(directory, at, name_before + name + "/", depth + 1, take);
    } else if (const auto file = open_in(directory, at); file && file->is_regular()) {
      take(name_before + name, *file);
    }
  }
}

// Refuses a path that would make one name a file and a folder: a listing would hide one of the two, and no client could
// download both.
void check_no_file_is_a_folder(Context& context, const store::Subject& subject, const std::string& path) {
  const auto taken = [&](const std::string& name, const char* what, const char* hint) {
    throw Refused(
        kResourceConflict,
        std::string(store::to_string(subject.kind)) + " '" + subject.id + "' already has a " + what + " '" + name + "'",
        hint);
  };
  for (size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string above = path.substr(0, slash);
    if (context.store.attachment(subject, above) || run_directory_file(context, subject, above)) {
      taken(above, "file", "upload into a folder of another name, or remove the file first");
    }
  }
  const auto directory = open_run_directory(context, subject);
  const auto own = directory ? open_in(*directory, path) : std::nullopt;
  if ((own && own->is_directory()) || !context.store.attachments(subject, path).empty()) {
    taken(path, "folder", "upload the file under another name, or remove the folder first");
  }
}

// Returns the content type of a file. HTML and scripts are plain text, so that a browser shows them and never executes
// them.
std::string type_of(const std::string& path) {
  const std::string extension = fs::path(path).extension().string();
  if (extension == ".json") return "application/json";
  if (extension == ".png") return "image/png";
  if (extension == ".jpg" || extension == ".jpeg") return "image/jpeg";
  for (const char* text : {".txt", ".log", ".yaml", ".yml", ".csv", ".jsonl", ".md", ".html", ".py"}) {
    if (extension == text) return "text/plain; charset=utf-8";
  }
  return "application/octet-stream";
}

}  // namespace

void check_path(const std::string& path, bool allow_root) {
  constexpr size_t kLongest = 400;
  if (path.empty() && allow_root) return;
  const auto bad = [&](const char* why) {
    refuse_invalid("Invalid path: '" + path + "' " + why,
                   "separate names with single slashes, and do not use '.' or '..'");
  };
  if (path.empty() || path.size() > kLongest) bad("is empty or longer than 400 bytes");
  for (const char c : path) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\') bad("contains a control character or '\\'");
  }
  for (size_t at = 0; at <= path.size();) {
    const size_t slash = std::min(path.find('/', at), path.size());
    const std::string_view name = std::string_view(path).substr(at, slash - at);
    if (name.empty() || name == "." || name == "..") bad("contains an empty name, '.' or '..'");
    at = slash + 1;
  }
}

// Opens the run's directory, if the run has one and it exists. The record may name any path. So this opens only a
// directory below the root to which no symbolic link leads. It also refuses hidden directories, one of which holds the
// store and the tokens.
std::optional<BeneathFile> open_run_directory(Context& context, const store::Subject& subject) {
  if (subject.kind != Kind::kRun) return std::nullopt;
  const auto run = context.store.find(subject);
  if (!run) return std::nullopt;
  const auto tag = run->tags.find(registry::kTagDirectory);
  if (tag == run->tags.end()) return std::nullopt;
  const fs::path below = fs::path(tag->second).lexically_normal();
  if (below.empty() || below == "." || below.is_absolute() || is_hidden(tag->second)) return std::nullopt;
  const auto root = open_directory(context.options.runs_root);
  if (!root) return std::nullopt;
  auto directory = open_beneath(*root, below.string());
  return directory && directory->is_directory() ? std::optional(*std::move(directory)) : std::nullopt;
}

std::vector<FileEntry> list_files(Context& context, const store::Subject& subject, const std::string& path) {
  check_path(path, true);
  std::map<std::string, FileEntry> found;
  if (const auto directory = open_run_directory(context, subject)) list_directory(*directory, path, found);
  for (const store::Attachment& file : context.store.attachments(subject, path)) {
    const std::string rest = path.empty() ? file.path : file.path.substr(path.size() + 1);
    const size_t slash = rest.find('/');
    const std::string name = rest.substr(0, slash);
    const bool is_file = slash == std::string::npos;
    if (found.try_emplace(name, FileEntry{name, !is_file, is_file ? file.bytes : 0}).second)
      CostLimit::hold_current(kEntryBytes);
  }
  std::vector<FileEntry> list;
  for (auto& [name, entry] : found) list.push_back(std::move(entry));
  return list;
}

void each_run_directory_file(Context& context, const store::Subject& subject, const std::string& path,
                             const TakeFile& take) {
  if (const auto directory = open_run_directory(context, subject)) each_file(*directory, path, "", 0, take);
}

Json file_json(const FileEntry& entry, const std::string& folder) {
  Json json{{"path", folder.empty() ? entry.name : folder + "/" + entry.name}, {"is_dir", entry.directory}};
  if (!entry.directory) json["file_size"] = entry.bytes;
  return json;
}

http::Response download(Context& context, const http::Request& request, const store::Subject& subject,
                        const std::string& path) {
  check_path(path, false);
  if (const auto own = run_directory_file(context, subject, path)) {
    http::Response response = http::file_response(request, own->path(), type_of(path), "");
    if (response.source) check_run_file(context, subject, path);
    return response;
  }
  const auto file = context.store.attachment(subject, path);
  if (!file) {
    refuse_missing(std::string(store::to_string(subject.kind)) + " '" + subject.id + "' has no file '" + path + "'");
  }
  // If the blob is damaged, check() refuses it before the first byte is sent; later the status could not be changed.
  http::Response response = http::content_response(
      request, static_cast<uint64_t>(file->bytes),
      [blob = context.artifacts.open(file->digest)](uint64_t offset, std::span<std::byte> out) {
        return blob.read_at(offset, out);
      },
      type_of(path), file->digest);
  if (response.source) context.artifacts.check(file->digest);
  return response;
}

store::Attachment attach_upload(Context& context, const http::Request& request, const store::Subject& subject,
                                const std::string& path) {
  check_path(path, false);
  auto* upload = dynamic_cast<Upload*>(request.sink.get());
  if (upload == nullptr) refuse_invalid("the request has no body", "send the file as the body");
  context.require(subject.kind, subject.id, subject.number);
  if (run_directory_file(context, subject, path)) {
    throw Refused(kResourceConflict, "the run's directory already has a file '" + path + "'",
                  "upload the file under another name");
  }
  check_no_file_is_a_folder(context, subject, path);
  const registry::BlobInfo stored = upload->finish();
  store::Batch batch{{store::Attach{subject, path, stored.digest, stored.bytes}}};
  if (subject.kind != Kind::kModel) batch.active = {subject};  // the record of a logged model is always hidden
  store_upload_count(context, batch);
  context.write(std::move(batch));
  if (subject.kind == Kind::kVersion) change_body(context, subject, [](Json& body) { body.erase(kPending); });
  return {path, stored.digest, stored.bytes};
}

void remove_files(Context& context, const store::Subject& subject, const std::string& path) {
  check_path(path, true);
  context.require(subject.kind, subject.id, subject.number);
  store::Batch batch;
  for (const store::Attachment& file : context.store.attachments(subject)) {
    if (path.empty() || file.path == path || file.path.starts_with(path + "/")) {
      batch.changes.push_back(store::Detach{subject, file.path});
    }
  }
  if (subject.kind != Kind::kModel) batch.active = {subject};
  if (!batch.changes.empty()) context.write(std::move(batch));
}

ArtifactRef parse_artifact_ref(const std::string& text) {
  check_path(text, false);
  constexpr std::string_view kBetween = "/artifacts";
  const auto wrong = [&] {
    refuse_invalid("Invalid path: '" + text + "' does not name a run, a logged model or a version",
                   "use a path like <experiment>/<run>/artifacts/<path>, which artifact_uri contains");
  };
  size_t middle = text.find(kBetween);
  while (middle != std::string::npos && middle + kBetween.size() < text.size() &&
         text[middle + kBetween.size()] != '/') {
    middle = text.find(kBetween, middle + 1);
  }
  if (middle == std::string::npos) wrong();
  ArtifactRef ref;
  ref.path = middle + kBetween.size() < text.size() ? text.substr(middle + kBetween.size() + 1) : "";
  const std::string owner = text.substr(0, middle);
  const size_t last = owner.rfind('/'), first = owner.find('/');
  if (first == std::string::npos) wrong();
  const std::string name = owner.substr(last + 1), before = owner.substr(0, last);
  if (before.starts_with("versions/")) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size() || number <= 0) wrong();
    ref.subject = {Kind::kVersion, before.substr(9), number};
  } else if (before.ends_with("/models")) {
    ref.subject = {Kind::kModel, name, 0};
  } else {
    ref.subject = {Kind::kRun, name, 0};
  }
  return ref;
}

void check_artifact_location(const Context& context, const std::string& location) {
  constexpr std::string_view kScheme = "mlflow-artifacts:";
  if (!location.starts_with(kScheme) ||
      location.starts_with("mlflow-artifacts://")) {  // "mlflow-artifacts://host/..." names another server
    if (is_allowed_elsewhere(context, location)) return;
    throw Refused(kSourceRefused,
                  "Invalid artifact_location: '" + location + "' is at no place where files of runs may be",
                  "leave artifact_location out, or use mlflow-artifacts:/NAME or one of " + allowed_elsewhere(context));
  }
  const auto wrong = [&](const std::string& why) {
    refuse_invalid(
        "the artifact_location '" + location + "' " + why,
        "leave artifact_location out, or send mlflow-artifacts:/NAME without '?', '#' and a slash at its end, "
        "and without a folder 'versions', 'models' or 'artifacts'");
  };
  if (location.find_first_of("?#") != std::string::npos) wrong("contains '?' or '#'");
  if (location.size() <= kScheme.size() + 1 || location[kScheme.size()] != '/') wrong("names no folder");
  // The server must find the owner of a file in the paths that the client will build from the location.
  const std::string id(34, 'x'), folder = location.substr(kScheme.size() + 1);
  for (const auto& [kind, below] : {std::pair(Kind::kRun, "/"), std::pair(Kind::kModel, "/models/")}) {
    std::optional<ArtifactRef> ref;
    try {
      ref = parse_artifact_ref(folder + below + id + "/artifacts/file");
    } catch (const Refused& refused) {
      wrong(std::string("gives paths that this server cannot read: ") + refused.what());
    }
    if (ref->subject != store::Subject{kind, id, 0} || ref->path != "file") {
      wrong("gives paths that this server takes for those of another record");
    }
  }
}

void check_may_change(const Context& context, const ArtifactRef& ref) {
  if (ref.subject.kind != Kind::kVersion || context.caller.role == Role::kAdmin) return;
  throw Refused(kForbidden, "changing the files of a version requires the role admin", "register a new version");
}

// The names in the response are relative, because the client puts the requested path in front of them.
http::Response mlflow_artifacts_list(Context& context, const Call& call) {
  const ArtifactRef ref = parse_artifact_ref(Args(call).text("path"));
  Json answer{{"files", Json::array()}};
  for (const FileEntry& entry : list_files(context, ref.subject, ref.path))
    answer["files"].push_back(file_json(entry, ""));
  return json_response(answer);
}

http::Response mlflow_artifacts_get(Context& context, const Call& call) {
  const ArtifactRef ref = parse_artifact_ref(call.path.at("path"));
  return download(context, call.request, ref.subject, ref.path);
}

http::Response mlflow_artifacts_put(Context& context, const Call& call) {
  const ArtifactRef ref = parse_artifact_ref(call.path.at("path"));
  check_may_change(context, ref);
  attach_upload(context, call.request, ref.subject, ref.path);
  return json_response(Json::object());
}

http::Response mlflow_artifacts_delete(Context& context, const Call& call) {
  const ArtifactRef ref = parse_artifact_ref(call.path.at("path"));
  check_may_change(context, ref);
  remove_files(context, ref.subject, ref.path);
  return json_response(Json::object());
}

http::Response mlflow_run_artifacts(Context& context, const Call& call) {
  const Args args(call);
  const store::Record run = context.require(Kind::kRun, run_of(args));
  const std::string path = args.text("path", "");
  Json answer{{"root_uri", artifact_location_of_run(context, run) + "/" + run.subject.id + "/artifacts"},
              {"files", Json::array()}};
  for (const FileEntry& entry : list_files(context, run.subject, path))
    answer["files"].push_back(file_json(entry, path));
  return json_response(answer);
}

}  // namespace sinew::web
