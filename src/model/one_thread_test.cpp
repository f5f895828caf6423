#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>

#include "model/model.h"

namespace sinew::model {
namespace {

// Reads the variable in which MKL keeps its choice of code for vector functions: -1 before the choice. Returns nullopt
// if this libtorch is built without MKL.
std::optional<int> vector_code_of_mkl() {
  Dl_info library;
  link_map* map = nullptr;
  if (dladdr1(reinterpret_cast<const void*>(&at::get_num_threads), &library, reinterpret_cast<void**>(&map),
              RTLD_DL_LINKMAP) == 0)
    return std::nullopt;
  const std::string command = "nm '" + std::string(library.dli_fname) + "'";
  FILE* const list = popen(command.c_str(), "r");
  std::optional<int> found;
  char line[4096];
  while (list != nullptr && fgets(line, sizeof line, list) != nullptr) {
    if (std::string(line).find(" mkl_vml_serv_cpu_detect.vml_cpu_type") == std::string::npos) continue;
    found = *reinterpret_cast<const int*>(map->l_addr + std::strtoull(line, nullptr, 16));
  }
  if (list != nullptr) pclose(list);
  return found;
}

// MKL chooses without a lock, so a second thread that calls at the same moment can get other bits. Each case is a new
// process, in which nothing has been computed.
TEST(OneThread, MklHasChosenItsCodeBeforeTheFirstShard) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        use_one_thread();
        std::_Exit(vector_code_of_mkl() == -1 ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(OneThread, HoldsInEveryThread) {
  use_one_thread();
  std::thread([] {
    use_one_thread();
    EXPECT_EQ(at::get_num_threads(), 1);
  }).join();
}

}  // namespace
}  // namespace sinew::model
