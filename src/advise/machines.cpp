#include "advise/machines.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/joined.h"
#include "base/number_text.h"
#include "base/printable.h"

namespace sinew::advise {
namespace {

constexpr size_t kMostBytes = 1 << 20;
constexpr double kMostOfAnything = 1e9;  // no machine has so much of anything

class TableReader {
 public:
  explicit TableReader(std::string name) : name_(std::move(name)) {}

  MachineTable table(const YAML::Node& root) {
    expect_map(root, "the table", {"date", "currency", "machines"});
    MachineTable table{.date = text(root, "date"), .currency = text(root, "currency"), .machines = {}};
    const YAML::Node list = root["machines"];
    if (!list.IsDefined() || !list.IsSequence() || list.size() == 0)
      refuse(list.IsDefined() ? list : root, "machines is not a list of machines", "give one or more: '- name: ...'");
    std::set<std::string> names;
    for (const YAML::Node& one : list) {
      table.machines.push_back(machine(one));
      const MachineType& made = table.machines.back();
      if (!names.insert(made.provider + " " + made.region + " " + made.name).second)
        refuse(one, made.name + " is there twice", "delete one of the two, or give them different regions");
    }
    return table;
  }

 private:
  [[noreturn]] void refuse(const YAML::Node& at, const std::string& what, const std::string& hint) const {
    const YAML::Mark mark = at.IsDefined() ? at.Mark() : YAML::Mark::null_mark();
    const std::string place =
        mark.is_null() ? "" : ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
    throw UsageError("MACHINES_INVALID", name_ + place + ": " + what, hint);
  }

  void expect_map(const YAML::Node& node, const std::string& what, const std::vector<std::string>& keys) const {
    if (!node.IsMap()) refuse(node, what + " is not a map", "write key: value, as sinew plan --print-machines shows");
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      if (std::ranges::find(keys, key) == keys.end())
        refuse(entry.first, what + " has no key '" + printable(key) + "'", "use " + joined(keys, ", "));
      if (!seen.insert(key).second) refuse(entry.first, key + " is given twice", "delete one of the two");
    }
  }

  std::string text(const YAML::Node& map, const std::string& key) const {
    const YAML::Node value = map[key];
    if (!value.IsDefined()) refuse(map, key + " is missing", "give it, as sinew plan --print-machines shows");
    if (!value.IsScalar() || value.Scalar().empty()) refuse(value, key + " is not a text", "write one line of text");
    return printable(value.Scalar());
  }

  // A number above 0, or nullopt if it is not given.
  std::optional<double> optional_number(const YAML::Node& map, const std::string& key) const {
    const YAML::Node value = map[key];
    if (!value.IsDefined()) return std::nullopt;
    try {
      const double number = value.IsScalar() ? number_above_0(key, value.Scalar()) : 0;
      if (number > 0 && number <= kMostOfAnything) return number;
    } catch (const UsageError&) {
    }
    refuse(value, key + " is not a number above 0, at most 1e9", "write a number without a unit");
  }

  double number(const YAML::Node& map, const std::string& key, const std::string& why = "") const {
    const auto value = optional_number(map, key);
    if (!value) refuse(map, key + " is missing" + why, "give it, as sinew plan --print-machines shows");
    return *value;
  }

  MachineType::Kind kind(const YAML::Node& map) const {
    const std::string word = text(map, "kind");
    if (word == "cpu") return MachineType::Kind::cpu;
    if (word == "gpu") return MachineType::Kind::gpu;
    if (word == "tpu") return MachineType::Kind::tpu;
    refuse(map["kind"], "kind is '" + word + "'", "write cpu, gpu or tpu");
  }

  MachineType machine(const YAML::Node& map) const {
    expect_map(map, "a machine",
               {"name", "provider", "region", "kind", "cores", "memory_gib", "accelerators", "accelerator_memory_gib",
                "peak_tflops", "memory_bandwidth_gbs", "network_gbps", "price_per_hour", "source"});
    MachineType made{.name = text(map, "name"),
                     .provider = text(map, "provider"),
                     .region = text(map, "region"),
                     .kind = kind(map),
                     .cores = number(map, "cores"),
                     .memory_gib = number(map, "memory_gib")};
    if (made.kind == MachineType::Kind::cpu) {
      for (const char* key : {"accelerators", "accelerator_memory_gib"}) {
        if (map[key].IsDefined()) refuse(map[key], std::string("a cpu has no ") + key, "delete it, or write kind: gpu");
      }
    } else {
      made.accelerators = number(map, "accelerators", ", which a gpu or tpu has");
      made.accelerator_memory_gib = number(map, "accelerator_memory_gib", ", which a gpu or tpu has");
      if (made.accelerators != std::floor(made.accelerators))
        refuse(map["accelerators"], "accelerators is not a whole number", "write how many the machine has");
    }
    const YAML::Node peaks = map["peak_tflops"];
    if (!peaks.IsDefined()) refuse(map, "peak_tflops is missing", "give for example peak_tflops: {fp32: 19.5}");
    expect_map(peaks, "peak_tflops", {"fp32", "bf16"});
    for (const char* precision : {"fp32", "bf16"}) {
      if (const auto peak = optional_number(peaks, precision)) made.peak_tflops[precision] = *peak;
    }
    if (made.peak_tflops.empty()) refuse(peaks, "peak_tflops is empty", "give fp32, bf16 or both");
    made.memory_bandwidth_gbs = number(map, "memory_bandwidth_gbs");
    made.network_gbps = optional_number(map, "network_gbps").value_or(0);
    if (const YAML::Node prices = map["price_per_hour"]; prices.IsDefined()) {
      expect_map(prices, "price_per_hour", {"on_demand", "spot"});
      made.on_demand = optional_number(prices, "on_demand");
      made.spot = optional_number(prices, "spot");
    }
    made.source = text(map, "source");
    return made;
  }

  std::string name_;
};

}  // namespace

MachineTable read_machines(const std::string& text, const std::string& name) {
  if (text.size() > kMostBytes)
    throw UsageError("MACHINES_INVALID", name + " has more than 1 MiB", "give a table of machines");
  try {
    return TableReader(name).table(YAML::Load(text));
  } catch (const YAML::Exception& error) {
    const std::string place =
        error.mark.is_null() ? ""
                             : ":" + std::to_string(error.mark.line + 1) + ":" + std::to_string(error.mark.column + 1);
    throw UsageError("MACHINES_INVALID", name + place + ": this is no YAML: " + error.msg,
                     "compare it with sinew plan --print-machines");
  }
}

}  // namespace sinew::advise
