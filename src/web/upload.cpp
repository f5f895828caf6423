#include "web/upload.h"

#include "base/size_text.h"
#include "web/artifacts.h"
#include "web/error_status.h"

namespace sinew::web {

void Upload::open() {
  if (stream_) return;
  pin_.emplace(context_.artifacts.pin());
  stream_.emplace(pin_->stream());
}

void Upload::check_limits(size_t more) {
  bytes_ += static_cast<int64_t>(more);
  if (!context_.caller.token) return;
  const TokenRights& rights = context_.caller.token->rights;
  if (rights.upload_bytes > 0 && bytes_ > rights.upload_bytes) {
    throw Refused(kUploadTooLarge,
                  "the token '" + context_.caller.name + "' uploads files of at most " + size_text(rights.upload_bytes),
                  "use another token, or ask an administrator");
  }
  if (rights.upload_bytes_per_day > 0 && !context_.upload_quota.take(context_.caller.name, static_cast<int64_t>(more),
                                                                     rights.upload_bytes_per_day, context_.now_ms())) {
    throw Refused(
        kUploadQuota,
        "the token '" + context_.caller.name + "' uploads at most " + size_text(rights.upload_bytes_per_day) + " a day",
        "try again tomorrow (UTC), or ask an administrator");
  }
}

std::optional<http::Response> Upload::take(std::string_view piece) {
  try {
    check_limits(piece.size());
    open();
    stream_->write(std::as_bytes(std::span(piece)));
  } catch (const Refused& refused) {
    return json_response(refusal_json(refused, "/mlflow"), refused.kind.status);
  } catch (const Error& error) {
    const Refused refused(kind_of(error), error.what(), error.hint);
    return json_response(refusal_json(refused, "/mlflow"), refused.kind.status);
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
    check_may_change(context, parse_artifact_ref(path));  // the path of an MLflow route names the file's owner
  return std::make_shared<Upload>(context);
}

}  // namespace sinew::web
