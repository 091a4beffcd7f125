#include "caftan/optim/internal/remote_optimizer.hpp"

#include <utility>

#include "caftan/autograd/internal/context_record.hpp"
#include "caftan/optim/custom_algorithm.hpp"
#include "caftan/optim/internal/state_bulk.hpp"

namespace caftan::optim {

Result<std::vector<at::Tensor>> RemoteOptimizer::gradients_of(const CallInfo& info) const {
  const auto context = std::static_pointer_cast<autograd::ContextRecord>(info.autograd_context.lock());
  if (!context) return Error(Errc::unknown_context, "a step outside of any autograd context");
  for (const auto& object : objects_) {
    if (Result<void> free = rpc::check_not_held(*object, info.held); !free) return free.error();
  }
  auto book = context->gradients();
  if (!book) return book.error();
  std::vector<at::Tensor> gradients;
  gradients.reserve(parameters_.size());
  for (const at::Tensor& parameter : parameters_) gradients.push_back(book->of(parameter));
  return gradients;
}

Result<std::vector<std::shared_ptr<rpc::HostedObject>>> wait_for_parameters(
    const std::vector<RRef<at::Tensor>>& parameters) {
  std::vector<std::shared_ptr<rpc::HostedObject>> objects;
  for (const RRef<at::Tensor>& parameter : parameters) {
    auto object = rpc::wait_for_local(parameter.handle(), {});
    if (!object) return object.error();
    objects.push_back(*std::move(object));
  }
  return objects;
}

Future<StepDone> RemoteOptimizer::step_with(const CallInfo& info, const StepOrder& order, const Momenta& momenta) {
  auto gradients = gradients_of(info);
  if (!gradients) return make_ready_future<StepDone>(gradients.error());
  Promise<StepDone> reply;
  Future<StepDone> done = reply.future();
  mailbox_->send(optimizer_request::Step{order, *std::move(gradients), std::move(reply), momenta});
  return done;
}

Future<Prepared> RemoteOptimizer::prepare_with(const CallInfo& info, const StepOrder& order, const Momenta& momenta) {
  auto gradients = gradients_of(info);
  if (!gradients) return make_ready_future<Prepared>(gradients.error());
  Promise<Prepared> reply;
  Future<Prepared> prepared = reply.future();
  mailbox_->send(optimizer_request::Prepare{order, *std::move(gradients), std::move(reply), momenta});
  return prepared;
}

Future<StepDone> RemoteOptimizer::commit(StepNumber step, double scale) {
  Promise<StepDone> reply;
  Future<StepDone> done = reply.future();
  mailbox_->send(optimizer_request::Commit{step, scale, std::move(reply)});
  return done;
}

Future<SearchReply> RemoteOptimizer::search(const CallInfo& info, const SearchOrder& order) {
  auto gradients = gradients_of(info);
  if (!gradients) return make_ready_future<SearchReply>(gradients.error());
  Promise<SearchReply> reply;
  Future<SearchReply> searched = reply.future();
  mailbox_->send(optimizer_request::Search{order, *std::move(gradients), std::move(reply)});
  return searched;
}

void RemoteOptimizer::abort(StepNumber step) { mailbox_->send(optimizer_request::Abort{step}); }

Future<wire::Bytes> RemoteOptimizer::save() {
  Promise<wire::Bytes> reply;
  Future<wire::Bytes> state = reply.future();
  mailbox_->send(optimizer_request::Save{std::move(reply)});
  return state;
}

Future<OwnerState> RemoteOptimizer::cut() {
  Promise<OwnerState> reply;
  Future<OwnerState> state = reply.future();
  mailbox_->send(optimizer_request::Cut{std::move(reply)});
  return state;
}

Future<OwnerBulk> RemoteOptimizer::cut_bulk() {
  return cut().then([](Result<OwnerState> part) -> Result<OwnerBulk> {
    if (!part) return part.error();
    return OwnerBulk{part->step, to_bulk(std::move(part->state))};
  });
}

Future<void> RemoteOptimizer::stage_bulk(const at::Tensor& state) {
  Result<wire::Bytes> bytes = from_bulk(state);
  if (!bytes) return make_ready_future<void>(bytes.error());
  return stage_state(*std::move(bytes));
}

Future<void> RemoteOptimizer::stage_state(wire::Bytes state) {
  staged_.clear();
  Promise<void> reply;
  Future<void> staged = reply.future();
  mailbox_->send(optimizer_request::StageState{std::move(state), std::move(reply)});
  return staged;
}

Future<void> RemoteOptimizer::stage_group(OptimizerSpec::Group group) {
  if (Result<void> known = resolve(group.algorithm, *registry_); !known) {
    return make_ready_future<void>(known.error());
  }
  auto objects = wait_for_parameters(group.parameters);
  if (!objects) return make_ready_future<void>(objects.error());
  staged_ = *objects;
  Promise<void> reply;
  Future<void> staged = reply.future();
  mailbox_->send(optimizer_request::StageGroup{std::move(group), *std::move(objects), std::move(reply)});
  return staged;
}

void RemoteOptimizer::drop_state() {
  staged_.clear();
  mailbox_->send(optimizer_request::DropState{});
}

Future<void> RemoteOptimizer::take_state(StepNumber step) {
  for (auto& object : std::exchange(staged_, {})) {
    // A value that is no tensor was refused when its group was staged.
    const at::Tensor* const parameter = object->as<at::Tensor>();
    if (parameter) parameters_.push_back(*parameter);
    objects_.push_back(std::move(object));
  }
  Promise<void> reply;
  Future<void> taken = reply.future();
  mailbox_->send(optimizer_request::TakeState{step, std::move(reply)});
  return taken;
}

}  // namespace caftan::optim
