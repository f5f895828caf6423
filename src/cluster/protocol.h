// Defines the version of the protocol between the coordinator and its callers, and the codes of its errors.
#pragma once

#include <array>
#include <string_view>

#include "base/error.h"

namespace sinew::cluster {

// The path of every call (/v2/join) and a header of every answer contain the version. A coordinator refuses calls of
// another version; a caller refuses answers of another version.
inline constexpr int kProtocolVersion = 2;
inline constexpr const char* kVersionHeader = "x-sinew-protocol";

inline constexpr ErrorCode kBadRequest = "COORDINATOR_BAD_REQUEST";
inline constexpr ErrorCode kVersionDiffers = "COORDINATOR_VERSION_DIFFERS";
inline constexpr ErrorCode kWrongSecret = "COORDINATOR_WRONG_SECRET";
inline constexpr ErrorCode kTokenExpired = "COORDINATOR_TOKEN_EXPIRED";
inline constexpr ErrorCode kTokenRevoked = "COORDINATOR_TOKEN_REVOKED";
inline constexpr ErrorCode kNotAllowed = "COORDINATOR_NOT_ALLOWED";
inline constexpr ErrorCode kIdentityDiffers = "COORDINATOR_IDENTITY_DIFFERS";
inline constexpr ErrorCode kUnknownRoute = "COORDINATOR_UNKNOWN_ROUTE";
inline constexpr ErrorCode kUnknownMember = "COORDINATOR_UNKNOWN_MEMBER";
inline constexpr ErrorCode kRunOver = "COORDINATOR_RUN_OVER";
inline constexpr ErrorCode kMemberFenced = "COORDINATOR_MEMBER_FENCED";
inline constexpr ErrorCode kTooMany = "COORDINATOR_TOO_MANY";
inline constexpr ErrorCode kNotReady = "COORDINATOR_NOT_READY";
inline constexpr ErrorCode kCallDamaged = "COORDINATOR_CALL_DAMAGED";
inline constexpr ErrorCode kSuperseded = "COORDINATOR_SUPERSEDED";
// The caller makes these codes itself: the answer changed on its way, it has an unknown code, or no answer came.
inline constexpr ErrorCode kAnswerDamaged = "COORDINATOR_ANSWER_DAMAGED";
inline constexpr ErrorCode kRefused = "COORDINATOR_REFUSED";
inline constexpr ErrorCode kUnreachable = "COORDINATOR_UNREACHABLE";

// Returns the code that an answer names, or kRefused if it is unknown.
constexpr ErrorCode code_named(std::string_view text) {
  constexpr std::array kAll = {kBadRequest,   kVersionDiffers,  kWrongSecret,  kTokenExpired,  kTokenRevoked,
                               kNotAllowed,   kIdentityDiffers, kUnknownRoute, kUnknownMember, kRunOver,
                               kMemberFenced, kTooMany,         kNotReady,     kCallDamaged,   kSuperseded};
  for (const ErrorCode code : kAll) {
    if (code.text() == text) return code;
  }
  return kRefused;
}

}  // namespace sinew::cluster
