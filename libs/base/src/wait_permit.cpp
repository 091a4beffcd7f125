#include "caftan/base/wait_permit.hpp"

namespace caftan::base {

namespace {

thread_local RunnerLimit* current_limit = nullptr;

}  // namespace

RunnerLimit* RunnerLimit::current() noexcept { return current_limit; }
void RunnerLimit::set_current(RunnerLimit* limit) noexcept { current_limit = limit; }

}  // namespace caftan::base
