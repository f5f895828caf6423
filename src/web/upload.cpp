#include "web/upload.h"

#include "base/size_text.h"
#include "web/artifacts.h"
#include "web/error_status.h"

namespace sinew::web {

void count_upload(const Context& context, int64_t bytes, int64_t more, const std::string& file) {
  if (!context.caller.token) return;
  const TokenRights& rights = context.caller.token->rights;
  const std::string token = "the token '" + context.caller.name + "' ";
  const std::string copied = file.empty() ? "" : ", and this request copies '" + file + "' with " + size_text(bytes);
  if (rights.upload_bytes > 0 && bytes > rights.upload_bytes) {
    throw Refused(kUploadTooLarge, token + "uploads files of at most " + size_text(rights.upload_bytes) + copied,
                  "use another token, or ask an administrator");
  }
  if (rights.upload_bytes_per_day > 0 &&
      !context.upload_quota.take(context.caller.name, more, rights.upload_bytes_per_day, context.now_ms())) {
    throw Refused(kUploadQuota, token + "uploads at most " + size_text(rights.upload_bytes_per_day) + " a day" + copied,
                  "try again tomorrow (UTC), or ask an administrator");
  }
}

void store_upload_count(const Context& context, store::Batch& batch) {
  if (context.caller.token && context.caller.token->rights.upload_bytes_per_day > 0)
    batch.changes.push_back(context.upload_quota.note(context.caller.name));
}

void Upload::open() {
  if (stream_) return;
  pin_.emplace(context_.artifacts.pin());
  stream_.emplace(pin_->stream());
}

std::optional<http::Response> Upload::take(std::string_view piece) {
  try {
    bytes_ += static_cast<int64_t>(piece.size());
    count_upload(context_, bytes_, static_cast<int64_t>(piece.size()));
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
