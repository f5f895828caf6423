// Inside web/: lists, reads and stores the files of runs, logged models and versions. These are uploaded files; for an
// indexed run, they also include the files in its directory.
//
// A path consists of names with single slashes between them, and no name is "." or "..". So no path leads out of the
// directory that it belongs to, neither on the server nor where a client saves the file. The server follows no symbolic
// link in a run's directory (base/beneath.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/beneath.h"
#include "web/context.h"

namespace sinew::web {

struct FileEntry {
  std::string name;  // the last name of the path
  bool directory = false;
  int64_t bytes = 0;
};
// Throws Refused unless `path` has the form described at the top of this file. Accepts the empty path, which is the
// root, only if `allow_root`.
void check_path(const std::string& path, bool allow_root);
// Opens the directory of a run, if the run has one and it exists.
std::optional<BeneathFile> open_run_directory(Context& context, const store::Subject& run);
std::vector<FileEntry> list_files(Context& context, const store::Subject& subject, const std::string& path);
Json file_json(const FileEntry& entry, const std::string& folder);
http::Response download(Context& context, const http::Request& request, const store::Subject& subject,
                        const std::string& path);
// Returns the sink for the body of a route that takes a file (upload.h). Checks the path before the body's first byte
// arrives.
std::shared_ptr<http::Sink> upload_sink(Context& context, const Call& call);
// Attaches the request's uploaded file to the subject under the path. Returns when the attachment is durable.
store::Attachment attach_upload(Context& context, const http::Request& request, const store::Subject& subject,
                                const std::string& path);
// Calls `take` for every file below `path` in a run's directory, if the run has one. `name` is the file's path relative
// to `path`.
using TakeFile = std::function<void(const std::string& name, const BeneathFile& file)>;
void each_run_directory_file(Context& context, const store::Subject& subject, const std::string& path,
                             const TakeFile& take);
void remove_files(Context& context, const store::Subject& subject, const std::string& path);

// The owner and the path that an artifact URI names. The URI of a run ends with "<experiment>/<run>/artifacts/<path>".
// That of a logged model ends with "<experiment>/models/<model>/artifacts/<path>". That of a version ends with
// "versions/<model>/<number>/artifacts/<path>".
struct ArtifactRef {
  store::Subject subject;
  std::string path;
};
ArtifactRef parse_artifact_ref(const std::string& text);
// Refuses an artifact location on this server if the client would build paths from it that this server does not read.
// Refuses a location elsewhere (kSourceRefused) unless it is at a place from which versions may come. The clients of
// all users of the experiment write and read files at its location, so no user may choose any path or address for it.
void check_artifact_location(const Context& context, const std::string& location);
// Refuses callers who must not change these files. Only an admin may change the files of a version, because the gates
// judged the version with these files.
void check_may_change(const Context& context, const ArtifactRef& ref);

http::Response mlflow_artifacts_list(Context&, const Call&);
http::Response mlflow_artifacts_get(Context&, const Call&);
http::Response mlflow_artifacts_put(Context&, const Call&);
http::Response mlflow_artifacts_delete(Context&, const Call&);
http::Response mlflow_run_artifacts(Context&, const Call&);

}  // namespace sinew::web
