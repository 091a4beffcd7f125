#include "worker/runners.hpp"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>

namespace caftan::actors {

namespace {
constexpr unsigned kThreads = 128;  // threads that may wait in calls, besides one for run() of each role
}

void warm_up_vector_math() {
  // At the first call MKL's vector functions detect the CPU, and other threads see an intermediate value meanwhile: a
  // thread that calls at that moment gets less exact routines (docs/testing.md, "Known").
  static const bool done = [] {
    (void)at::ones({1}).sqrt();
    return true;
  }();
  (void)done;
}

std::shared_ptr<transport::ThreadedExecutor> make_runners(std::size_t workers, const transport::SpinOptions& spin) {
  warm_up_vector_math();
  return std::make_shared<transport::ThreadedExecutor>(transport::ThreadedExecutor::Options{
      .max_threads = kThreads + static_cast<unsigned>(workers),
      .on_thread_start = [threads = at::get_num_threads()] { at::set_num_threads(threads); },
      .spin = spin});
}

}  // namespace caftan::actors
