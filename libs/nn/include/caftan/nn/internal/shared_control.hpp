/// What a handle of a shared module refers to at the owner: `SharedControl`, and for each trainer a `TrainerSeat`.
/// Their methods hand one event each to the module's actor, which answers the future. Users start with
/// shared_module.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "caftan/nn/internal/owned_shared.hpp"
#include "caftan/nn/internal/shared_server.hpp"
#include "caftan/rpc/function.hpp"

namespace caftan::nn {

/// The way to the actor, which ends with it.
class SharedMailbox {
 public:
  virtual ~SharedMailbox() = default;
  /// Threads: any; does not block.
  virtual void send(SharedEvent event) = 0;
};

/// Keeps the version of an evaluation for as long as it exists. Move-only.
class ReadingHold {
 public:
  ReadingHold(std::shared_ptr<SharedMailbox> mailbox, EvaluationId evaluation)
      : mailbox_(std::move(mailbox)), evaluation_(evaluation) {}
  ReadingHold(ReadingHold&&) noexcept = default;
  ReadingHold& operator=(ReadingHold&&) = delete;
  ~ReadingHold() {
    if (mailbox_) mailbox_->send(shared_event::Evaluated{evaluation_});
  }

 private:
  std::shared_ptr<SharedMailbox> mailbox_;
  EvaluationId evaluation_;
};

/// Returns the error of a trainer's call outside of any autograd context: unknown_context.
Error trainer_outside_context();

/// A trainer at the owner: gone with the last reference to this. Move-only. Errors of all methods: unknown_context
/// (called outside any context), context_released, and those of SharedServer.
class TrainerSeat {
 public:
  TrainerSeat(std::shared_ptr<SharedMailbox> mailbox, TrainerNumber trainer)
      : mailbox_(std::move(mailbox)), trainer_(trainer) {}
  TrainerSeat(TrainerSeat&&) noexcept = default;
  TrainerSeat& operator=(TrainerSeat&&) = delete;
  ~TrainerSeat() {
    if (mailbox_) mailbox_->send(shared_event::Gone{trainer_});
  }

  /// Returns what the call's context reads, once it may read.
  Future<Reading> open(const CallInfo& info);
  /// Delivers the gradients of the call's context.
  Future<StepResult> step(const CallInfo& info, std::uint64_t batch);
  /// As step, at these rates. Errors: also bad_arguments (rates that the algorithm does not take).
  Future<StepResult> step_with(const CallInfo& info, std::uint64_t batch, StepRates rates);

 private:
  Future<StepResult> deliver(const CallInfo& info, std::uint64_t batch, const std::optional<StepRates>& rates);

  std::shared_ptr<SharedMailbox> mailbox_;
  TrainerNumber trainer_;
};

/// Errors of all methods: shut_down (the worker is ending).
class SharedControl {
 public:
  SharedControl(std::shared_ptr<OwnedShared> module, std::shared_ptr<SharedMailbox> mailbox)
      : module_(std::move(module)), mailbox_(std::move(mailbox)) {}

  /// Makes the caller's worker a trainer. Errors: bad_arguments (no such number, or one that has a trainer).
  Future<RRef<TrainerSeat>> join(const CallInfo& info, std::uint32_t number);
  /// Returns a copy of the newest version.
  Future<Reading> evaluate();
  /// Returns what is known of the module.
  Future<SharedStatus> status();
  /// Returns the rates that the next step would be made at, and the initial one.
  Future<SharedRates> rates();
  /// Returns options and state of the optimizer. Errors: limit_exceeded.
  Future<wire::Bytes> save_optimizer();
  /// As save_optimizer, of a state that is larger than a message: a tensor of bytes.
  Future<at::Tensor> save_optimizer_bulk();
  /// Takes over what save_optimizer returned. Errors: those of LocalOptimizer::load, module_busy.
  Future<void> load_optimizer(wire::Bytes state);
  /// As load_optimizer, of a state that is larger than a message. Errors: also malformed_payload (no bytes).
  Future<void> load_optimizer_bulk(const at::Tensor& state);

 private:
  std::shared_ptr<OwnedShared> module_;
  std::shared_ptr<SharedMailbox> mailbox_;
};

/// Makes the actor by which a module is shared, at the module's owner. Every worker has it registered.
/// Errors: those of OwnedShared::make, and why the module will never be there.
inline constexpr RemoteFunction<Result<SharedControl>(Worker&, const RRef<ServedModule>&, const SharedOptions&)>
    kShareModule{"caftan.module.share"};

}  // namespace caftan::nn
