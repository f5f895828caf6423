#include "web/context.h"

namespace sinew::web {

void refuse_invalid(const std::string& what, const std::string& hint) {
  throw Refused(kInvalidValue, what, hint);
}

void refuse_missing(const std::string& what, const std::string& hint) {
  throw Refused(kNotFound, what, hint);
}

void refuse(const store::Refusal& refusal) {
  using Reason = store::Refusal::Reason;
  switch (refusal.reason) {
    case Reason::kNotFound: refuse_missing(refusal.why, "check the id");
    case Reason::kExists: throw Refused(kAlreadyExists, refusal.why, "choose another name, or use the existing one");
    case Reason::kStale:
    case Reason::kHeld:
      throw Refused(kLeaseLost, refusal.why, "another server has taken over this store; send the request there");
    case Reason::kHidden: refuse_invalid(refusal.why, "restore it first");
    case Reason::kConflict: throw Refused(kConflict, refusal.why, "read the current state and decide again");
    case Reason::kInvalid: break;
  }
  refuse_invalid(refusal.why);
}

Json refusal_json(const Refused& refused, const std::string& path) {
  Json body = Json::object();
  if (path.find("/mlflow") != std::string::npos)
    body = {{"error_code", refused.kind.mlflow_code}, {"message", refused.what()}};
  body["error"] = refused.what();
  body["code"] = refused.kind.code.text();
  body["hint"] = refused.hint;
  return body;
}

store::Receipt Context::write(store::Batch batch) {
  if (options.lease) batch.held.push_back(*options.lease);
  batch.actor = {caller.name, caller.address};
  auto outcome = store.write(batch);
  if (!outcome) refuse(outcome.error());
  return *std::move(outcome);
}

store::Record Context::require(store::Kind kind, const std::string& id, int64_t number) {
  // No record has an id that the store would refuse.
  const bool possible = !id.empty() && id.size() <= 500 && id.find('\0') == std::string::npos;
  auto record = possible ? store.find({kind, id, number}) : std::nullopt;
  if (!record) {
    refuse_missing(std::string("there is no ") + store::to_string(kind) + " '" + id + "'" +
                   (number > 0 ? " with the number " + std::to_string(number) : ""));
  }
  return *std::move(record);
}

http::Response json_response(const Json& json, int status) {
  http::Response response;
  response.status = status;
  response.body = dump_json(json) + "\n";
  return response;
}

}  // namespace sinew::web
