#include "web/context.h"

namespace sinew::web {

void refuse_invalid(const std::string& what, const std::string& hint) {
  throw Refused(400, "INVALID_PARAMETER_VALUE", what, hint);
}

void refuse_missing(const std::string& what, const std::string& hint) {
  throw Refused(404, "RESOURCE_DOES_NOT_EXIST", what, hint);
}

void refuse(const store::Refusal& refusal) {
  using Reason = store::Refusal::Reason;
  switch (refusal.reason) {
    case Reason::kNotFound: refuse_missing(refusal.why, "is the id right?");
    case Reason::kExists: throw Refused(400, "RESOURCE_ALREADY_EXISTS", refusal.why, "choose another name, or use it");
    case Reason::kStale:
    case Reason::kHeld:
      throw Refused(409, "RESOURCE_CONFLICT", refusal.why, "read how it stands now, and decide again");
    case Reason::kNothing: refuse_missing(refusal.why);
    case Reason::kConflict: throw Refused(409, "INVALID_PARAMETER_VALUE", refusal.why, "read how it stands now");
    case Reason::kInvalid: break;
  }
  refuse_invalid(refusal.why);
}

store::Receipt Context::write(store::Batch batch) {
  if (options.lease) batch.held.push_back(*options.lease);
  auto outcome = store.write(batch);
  if (!outcome) refuse(outcome.error());
  return *std::move(outcome);
}

store::Record Context::need(store::Kind kind, const std::string& id, int64_t number) {
  // What the store would throw for is here only a name that nothing has.
  const bool possible = !id.empty() && id.size() <= 500 && id.find('\0') == std::string::npos;
  auto record = possible ? store.find({kind, id, number}) : std::nullopt;
  if (!record) {
    refuse_missing(std::string("there is no ") + store::to_string(kind) + " '" + id + "'" +
                   (number > 0 ? " with the number " + std::to_string(number) : ""));
  }
  return *std::move(record);
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

http::Response json_response(const Json& json, int status) {
  http::Response response;
  response.status = status;
  response.body = dump(json) + "\n";
  return response;
}

}  // namespace sinew::web
