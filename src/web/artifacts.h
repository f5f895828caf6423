// Inside web/: lists, reads and stores the files of runs, logged models and versions. These are uploaded files and, for
// an indexed run, also the files in its directory.
//
// A path consists of names with single slashes between them; no name is "." or "..". So a path never leads out of the
// directory it belongs to, neither here nor where a client saves the file. The server follows no symbolic link in a
// run's directory (base/beneath.h).
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
  std::string name;  // the last name of its path
  bool directory = false;
  int64_t bytes = 0;
};
// Throws Refused unless `path` is a path as described at the top of this file. An empty path, the root, is accepted
// only if `allow_root`.
void check_path(const std::string& path, bool allow_root);
// Opens the directory of a run, if the run has one and it exists.
std::optional<BeneathFile> open_run_directory(Context& context, const store::Subject& run);
std::vector<FileEntry> list_files(Context& context, const store::Subject& subject, const std::string& path);
Json file_json(const FileEntry& entry, const std::string& folder);
http::Response download(Context& context, const http::Request& request, const store::Subject& subject,
                        const std::string& path);
// Returns the sink for the body of a route that takes a file (upload.h). Checks the path before the first byte arrives.
std::shared_ptr<http::Sink> upload_sink(Context& context, const Call& call);
// Attaches the request's uploaded file to the subject under the path. Returns when the attachment is durable.
store::Attachment attach_upload(Context& context, const http::Request& request, const store::Subject& subject,
                                const std::string& path);
// Calls `take` for every file below `path` in a run's directory, if the run has one, with the file's path relative to
// `path` and the open file.
using TakeFile = std::function<void(const std::string& name, const BeneathFile& file)>;
void each_run_directory_file(Context& context, const store::Subject& subject, const std::string& path,
                             const TakeFile& take);
void remove_files(Context& context, const store::Subject& subject, const std::string& path);

// The owner and path that an artifact URI names. The URIs of runs, logged models and versions end with
// "<experiment>/<run>/artifacts/<path>", "<experiment>/models/<model>/artifacts/<path>" and
// "versions/<model>/<number>/artifacts/<path>".
struct ArtifactRef {
  store::Subject subject;
  std::string path;
};
ArtifactRef parse_artifact_ref(const std::string& text);
// Refuses an artifact location on this server from which the client would build other paths than this server reads.
// Locations elsewhere (s3://, file:/) are the client's own affair.
void check_artifact_location(const std::string& location);
// Refuses callers who may not change these files. Only an admin may change the files of a version, because the version
// passed its gates with them.
void check_may_change(const Context& context, const ArtifactRef& ref);

http::Response mlflow_artifacts_list(Context&, const Call&);
http::Response mlflow_artifacts_get(Context&, const Call&);
http::Response mlflow_artifacts_put(Context&, const Call&);
http::Response mlflow_artifacts_delete(Context&, const Call&);
http::Response mlflow_run_artifacts(Context&, const Call&);

}  // namespace sinew::web
