#include "running_pass.hpp"

namespace caftan::autograd {

thread_local constinit RunningPass* RunningPass::current_ = nullptr;

}  // namespace caftan::autograd
