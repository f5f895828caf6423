#include "base/energy.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/expected_error.h"

namespace sinew {
namespace {

class EnergyCounterTest : public testing::Test {
 protected:
  EnergyCounterTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sinew-energy-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  ~EnergyCounterTest() override { std::filesystem::remove_all(root_); }

  void zone(const std::string& zone, const std::string& name, const std::string& microjoules) {
    std::filesystem::create_directories(root_ / zone);
    std::ofstream(root_ / zone / "name") << name << "\n";
    std::ofstream(root_ / zone / "max_energy_range_uj") << "1000000000\n";
    std::ofstream(root_ / zone / "energy_uj") << microjoules << "\n";
  }

  std::filesystem::path root_;
};

TEST_F(EnergyCounterTest, PackagesAndMemoryAddUpAndNothingCountsTwice) {
  zone("intel-rapl:0", "package-0", "5000000");
  zone("intel-rapl:0:0", "core", "0");
  zone("intel-rapl:0:1", "dram", "1000000");
  zone("intel-rapl:1", "psys", "0");
  zone("intel-rapl-mmio:0", "package-0", "0");
  EnergyCounter counter(root_);
  EXPECT_EQ(counter.joules(), 0) << "counting begins with the object";
  zone("intel-rapl:0", "package-0", "8000000");
  zone("intel-rapl:0:0", "core", "2000000");
  zone("intel-rapl:0:1", "dram", "1500000");
  zone("intel-rapl:1", "psys", "9000000");
  zone("intel-rapl-mmio:0", "package-0", "3000000");
  EXPECT_DOUBLE_EQ(counter.joules(), 3.5);
  EXPECT_DOUBLE_EQ(counter.joules(), 3.5);
}

TEST_F(EnergyCounterTest, ACounterThatBeginsAgainGoesOn) {
  zone("intel-rapl:0", "package-0", "999000000");
  EnergyCounter counter(root_);
  zone("intel-rapl:0", "package-0", "2000000");
  EXPECT_NEAR(counter.joules(), 3, 1e-9);
}

TEST_F(EnergyCounterTest, AMachineWithoutCountersNeedsThePower) {
  EXPECT_ERROR(error_of([&] { EnergyCounter(root_ / "nothing"); }), "ENERGY_NOT_MEASURED", "no energy counters");
  zone("intel-rapl:0:0", "core", "0");
  EXPECT_ERROR(error_of([&] { EnergyCounter{root_}; }), "ENERGY_NOT_MEASURED", "no energy counters");
}

TEST_F(EnergyCounterTest, ACounterThatCannotBeReadIsNamed) {
  zone("intel-rapl:0", "package-0", "1");
  zone("intel-rapl:1", "package-1", "no number");
  EXPECT_ERROR(error_of([&] { EnergyCounter{root_}; }), "ENERGY_NOT_MEASURED", "intel-rapl:1/energy_uj");
}

}  // namespace
}  // namespace sinew
