#include "caftan/nn/internal/shared_control.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "caftan/autograd/internal/context_record.hpp"
#include "caftan/optim/internal/state_bulk.hpp"

namespace caftan::nn {
namespace {

Result<std::shared_ptr<autograd::ContextRecord>> context_of(const CallInfo& info) {
  auto record = std::static_pointer_cast<autograd::ContextRecord>(info.autograd_context.lock());
  if (!record) return trainer_outside_context();
  return record;
}

/// Returns when to answer a call that waits, so that the reply comes before the caller's time is over (CM-28).
std::optional<base::TimePoint> shortly_before_its_end(const CallInfo& info) {
  if (!info.gate || info.deadline == base::kNever) return std::nullopt;
  constexpr base::Duration kMost = std::chrono::seconds(1);
  return info.deadline - std::clamp((info.deadline - info.gate->arrived()) / 10, base::Duration::zero(), kMost);
}

}  // namespace

Error trainer_outside_context() {
  return {Errc::unknown_context,
          "a trainer reads a shared module inside of an autograd context: begin one with "
          "autograd::Context context(worker), or call evaluate"};
}

Future<Reading> TrainerSeat::open(const CallInfo& info) {
  const auto record = context_of(info);
  if (!record) return make_ready_future<Reading>(record.error());
  Promise<Reading> reply;
  Future<Reading> reading = reply.future();
  const ContextId context = (*record)->id();
  mailbox_->send(shared_event::Open{context, trainer_, std::move(reply)});
  (*record)->when_over([mailbox = std::weak_ptr<SharedMailbox>(mailbox_), context] {
    if (const auto alive = mailbox.lock()) alive->send(shared_event::Over{context});
  });
  return reading;
}

Future<StepResult> TrainerSeat::step(const CallInfo& info, std::uint64_t batch) {
  return deliver(info, batch, std::nullopt);
}

Future<StepResult> TrainerSeat::step_with(const CallInfo& info, std::uint64_t batch, StepRates rates) {
  return deliver(info, batch, rates);
}

Future<StepResult> TrainerSeat::deliver(const CallInfo& info, std::uint64_t batch,
                                        const std::optional<StepRates>& rates) {
  const auto record = context_of(info);
  if (!record) return make_ready_future<StepResult>(record.error());
  Result<autograd::GradientBook> book = (*record)->gradients();
  if (!book) return make_ready_future<StepResult>(book.error());
  Promise<StepResult> reply;
  Future<StepResult> result = reply.future();
  mailbox_->send(
      shared_event::Step{(*record)->id(), trainer_, batch, *std::move(book), std::move(reply), rates, info.gate});
  if (const auto answer_by = shortly_before_its_end(info)) {
    mailbox_->send(shared_event::Waits{(*record)->id(), *answer_by});
  }
  return result;
}

Future<RRef<TrainerSeat>> SharedControl::join(const CallInfo& info, std::uint32_t number) {
  Promise<void> reply;
  Future<void> admitted = reply.future();
  mailbox_->send(shared_event::Join{{number}, info.caller.name(), std::move(reply)});
  return std::move(admitted).then(
      [site = module_->site(), mailbox = mailbox_, number](const Result<void>& outcome) -> Result<RRef<TrainerSeat>> {
        if (!outcome) return outcome.error();
        return site.make_rref(TrainerSeat(mailbox, {number}));
      });
}

Future<Reading> SharedControl::evaluate() {
  Promise<OpenedEvaluation> reply;
  Future<OpenedEvaluation> opened = reply.future();
  mailbox_->send(shared_event::Evaluate{std::move(reply)});
  return std::move(opened).then(
      [site = module_->site(), mailbox = mailbox_](const Result<OpenedEvaluation>& outcome) -> Result<Reading> {
        if (!outcome) return outcome.error();
        ReadingHold hold(mailbox, outcome->evaluation);
        return Reading{outcome->module, outcome->version, site.make_rref(std::move(hold))};
      });
}

Future<SharedStatus> SharedControl::status() {
  Promise<SharedStatus> reply;
  Future<SharedStatus> status = reply.future();
  mailbox_->send(shared_event::AskStatus{std::move(reply)});
  return status;
}

Future<SharedRates> SharedControl::rates() {
  auto answer = std::make_shared<Promise<SharedRates>>();
  Future<SharedRates> known = answer->future();
  module_->rates([answer](Result<SharedRates> rates) { answer->set(std::move(rates)); });
  return known;
}

Future<wire::Bytes> SharedControl::save_optimizer() {
  auto reply = std::make_shared<Promise<wire::Bytes>>();
  Future<wire::Bytes> saved = reply->future();
  module_->save_optimizer([reply](Result<wire::Bytes> state) { reply->set(std::move(state)); });
  return saved;
}

Future<at::Tensor> SharedControl::save_optimizer_bulk() {
  return save_optimizer().then([](Result<wire::Bytes> state) -> Result<at::Tensor> {
    if (!state) return state.error();
    return optim::to_bulk(*std::move(state));
  });
}

Future<void> SharedControl::load_optimizer_bulk(const at::Tensor& state) {
  Result<wire::Bytes> bytes = optim::from_bulk(state);
  if (!bytes) return make_ready_future<void>(bytes.error());
  return load_optimizer(*std::move(bytes));
}

Future<void> SharedControl::load_optimizer(wire::Bytes state) {
  auto reply = std::make_shared<Promise<void>>();
  Future<void> loaded = reply->future();
  module_->load_optimizer(std::move(state), [reply](Result<void> outcome) { reply->set(std::move(outcome)); });
  return loaded;
}

}  // namespace caftan::nn
