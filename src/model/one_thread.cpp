#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <omp.h>

#include <mutex>

#include "base/check.h"
#include "model/model.h"

namespace sinew::model {
namespace {

// Makes MKL choose the code of its vector functions (exp, log, tanh ...) for this CPU. At the first call in a process
// MKL stores the kind of the CPU in a variable, and then stores there the index of the code. It takes no lock. If
// another thread calls a vector function between these two stores, it runs other code, and gets other bits. Matrix
// products choose their code at their first call, too.
void choose_kernels() {
  for (const auto type : {torch::kFloat32, torch::kFloat64}) {
    const torch::Tensor some = torch::zeros({16, 16}, type);
    some.exp();
    some.mm(some);
  }
}

}  // namespace

void use_one_thread() {
  // A new thread may use libtorch's default number of threads. Both OpenMP's and ATen's number must be set before the
  // first kernel.
  omp_set_num_threads(1);
  at::init_num_threads();
  at::set_num_threads(1);
  SINEW_CHECK(at::get_num_threads() == 1, at::get_num_threads());
  static std::once_flag chosen;
  std::call_once(chosen, choose_kernels);
}

}  // namespace sinew::model
