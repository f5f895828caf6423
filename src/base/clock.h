// Code that needs the time takes a Clock as an argument, so that tests and the simulation can pass their own.
#pragma once

#include <cstdint>
#include <string>

namespace sinew {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual double monotonic_seconds() const = 0;  // for durations; never decreases
  virtual double wall_seconds() const = 0;       // seconds since 1970-01-01T00:00Z
  virtual void sleep_seconds(double seconds) = 0;
};

// The clock of this machine. It lives as long as the program; any thread may use it.
Clock& system_clock();

// utc_compact: "20261121T031502Z", for names of files, so that they sort by time. utc_iso: "2026-11-21T03:15:02.123Z",
// for output and logs.
std::string utc_compact(double wall_seconds);
std::string utc_iso(double wall_seconds);
// Parses the utc_compact time at the beginning of the text, such as the name of a run. Returns 0 if the text does not
// begin with one.
double utc_of_compact(const std::string& text);

}  // namespace sinew
