// Reads the energy counters of the machine's processors.
#pragma once

#include <string>
#include <vector>

namespace sinew {

// The energy that processors and memory have used, as the kernel's powercap counters tell it (RAPL, on processors of
// Intel and AMD). Other programs on the machine are included, and so is nothing but processors and memory: disks, fans
// and losses of the power supply are not. One thread at a time.
class EnergyCounter {
 public:
  // Counts from now on. Throws Error (ENERGY_NOT_MEASURED) if the machine has no counters, or if this user may not read
  // them.
  explicit EnergyCounter(const std::string& root = "/sys/class/powercap");
  ~EnergyCounter();
  EnergyCounter(const EnergyCounter&) = delete;
  EnergyCounter& operator=(const EnergyCounter&) = delete;

  // The energy in J since this object was made. A counter begins again at 0 after some time, which the kernel tells as
  // max_energy_range_uj: at some hundred watts after a few minutes. So this must be called more often; a counter that
  // cannot be read any more stays at its last value.
  double joules();

 private:
  struct Zone {
    int file = -1;
    double range = 0;  // in J: where the counter begins again
    double last = 0;
  };
  std::vector<Zone> zones_;
  double joules_ = 0;
};

}  // namespace sinew
