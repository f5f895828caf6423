// Tests that an error has a status that makes clients repeat the request only if the error passes by itself.
#include "web/error_status.h"

#include <gtest/gtest.h>

namespace sinew::web {
namespace {

TEST(ErrorStatus, OnlyErrorsThatPassAreTemporary) {
  const auto status = [](ErrorCode code) { return kind_of(Error(code, "", "")).status; };
  for (const ErrorCode code :
       {ErrorCode("STORE_BUSY"), ErrorCode("STORE_CONNECTION_LOST"), ErrorCode("STORE_OUTCOME_UNKNOWN"),
        ErrorCode("ARTIFACTS_BUSY"), ErrorCode("MODEL_BUSY")})
    EXPECT_EQ(status(code), 503) << code.text();
  for (const ErrorCode code : {ErrorCode("STORE_NO_SPACE"), ErrorCode("DISK_FULL")})
    EXPECT_EQ(status(code), 507) << code.text();
  for (const ErrorCode code : {ErrorCode("MODEL_NOT_FOUND"), ErrorCode("RUN_NOT_FOUND"), ErrorCode("HTTP_NO_FILE")})
    EXPECT_EQ(status(code), 404) << code.text();
  for (const ErrorCode code :
       {ErrorCode("ARTIFACT_DAMAGED"), ErrorCode("ARTIFACT_NOT_FOUND"), ErrorCode("ARTIFACTS_FOREIGN"),
        ErrorCode("MODEL_CHANGE_REFUSED"), ErrorCode("MODEL_VERSION_IN_USE"), ErrorCode("RUN_CHANGED"),
        ErrorCode("RUN_NO_MODEL"), ErrorCode("DATA_FILE_CHANGED")})
    EXPECT_EQ(status(code), 409) << code.text();
  for (const ErrorCode code : {ErrorCode("STORE_DAMAGED"), ErrorCode("STORE_NOT_WRITABLE"),
                               ErrorCode("DISK_NOT_PERMITTED"), ErrorCode("RANDOM_UNAVAILABLE")})
    EXPECT_EQ(status(code), 500) << code.text();
}

TEST(ErrorStatus, OnlyTemporaryErrorsHaveMlflowsTemporaryCode) {
  const std::string code = kind_of(Error("ARTIFACT_DAMAGED", "", "")).mlflow_code;
  EXPECT_EQ(code, "INVALID_STATE");
  EXPECT_EQ(kind_of(Error("STORE_DAMAGED", "", "")).mlflow_code, std::string("INTERNAL_ERROR"));
  EXPECT_EQ(kind_of(Error("STORE_BUSY", "", "")).mlflow_code, std::string("TEMPORARILY_UNAVAILABLE"));
}

}  // namespace
}  // namespace sinew::web
