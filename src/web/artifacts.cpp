#include "web/artifacts.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "base/disk.h"
#include "web/args.h"
#include "web/mlflow.h"
#include "web/upload.h"

namespace sinew::web {
namespace {

namespace fs = std::filesystem;
using store::Kind;

// `real` and all it is below lie in `directory`.
bool is_below(const fs::path& directory, const fs::path& real) {
  return std::mismatch(directory.begin(), directory.end(), real.begin(), real.end()).first == directory.end();
}

// Of a path below a place: some part of it is not for the eyes of others, such as what is being written just now.
bool is_hidden(const fs::path& relative) {
  return std::any_of(relative.begin(), relative.end(),
                     [](const fs::path& name) { return name != "." && name.string().starts_with("."); });
}

// The run's directory, if it has one and it is still there; as the disk has it, without links. It is below the root and
// not in what is hidden there (the store, the tokens), whatever the record says.
std::optional<fs::path> directory_of(Context& context, const store::Subject& subject) {
  if (subject.kind != Kind::kRun) return std::nullopt;
  const auto run = context.store.find(subject);
  if (!run) return std::nullopt;
  const std::string directory = registry::directory_of(*run, context.options.runs_root);
  if (directory.empty()) return std::nullopt;
  std::error_code error, no_root;
  const fs::path real = fs::canonical(directory, error), root = fs::canonical(context.options.runs_root, no_root);
  if (error || no_root || real == root || !is_below(root, real)) return std::nullopt;
  return is_hidden(real.lexically_relative(root)) ? std::nullopt : std::optional(real);
}

// A file or folder of the directory; nullopt also for a link that leads out of it, and for secrets of a run.
std::optional<fs::path> below(const fs::path& directory, const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(directory / path, error);
  if (error) return std::nullopt;
  if (!is_below(directory, real) || is_hidden(real.lexically_relative(directory))) return std::nullopt;
  return real.filename() == "coordinator.json" ? std::nullopt : std::optional(real);
}

void list_directory(const fs::path& directory, const std::string& path, std::map<std::string, Listed>& found) {
  const auto place = below(directory, path);
  std::error_code error;
  if (!place || !fs::is_directory(*place, error)) return;
  for (const auto& entry : fs::directory_iterator(*place, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".") || name == "coordinator.json" || entry.is_symlink(error)) continue;
    if (entry.is_directory(error)) {
      found.try_emplace(name, Listed{name, true, 0});
    } else if (entry.is_regular_file(error)) {
      found.try_emplace(name, Listed{name, false, static_cast<int64_t>(entry.file_size(error))});
    }
  }
}

// A file of the run's own directory, if it has one there. It comes before what was uploaded under that path: a run is
// its directory.
std::optional<fs::path> own_file(Context& context, const store::Subject& subject, const std::string& path) {
  const auto directory = directory_of(context, subject);
  if (!directory) return std::nullopt;
  const auto place = below(*directory, path);
  std::error_code error;
  return place && fs::is_regular_file(*place, error) ? place : std::nullopt;
}

// What a browser may show is shown as text; whatever it is, it is never run.
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

void judge_path(const std::string& path, bool root_too) {
  constexpr size_t kLongest = 400;
  if (path.empty() && root_too) return;
  const auto bad = [&](const char* why) {
    refuse_invalid("Invalid path: '" + path + "' " + why, "names with single slashes between them, none of them '..'");
  };
  if (path.empty() || path.size() > kLongest) bad("is empty or too long");
  for (const char c : path) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\') bad("has a character in it that none may have");
  }
  for (size_t at = 0; at <= path.size();) {
    const size_t slash = std::min(path.find('/', at), path.size());
    const std::string_view name = std::string_view(path).substr(at, slash - at);
    if (name.empty() || name == "." || name == "..") bad("has an empty name, '.' or '..' in it");
    at = slash + 1;
  }
}

std::vector<Listed> list_below(Context& context, const store::Subject& subject, const std::string& path) {
  judge_path(path, true);
  std::map<std::string, Listed> found;
  if (const auto directory = directory_of(context, subject)) list_directory(*directory, path, found);
  for (const store::Attachment& file : context.store.attachments(subject, path)) {
    const std::string rest = path.empty() ? file.path : file.path.substr(path.size() + 1);
    const size_t slash = rest.find('/');
    const std::string name = rest.substr(0, slash);
    const bool is_file = slash == std::string::npos;
    found.try_emplace(name, Listed{name, !is_file, is_file ? file.bytes : 0});
  }
  std::vector<Listed> list;
  for (auto& [name, entry] : found) list.push_back(std::move(entry));
  return list;
}

std::vector<std::pair<std::string, std::string>> own_files_below(Context& context, const store::Subject& subject,
                                                                 const std::string& path) {
  std::vector<std::pair<std::string, std::string>> files;
  const auto directory = directory_of(context, subject);
  if (!directory) return files;
  std::map<std::string, Listed> entries;
  list_directory(*directory, path, entries);
  for (const auto& [name, entry] : entries) {
    const std::string at = path.empty() ? name : path + "/" + name;
    if (!entry.directory) files.emplace_back(name, *directory / at);
    if (!entry.directory) continue;
    for (const auto& [rest, place] : own_files_below(context, subject, at))
      files.emplace_back(name + "/" + rest, place);
  }
  return files;
}

Json listed_json(const Listed& entry, const std::string& below) {
  Json json{{"path", below.empty() ? entry.name : below + "/" + entry.name}, {"is_dir", entry.directory}};
  if (!entry.directory) json["file_size"] = entry.bytes;
  return json;
}

http::Response download(Context& context, const http::Request& request, const store::Subject& subject,
                        const std::string& path) {
  judge_path(path, false);
  if (const auto own = own_file(context, subject, path)) return http::file_response(request, *own, type_of(path), "");
  const auto file = context.store.attachment(subject, path);
  if (!file) {
    refuse_missing("there is no file '" + path + "' of " + store::to_string(subject.kind) + " '" + subject.id + "'");
  }
  registry::Artifacts& artifacts = context.artifacts;
  return http::content_response(
      request, static_cast<uint64_t>(file->bytes),
      [&artifacts, digest = file->digest](uint64_t offset, std::span<std::byte> out) {
        return artifacts.read_at(digest, offset, out);
      },
      type_of(path), file->digest);
}

store::Attachment keep_upload(Context& context, const http::Request& request, const store::Subject& subject,
                              const std::string& path) {
  judge_path(path, false);
  auto* upload = dynamic_cast<Upload*>(request.sink.get());
  if (upload == nullptr) refuse_invalid("there is no body", "send the file as the body");
  context.need(subject.kind, subject.id, subject.number);
  if (own_file(context, subject, path)) {
    throw Refused(409, "RESOURCE_CONFLICT", "the run has a file '" + path + "' of its own in its directory",
                  "give what is uploaded another name");
  }
  const registry::BlobInfo stored = upload->finish();
  context.write(store::Attach{subject, path, stored.digest, stored.bytes});
  return {path, stored.digest, stored.bytes};
}

void remove_below(Context& context, const store::Subject& subject, const std::string& path) {
  judge_path(path, true);
  store::Batch batch;
  for (const store::Attachment& file : context.store.attachments(subject)) {
    if (path.empty() || file.path == path || file.path.starts_with(path + "/")) {
      batch.changes.push_back(store::Detach{subject, file.path});
    }
  }
  if (!batch.changes.empty()) context.write(std::move(batch));
}

Spot spot_of(const std::string& text) {
  judge_path(text, false);
  constexpr std::string_view kBetween = "/artifacts";
  const auto wrong = [&] {
    refuse_invalid("Invalid path: '" + text + "' is no place of a run or a model",
                   "<experiment>/<run>/artifacts/<path>, as artifact_uri has it");
  };
  size_t middle = text.find(kBetween);
  while (middle != std::string::npos && middle + kBetween.size() < text.size() &&
         text[middle + kBetween.size()] != '/') {
    middle = text.find(kBetween, middle + 1);
  }
  if (middle == std::string::npos) wrong();
  Spot spot;
  spot.path = middle + kBetween.size() < text.size() ? text.substr(middle + kBetween.size() + 1) : "";
  const std::string owner = text.substr(0, middle);
  const size_t last = owner.rfind('/'), first = owner.find('/');
  if (first == std::string::npos) wrong();
  const std::string name = owner.substr(last + 1), before = owner.substr(0, last);
  if (before.starts_with("versions/")) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size() || number <= 0) wrong();
    spot.subject = {Kind::kVersion, before.substr(9), number};
  } else if (before.ends_with("/models")) {
    spot.subject = {Kind::kModel, name, 0};
  } else {
    spot.subject = {Kind::kRun, name, 0};
  }
  return spot;
}

void judge_change(const Spot& spot, const Call& call) {
  if (spot.subject.kind != Kind::kVersion || call.role == Role::kAdmin) return;
  throw Refused(403, "PERMISSION_DENIED", "to change the files of a version takes the role admin",
                "register a new version");
}

// The client puts what it asked for before each path.
http::Response mlflow_artifacts_list(Context& context, const Call& call) {
  const Spot spot = spot_of(Args(call).text("path"));
  Json answer{{"files", Json::array()}};
  for (const Listed& entry : list_below(context, spot.subject, spot.path))
    answer["files"].push_back(listed_json(entry, ""));
  return json_response(answer);
}

http::Response mlflow_artifacts_get(Context& context, const Call& call) {
  const Spot spot = spot_of(call.path.at("path"));
  return download(context, call.request, spot.subject, spot.path);
}

http::Response mlflow_artifacts_put(Context& context, const Call& call) {
  const Spot spot = spot_of(call.path.at("path"));
  judge_change(spot, call);
  keep_upload(context, call.request, spot.subject, spot.path);
  return json_response(Json::object());
}

http::Response mlflow_artifacts_delete(Context& context, const Call& call) {
  const Spot spot = spot_of(call.path.at("path"));
  judge_change(spot, call);
  remove_below(context, spot.subject, spot.path);
  return json_response(Json::object());
}

http::Response mlflow_run_artifacts(Context& context, const Call& call) {
  const Args args(call);
  const store::Record run = context.need(Kind::kRun, run_of(args));
  const std::string path = args.text("path", "");
  Json answer{{"root_uri", "mlflow-artifacts:/" + run.parent + "/" + run.subject.id + "/artifacts"},
              {"files", Json::array()}};
  for (const Listed& entry : list_below(context, run.subject, path))
    answer["files"].push_back(listed_json(entry, path));
  return json_response(answer);
}

}  // namespace sinew::web
