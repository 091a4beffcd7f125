#include "runners.hpp"

#include <ATen/Parallel.h>

namespace caftan::actors {

namespace {
constexpr unsigned kThreads = 128;  // that may wait in calls, beside run() of each role
}

std::shared_ptr<transport::ThreadedExecutor> make_runners(std::size_t workers) {
  return std::make_shared<transport::ThreadedExecutor>(transport::ThreadedExecutor::Options{
      .max_threads = kThreads + static_cast<unsigned>(workers),
      .on_thread_start = [threads = at::get_num_threads()] { at::set_num_threads(threads); }});
}

}  // namespace caftan::actors
