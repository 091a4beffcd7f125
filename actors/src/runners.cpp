#include "runners.hpp"

#include <ATen/Parallel.h>

namespace caftan::actors {

std::shared_ptr<transport::ThreadedExecutor> make_runners() {
  return std::make_shared<transport::ThreadedExecutor>(transport::ThreadedExecutor::Options{
      .on_thread_start = [threads = at::get_num_threads()] { at::set_num_threads(threads); }});
}

}  // namespace caftan::actors
