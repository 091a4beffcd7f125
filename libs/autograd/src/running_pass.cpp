#include "running_pass.hpp"

#include <torch/csrc/autograd/graph_task.h>

namespace caftan::autograd {

thread_local constinit RunningPass* RunningPass::current_ = nullptr;

RunningPass::RunningPass(const ContextId& context) noexcept
    : context_(context), outer_(current_), stock_task_(torch::autograd::get_current_graph_task_id()) {
  current_ = this;
}

bool RunningPass::is_innermost() const noexcept { return stock_task_ == torch::autograd::get_current_graph_task_id(); }

}  // namespace caftan::autograd
