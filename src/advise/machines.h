// Part of advise.h: a table of machine types with their abilities and prices, and its reader.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sinew::advise {

struct MachineType {
  enum class Kind { cpu, gpu, tpu };
  std::string name, provider, region;
  Kind kind = Kind::cpu;
  double cores = 0;       // that the system shows: with two threads in a core, two for each
  double memory_gib = 0;  // of the host
  double accelerators = 0, accelerator_memory_gib = 0;  // the memory of each one
  // Of the processor, or of one accelerator: 10^12 operations a second, by precision (fp32, bf16), and 10^9 bytes a
  // second.
  std::map<std::string, double> peak_tflops;
  double memory_bandwidth_gbs = 0;
  double network_gbps = 0;                // 0: not known; a plan for one machine does not need it
  std::optional<double> on_demand, spot;  // prices of an hour
  std::string source;                     // where the figures can be checked
  // The price at which machines are compared; nullopt if none is known.
  std::optional<double> usual_price() const { return on_demand ? on_demand : spot; }
  bool operator==(const MachineType&) const = default;
};

struct MachineTable {
  std::string date, currency;  // of the prices
  std::vector<MachineType> machines;
};

// Reads a table in YAML, as the built-in one is. `name` is the file's name for messages. Throws UsageError
// (MACHINES_INVALID) with line and column for a key, a value or a unit that is wrong or missing.
MachineTable read_machines(const std::string& text, const std::string& name);

extern const std::string_view kMachineTable;  // CMake makes it from machines.yaml (cmake/embed.cmake)

}  // namespace sinew::advise
