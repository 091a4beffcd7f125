#include "pipeline/stage_module.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/function.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

#include "caftan/autograd/checkpoint.hpp"
#include "caftan/caftan.hpp"
#include "caftan/nn/served_module.hpp"
#include "pipeline/memory.hpp"

namespace caftan::pipeline {
namespace {

ModelPart make_part(const StageSpec& spec) {
  auto part = ModelPart::make(spec.model, {spec.first_unit, spec.end_unit});
  if (!part) throw std::invalid_argument(part.error().text());
  return *std::move(part);
}

/// Gives each leaf of a book its gradient, in a backward that comes to it.
class GivenGradients final : public torch::autograd::Node {
 public:
  explicit GivenGradients(autograd::GradientBook book) : book_(std::move(book)) {
    for (const auto& entry : book_.entries()) add_next_edge(torch::autograd::impl::gradient_edge(entry.leaf));
  }
  std::string name() const override { return "GivenGradients"; }

 private:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& /*gradients*/) override {
    torch::autograd::variable_list gradients;
    const autograd::GradientBook given = std::exchange(book_, {});
    for (const auto& entry : given.entries()) gradients.push_back(entry.gradient);
    gradients.resize(num_outputs());
    return gradients;
  }

  autograd::GradientBook book_;
};

/// Returns a scalar behind which a backward finds the gradients of a book.
at::Tensor root_of(autograd::GradientBook book) {
  std::shared_ptr<GivenGradients> node(new GivenGradients(std::move(book)), torch::autograd::deleteNode);
  at::Tensor root = at::zeros({});
  torch::autograd::create_gradient_edge(root, node);
  return root;
}

}  // namespace

at::Tensor keep(at::Tensor tensor) { return tensor; }

StageModule::StageModule(const StageSpec& spec) : spec_(spec), part_(make_part(spec)) {
  const auto parameters = part_.named_parameters();
  log_ = std::make_shared<WorkLog>(parameters.size());
  for (const nn::NamedTensor& parameter : parameters) {
    parameter.tensor.register_hook([log = log_](const at::Tensor&) { log->add_gradient(); });
  }
  forget_peak_memory();
  memory_ = resident_memory();
}

Result<RRef<at::Tensor>> StageModule::forward(Worker& worker, RRef<at::Tensor> input, MicroBatch micro_batch) {
  const auto here = input.try_to_here();
  if (!here) return here.error();
  if (auto fits = part_.check_input(here->sizes()); !fits) return fits.error();
  return worker.try_remote<&keep>(spec_.next, run(*here, micro_batch));
}

at::Tensor StageModule::run(const at::Tensor& input, const MicroBatch& micro_batch) const {
  const Draw draw{.step = micro_batch.step, .first_row = micro_batch.first_row};
  if (!part_.is_training()) return part_.forward(input, draw);
  const double begin = log_->now();
  at::Tensor output = spec_.checkpoints ? run_checkpointed(input, draw) : part_.forward(input, draw);
  log_->end_forward(micro_batch.number, begin);
  if (output.requires_grad()) {
    output.register_hook([log = log_, number = micro_batch.number](const at::Tensor&) { log->begin_backward(number); });
  }
  return output;
}

/// Runs the units so that autograd keeps their input only. The second run has the same dropout masks, which are a
/// function of the draw, normalises by the same batch, and leaves running statistics as the first run left them.
at::Tensor StageModule::run_checkpointed(const at::Tensor& input, const Draw& draw) const {
  const auto segment = [part = part_, draw, is_first = true](const std::vector<at::Tensor>& inputs) mutable {
    const bool again = !std::exchange(is_first, false);
    return std::vector{again ? part.forward_again(inputs.front(), draw, true) : part.forward(inputs.front(), draw)};
  };
  // The images of the first stage need no gradient; a checkpoint has an input that does.
  const at::Tensor marker = at::empty({0}).requires_grad_(true);
  return autograd::checkpoint(segment, {input, marker}, {.preserve_random_state = false}).front();
}

Future<void> StageModule::backward_ended(std::uint32_t micro_batch) { return log_->backward_ended(micro_batch); }

Result<void> StageModule::take_gradients(Worker& worker, std::uint32_t micro_batch) {
  log_->end_pass(micro_batch);
  const auto context = autograd::Context::try_current(worker);
  if (!context) return context.error();
  auto gradients = context->try_gradients();
  if (!gradients) return gradients.error();
  const c10::NoGradGuard no_grad;
  sum_.merge(*std::move(gradients));
  return {};
}

Result<at::Tensor> StageModule::give_gradients() {
  if (sum_.empty()) return Error(Errc::bad_arguments, "this stage has no gradients of micro-batches to give");
  return root_of(std::exchange(sum_, {}));
}

StageReport StageModule::report() {
  return {.works = log_->take(),
          .most_held = log_->take_most_held(),
          .memory = memory_,
          .peak_memory = peak_memory(),
          .process = ::getpid()};
}

void register_stages(Registry& registry) {
  registry.add<&keep>("pipeline.keep");
  registry.open("pipeline.keep");  // a stage keeps its output at the next one, which it does not use otherwise
  nn::add_module<StageModule>(registry, "pipeline.stage_module")
      .constructor<StageSpec>()
      .method<&StageModule::forward>("forward")
      .method<&StageModule::backward_ended>("backward_ended")
      .method<&StageModule::take_gradients>("take_gradients")
      .method<&StageModule::give_gradients>("give_gradients")
      .method<&StageModule::report>("report");
}

}  // namespace caftan::pipeline
