#include "base/energy.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/proc.h"

namespace sinew {
namespace {

namespace fs = std::filesystem;

constexpr double kMicrojoule = 1e-6;
constexpr const char* kPowerHint =
    "give budget.watts, the mean power of the machine while it trains, such as a meter at the plug shows it";

std::string first_line(const fs::path& path) {
  const std::string text = kernel_text(path);
  return text.substr(0, text.find('\n'));
}

// Reads the counter from its begin, as the kernel makes its text anew for each read.
std::optional<double> counter_of(int file) {
  char text[32];
  const ssize_t size = ::pread(file, text, sizeof text, 0);
  uint64_t value = 0;
  if (size <= 0 || std::from_chars(text, text + size, value).ec != std::errc()) return std::nullopt;
  return static_cast<double>(value) * kMicrojoule;
}

// Zones are "intel-rapl:PACKAGE" and, inside of it, "intel-rapl:PACKAGE:PART". The cores are a part of the package, and
// the memory (dram) is beside it. The platform (psys) contains packages, so it would count them twice.
bool counts(const std::string& zone, const std::string& name) {
  const auto colons = std::ranges::count(zone, ':');
  return zone.starts_with("intel-rapl:") &&
         ((colons == 1 && name.starts_with("package")) || (colons == 2 && name == "dram"));
}

}  // namespace

EnergyCounter::EnergyCounter(const std::string& root) {
  std::string refused;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(root, failed)) {
    if (!counts(entry.path().filename(), first_line(entry.path() / "name"))) continue;
    const std::string path = entry.path() / "energy_uj";
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const auto now = file < 0 ? std::nullopt : counter_of(file);
    if (!now) {
      refused = path + (file < 0 ? std::string(": ") + std::strerror(errno) : " tells no number");
      if (file >= 0) ::close(file);
      continue;
    }
    const std::string range = first_line(entry.path() / "max_energy_range_uj");
    double most = 0;
    std::from_chars(range.data(), range.data() + range.size(), most);
    zones_.push_back({file, most * kMicrojoule, *now});
  }
  if (refused.empty() && !zones_.empty()) return;
  for (const Zone& zone : zones_) ::close(zone.file);
  // a part of the counters would be too little
  if (!refused.empty())
    throw Error("ENERGY_NOT_MEASURED", "the energy of this machine cannot be measured: " + refused,
                std::string("let this user read the file, or ") + kPowerHint);
  throw Error("ENERGY_NOT_MEASURED", "this machine has no energy counters that can be read (" + root + "/intel-rapl:*)",
              kPowerHint);
}

EnergyCounter::~EnergyCounter() {
  for (const Zone& zone : zones_) ::close(zone.file);
}

double EnergyCounter::joules() {
  for (Zone& zone : zones_) {
    const double now = counter_of(zone.file).value_or(zone.last);
    joules_ += now >= zone.last ? now - zone.last : std::max(0.0, zone.range - zone.last) + now;
    zone.last = now;
  }
  return joules_;
}

}  // namespace sinew
