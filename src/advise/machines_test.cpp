#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "advise/advise.h"
#include "base/expected_error.h"

namespace sinew::advise {
namespace {

using testing::HasSubstr;

const std::string kHead = "date: 2026-01-02\ncurrency: USD\nmachines:\n";
const std::string kProcessor =
    "  - {name: c, provider: P, region: r, kind: cpu, cores: 8, memory_gib: 16, peak_tflops: {fp32: 1},\n"
    "     memory_bandwidth_gbs: 40, source: here}\n";

std::string wrong(const std::string& text) {
  return error_of([&] { read_machines(text, "m.yaml"); });
}

TEST(Machines, TheBuiltInTableIsWhole) {
  const MachineTable table = read_machines(std::string(kMachineTable), "machines.yaml");
  EXPECT_GE(table.machines.size(), 20U);
  EXPECT_EQ(table.currency, "USD");
  size_t priced = 0;
  for (const MachineType& machine : table.machines) {
    EXPECT_THAT(machine.source, HasSubstr("https://")) << machine.name;
    priced += machine.on_demand ? 1 : 0;
    if (machine.spot && machine.on_demand) {
      EXPECT_LT(*machine.spot, *machine.on_demand) << machine.name;
    }
    // a mistake in a unit is a factor of 1000
    for (const auto& [precision, peak] : machine.peak_tflops) {
      EXPECT_GT(peak, 0.1) << machine.name << precision;
      EXPECT_LT(peak, 3000) << machine.name << precision;
    }
    EXPECT_GT(machine.memory_bandwidth_gbs, 10) << machine.name;
    EXPECT_LT(machine.memory_bandwidth_gbs, 20000) << machine.name;
  }
  EXPECT_GE(priced, 15U);
}

TEST(Machines, ReadsWhatIsGiven) {
  const MachineTable table = read_machines(
      kHead +
          "  - {name: g, provider: P, region: r, kind: gpu, cores: 4, memory_gib: 16, accelerators: 2,\n"
          "     accelerator_memory_gib: 24, peak_tflops: {fp32: 35, bf16: 70}, memory_bandwidth_gbs: 600,\n"
          "     network_gbps: 10, price_per_hour: {on_demand: 1.5, spot: 0.5}, source: here}\n" +
          kProcessor,
      "m.yaml");
  ASSERT_EQ(table.machines.size(), 2U);
  EXPECT_EQ(table.date, "2026-01-02");
  const MachineType& gpu = table.machines[0];
  EXPECT_EQ(gpu.kind, MachineType::Kind::gpu);
  EXPECT_EQ(gpu.accelerators, 2);
  EXPECT_EQ(gpu.peak_tflops.at("bf16"), 70);
  EXPECT_EQ(gpu.on_demand, 1.5);
  EXPECT_EQ(gpu.spot, 0.5);
  EXPECT_FALSE(table.machines[1].on_demand);
}

TEST(Machines, AMistakeIsNamedWithItsPlace) {
  const auto with = [](const std::string& what, const std::string& instead) {
    std::string text = kHead + kProcessor;
    return text.replace(text.find(what), what.size(), instead);
  };
  EXPECT_ERROR(wrong("date: [1"), "MACHINES_INVALID", "m.yaml:");
  EXPECT_ERROR(wrong("- 1\n"), "MACHINES_INVALID", "the table is not a map");
  EXPECT_ERROR(wrong("date: 1\ncurrency: USD\nmachines: []\n"), "MACHINES_INVALID",
               "m.yaml:3:11: machines is not a list");
  EXPECT_ERROR(wrong(kHead + "  - 3\n"), "MACHINES_INVALID", "m.yaml:4:5: a machine is not a map");
  EXPECT_ERROR(wrong(with("cores: 8", "cors: 8")), "MACHINES_INVALID", "a machine has no key 'cors'");
  EXPECT_ERROR(wrong(with("cores: 8", "cores: -8")), "MACHINES_INVALID", "m.yaml:4:57: cores is not a number above 0");
  EXPECT_ERROR(wrong(with("memory_gib: 16", "memory_gib: 16GiB")), "MACHINES_INVALID", "memory_gib is not a number");
  EXPECT_ERROR(wrong(with("cores: 8, ", "")), "MACHINES_INVALID", "cores is missing");
  EXPECT_ERROR(wrong(with("kind: cpu", "kind: npu")), "MACHINES_INVALID", "kind is 'npu'");
  EXPECT_ERROR(wrong(with("kind: cpu", "kind: gpu")), "MACHINES_INVALID", "accelerators is missing");
  EXPECT_ERROR(wrong(with("cores: 8", "cores: 8, accelerators: 1")), "MACHINES_INVALID", "a cpu has no accelerators");
  EXPECT_ERROR(wrong(with("{fp32: 1}", "{fp64: 1}")), "MACHINES_INVALID", "peak_tflops has no key 'fp64'");
  EXPECT_ERROR(wrong(with("{fp32: 1}", "{}")), "MACHINES_INVALID", "peak_tflops is empty");
  EXPECT_ERROR(wrong(with("source: here", "name: x, source: here")), "MACHINES_INVALID", "name is given twice");
  EXPECT_ERROR(wrong(kHead + kProcessor + kProcessor), "MACHINES_INVALID", "m.yaml:6:5: c is there twice");
  EXPECT_ERROR(wrong(std::string(2 << 20, ' ')), "MACHINES_INVALID", "1 MiB");
}

}  // namespace
}  // namespace sinew::advise
