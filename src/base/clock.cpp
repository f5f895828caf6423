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

double utc_of_compact(const std::string& text) {
  std::tm parts{};
  int length = 0;
  if (std::sscanf(text.c_str(), "%4d%2d%2dT%2d%2d%2dZ%n", &parts.tm_year, &parts.tm_mon, &parts.tm_mday, &parts.tm_hour,
                  &parts.tm_min, &parts.tm_sec, &length) != 6 ||
      length != 16) {
    return 0;
  }
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return static_cast<double>(::timegm(&parts));
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
