// Time as an argument: whoever needs the time is given a Clock, so tests and simulation can give another one.
#pragma once

#include <cstdint>
#include <string>

namespace sinew {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual double monotonic_seconds() const = 0;  // for durations; never goes back
  virtual double wall_seconds() const = 0;       // seconds since 1970-01-01T00:00Z
  virtual void sleep_seconds(double seconds) = 0;
};

// The machine's own clock; lives as long as the program. May be used from any thread.
Clock& system_clock();

// "20261121T031502Z" (sortable, fit for file names) and "2026-11-21T03:15:02.123Z" (for people and logs).
std::string utc_compact(double wall_seconds);
std::string utc_iso(double wall_seconds);
// The time a text begins with in utc_compact's form, as the names of runs do; 0: none.
double utc_of_compact(const std::string& text);

}  // namespace sinew
