// Files of a run, a logged model or a version: those that were uploaded, and of a run that was indexed its directory's.
//
// A path is names with single slashes between them, none of them "." or "..": so none leaves what it is below, here or
// where somebody unpacks it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "web/context.h"

namespace sinew::web {

struct Listed {
  std::string name;  // the last part of its path
  bool directory = false;
  int64_t bytes = 0;
};
// Throws Refused unless it is a path as above; empty is the root, where that is allowed.
void judge_path(const std::string& path, bool root_too);
std::vector<Listed> list_below(Context& context, const store::Subject& subject, const std::string& path);
Json listed_json(const Listed& entry, const std::string& below);
http::Response download(Context& context, const http::Request& request, const store::Subject& subject,
                        const std::string& path);
// For a route that takes a file: what its body goes to as it comes (upload.h). The path is judged before the first
// byte.
std::shared_ptr<http::Sink> upload_sink(Context& context, const Call& call);
// What was uploaded with this request, under that path; durable when it returns.
store::Attachment keep_upload(Context& context, const http::Request& request, const store::Subject& subject,
                              const std::string& path);
// Every file below a path of a run's own directory, as paths below that path and places on the disk; none if it has no
// directory.
std::vector<std::pair<std::string, std::string>> own_files_below(Context& context, const store::Subject& subject,
                                                                 const std::string& path);
void remove_below(Context& context, const store::Subject& subject, const std::string& path);

// "<experiment>/<run>/artifacts/<path>", "<experiment>/models/<model>/artifacts/<path>" and
// "versions/<model>/<number>/artifacts/<path>", as the places of runs, logged models and versions are given out.
struct Spot {
  store::Subject subject;
  std::string path;
};
Spot spot_of(const std::string& text);
// Refuses who may not change what is there: the files of a registered version are what its gates judged.
void judge_change(const Spot& spot, const Call& call);

http::Response mlflow_artifacts_list(Context&, const Call&);
http::Response mlflow_artifacts_get(Context&, const Call&);
http::Response mlflow_artifacts_put(Context&, const Call&);
http::Response mlflow_artifacts_delete(Context&, const Call&);
http::Response mlflow_run_artifacts(Context&, const Call&);

}  // namespace sinew::web
