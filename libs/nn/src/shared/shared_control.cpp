#include "caftan/nn/internal/shared_control.hpp"

#include <string>

#include "caftan/autograd/internal/context_record.hpp"
#include "caftan/optim/internal/state_bulk.hpp"

namespace caftan::nn {
namespace {

Result<std::shared_ptr<autograd::ContextRecord>> context_of(const CallInfo& info) {
  auto record = std::static_pointer_cast<autograd::ContextRecord>(info.autograd_context.lock());
  if (!record) return Error(Errc::unknown_context, "a trainer's call outside of any autograd context");
  return record;
}

}  // namespace

Future<Reading> TrainerSeat::open(const CallInfo& info) {
  const auto record = context_of(info);
  if (!record) return make_ready_future<Reading>(record.error());
  Promise<Reading> answer;
  Future<Reading> reading = answer.future();
  const ContextId context = (*record)->id();
  mailbox_->send(shared_event::Open{context, trainer_, std::move(answer)});
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
  Promise<StepResult> answer;
  Future<StepResult> result = answer.future();
  mailbox_->send(shared_event::Step{(*record)->id(), batch, *std::move(book), std::move(answer), rates});
  return result;
}

Future<RRef<TrainerSeat>> SharedControl::join(const CallInfo& info, std::uint32_t number) {
  Promise<void> answer;
  Future<void> admitted = answer.future();
  mailbox_->send(shared_event::Join{{number}, info.caller.name(), std::move(answer)});
  return std::move(admitted).then(
      [site = module_->site(), mailbox = mailbox_, number](const Result<void>& outcome) -> Result<RRef<TrainerSeat>> {
        if (!outcome) return outcome.error();
        return site.make_rref(TrainerSeat(mailbox, {number}));
      });
}

Future<Reading> SharedControl::evaluate() {
  Promise<OpenedEvaluation> answer;
  Future<OpenedEvaluation> opened = answer.future();
  mailbox_->send(shared_event::Evaluate{std::move(answer)});
  return std::move(opened).then(
      [site = module_->site(), mailbox = mailbox_](const Result<OpenedEvaluation>& outcome) -> Result<Reading> {
        if (!outcome) return outcome.error();
        ReadingHold hold(mailbox, outcome->evaluation);
        return Reading{outcome->module, outcome->version, site.make_rref(std::move(hold))};
      });
}

Future<SharedStatus> SharedControl::status() {
  Promise<SharedStatus> answer;
  Future<SharedStatus> status = answer.future();
  mailbox_->send(shared_event::AskStatus{std::move(answer)});
  return status;
}

Future<SharedRates> SharedControl::rates() {
  auto answer = std::make_shared<Promise<SharedRates>>();
  Future<SharedRates> known = answer->future();
  module_->rates([answer](Result<SharedRates> rates) { answer->set(std::move(rates)); });
  return known;
}

Future<wire::Bytes> SharedControl::save_optimizer() {
  auto answer = std::make_shared<Promise<wire::Bytes>>();
  Future<wire::Bytes> saved = answer->future();
  module_->save_optimizer([answer](Result<wire::Bytes> state) { answer->set(std::move(state)); });
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
  auto answer = std::make_shared<Promise<void>>();
  Future<void> loaded = answer->future();
  module_->load_optimizer(std::move(state), [answer](Result<void> outcome) { answer->set(std::move(outcome)); });
  return loaded;
}

}  // namespace caftan::nn
