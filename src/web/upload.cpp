#include "web/upload.h"

#include "web/artifacts.h"
#include "web/error_status.h"

namespace sinew::web {

void Upload::open() {
  if (stream_) return;
  pin_.emplace(artifacts_.pin());
  stream_.emplace(pin_->stream());
}

std::optional<http::Response> Upload::take(std::string_view piece) {
  try {
    open();
    stream_->write(std::as_bytes(std::span(piece)));
  } catch (const Error& error) {
    const RefusalKind kind = kind_of(error);
    return json_response({{"error_code", kind.mlflow_code},
                          {"message", error.what()},
                          {"error", error.what()},
                          {"code", error.code.text()},
                          {"hint", error.hint}},
                         kind.status);
  }
  return std::nullopt;
}

registry::BlobInfo Upload::finish() {
  open();
  return stream_->finish();
}

std::shared_ptr<http::Sink> upload_sink(Context& context, const Call& call) {
  const std::string path = call.path.contains("path") ? call.path.at("path") : "";
  check_path(path, false);
  if (!call.path.contains("run"))
    check_may_change(context, parse_artifact_ref(path));  // an MLflow path names the file's owner
  return std::make_shared<Upload>(context.artifacts);
}

}  // namespace sinew::web
