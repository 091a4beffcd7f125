#include "caftan/nn/shared_module.hpp"

#include <string>
#include <utility>

#include "caftan/nn/internal/shared_control.hpp"
#include "caftan/optim/internal/state_bulk.hpp"
#include "shared/trainer.hpp"

namespace caftan::nn {
namespace {

Error not_joined() {
  return {Errc::bad_arguments,
          "this handle is no trainer of the shared module: call join(number) where the trainer runs"};
}
Error is_empty() { return {Errc::bad_arguments, "an empty handle of a shared module"}; }

}  // namespace

Result<void> SharedHandle::share(const CallSite& site, const rpc::Destination& to, RRef<ServedModule> module,
                                 const SharedOptions& options) {
  if (const Result<void> served = module_.serve(site, to, module); !served) return served;
  Result<RRef<SharedControl>> control = site.try_remote(kShareModule, to, module, options);
  if (!control) return control.error();
  control_ = *std::move(control);
  return {};
}

Future<void> SharedHandle::created() const { return control_.created(); }

std::optional<std::uint32_t> SharedHandle::trainer() const noexcept {
  if (!trainer_) return std::nullopt;
  return trainer_->number();
}

void SharedHandle::set_options(CallOptions options) {
  options_ = options;
  module_.set_options(options);
}

Result<void> SharedHandle::try_join(std::uint32_t number) {
  if (!control_) return is_empty();
  if (trainer_) {
    return Error(Errc::bad_arguments, "this handle has joined as trainer " + std::to_string(trainer_->number()));
  }
  Ambient ambient = Ambient::capture();
  ambient.autograd_context.reset();  // the trainer lives longer than a context in which it joins
  const AmbientSwap swap(&ambient);
  Result<RRef<TrainerSeat>> seat = control_.with(options_).try_rpc_sync<&SharedControl::join>(number);
  if (!seat) return seat.error();
  trainer_ = std::make_shared<Trainer>(number, *std::move(seat));
  return {};
}

Future<StepResult> SharedHandle::step_async(const autograd::ContextView& context, std::uint64_t batch) const {
  if (!trainer_) return make_ready_future<StepResult>(not_joined());
  if (!context.record()) {
    return make_ready_future<StepResult>(Error(Errc::bad_arguments, "the autograd context is empty, or moved away"));
  }
  return trainer_->step(context.record(), batch, options_);
}

Result<optim::LearningRates*> SharedHandle::try_rates() const {
  if (!trainer_) return not_joined();
  if (optim::LearningRates* const known = trainer_->rates()) return known;
  const Result<SharedRates> rates = control_.with(options_).try_rpc_sync<&SharedControl::rates>();
  if (!rates) return rates.error();
  return trainer_->keep_rates(*rates);
}

Result<SharedStatus> SharedHandle::try_status() const {
  if (!control_) return is_empty();
  return control_.with(options_).try_rpc_sync<&SharedControl::status>();
}

Result<wire::Bytes> SharedHandle::try_save_optimizer() const {
  if (!control_) return is_empty();
  auto state = control_.with(options_).try_rpc_sync<&SharedControl::save_optimizer>();
  if (state || state.error().code() != Errc::limit_exceeded) return state;
  const auto bulk = control_.with(options_).try_rpc_sync<&SharedControl::save_optimizer_bulk>();
  if (!bulk) return bulk.error();
  return optim::from_bulk(*bulk);
}

Result<void> SharedHandle::try_load_optimizer(wire::ByteView state) const {
  if (!control_) return is_empty();
  wire::Bytes bytes(state.begin(), state.end());
  const auto loaded = control_.with(options_).try_rpc_sync<&SharedControl::load_optimizer>(bytes);
  if (loaded || loaded.error().code() != Errc::limit_exceeded) return loaded;
  return control_.with(options_).try_rpc_sync<&SharedControl::load_optimizer_bulk>(optim::to_bulk(std::move(bytes)));
}

Future<Reading> SharedHandle::open() const {
  if (!trainer_) return make_ready_future<Reading>(not_joined());
  return trainer_->open(options_);
}

Future<Reading> SharedHandle::open_evaluation() const {
  if (!control_) return make_ready_future<Reading>(is_empty());
  return control_.with(options_).rpc_async<&SharedControl::evaluate>();
}

}  // namespace caftan::nn
