#include "web/error_status.h"

#include <algorithm>

namespace sinew::web {
namespace {

constexpr const char *kBusy = "TEMPORARILY_UNAVAILABLE", *kMissing = "RESOURCE_DOES_NOT_EXIST",
                     *kState = "INVALID_STATE";

constexpr RefusalKind kKinds[] = {
    // Another process holds a lock, or the database cannot be reached. The same request succeeds later.
    {503, "STORE_BUSY", kBusy},
    {503, "STORE_CONNECTION_LOST", kBusy},
    {503, "STORE_OUTCOME_UNKNOWN", kBusy},
    {503, "ARTIFACTS_BUSY", kBusy},
    {503, "MODEL_BUSY", kBusy},
    {503, "STORE_REPLACED", kBusy},
    // The request costs more than one request may.
    {503, "REQUEST_TOO_LONG", kBusy},
    {400, "REQUEST_TOO_LARGE", "INVALID_PARAMETER_VALUE"},
    {408, "REQUEST_ABANDONED", kBusy},
    // Somebody must free disk space.
    {507, "STORE_NO_SPACE", kBusy},
    {507, "DISK_FULL", kBusy},
    // The request names something that does not exist.
    {404, "MODEL_NOT_FOUND", kMissing},
    {404, "MODEL_VERSION_NOT_FOUND", kMissing},
    {404, "MODEL_ALIAS_NOT_FOUND", kMissing},
    {404, "RUN_NOT_FOUND", kMissing},
    {404, "HTTP_NO_FILE", kMissing},
    {404, "DISK_NO_FILE", kMissing},
};

// Errors with these prefixes describe a model, a run or its files. The same request fails until somebody changes these.
constexpr std::string_view kSubjects[] = {"ARTIFACT_",   "ARTIFACTS_",   "MODEL_", "RUN_",    "DATA_",
                                          "CHECKPOINT_", "SAFETENSORS_", "INDEX_", "WEIGHTS_"};

}  // namespace

RefusalKind kind_of(const Error& error) {
  const auto* known = std::ranges::find_if(kKinds, [&](const RefusalKind& kind) { return kind.code == error.code; });
  if (known != std::end(kKinds)) return *known;
  const bool of_subject =
      std::ranges::any_of(kSubjects, [&](std::string_view prefix) { return error.code.text().starts_with(prefix); });
  return of_subject ? RefusalKind{409, error.code, kState} : RefusalKind{500, error.code, kInternalError.mlflow_code};
}

}  // namespace sinew::web
