#include "base/clock.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <thread>

namespace sinew {
namespace {

class SystemClock final : public Clock {
 public:
  double monotonic_seconds() const override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  double wall_seconds() const override {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  }
  void sleep_seconds(double seconds) override { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }
};

std::tm utc(double wall_seconds) {
  const auto whole = static_cast<std::time_t>(std::floor(wall_seconds));
  std::tm parts{};
  gmtime_r(&whole, &parts);
  return parts;
}

}  // namespace

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

std::string utc_compact(double wall_seconds) {
  const std::tm parts = utc(wall_seconds);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts);
  return text;
}

std::string utc_iso(double wall_seconds) {
  const std::tm parts = utc(wall_seconds);
  char date[32], text[48];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
  const int milliseconds = static_cast<int>((wall_seconds - std::floor(wall_seconds)) * 1000.0);
  std::snprintf(text, sizeof text, "%s.%03dZ", date, milliseconds);
  return text;
}

}  // namespace sinew
