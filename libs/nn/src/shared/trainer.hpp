/// `Trainer`: the inside of a handle that has joined as a trainer of a shared module. Copies of the handle share it;
/// the last one leaves with it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "caftan/autograd/internal/context_record.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/nn/internal/shared_control.hpp"
#include "shared/trainer_rates.hpp"

namespace caftan::nn {

/// Threads: any, all methods.
class Trainer : public std::enable_shared_from_this<Trainer> {
 public:
  Trainer(std::uint32_t number, RRef<TrainerSeat> seat) : number_(number), seat_(std::move(seat)) {}

  std::uint32_t number() const noexcept { return number_; }
  /// Returns what the current context reads. Errors: unknown_context (there is none), and those of TrainerSeat::open.
  Future<Reading> open(CallOptions options);
  /// Returns the rates of this trainer's steps; null before keep_rates.
  optim::LearningRates* rates();
  /// Takes the rates of the owner for those of this trainer's steps, if it has none yet. Returns its rates.
  optim::LearningRates* keep_rates(const SharedRates& at_owner);
  /// Delivers the gradients of the context, with the rates if there are some.
  Future<StepResult> step(const std::shared_ptr<autograd::ContextRecord>& context, std::uint64_t batch,
                          CallOptions options);

 private:
  struct Known {
    std::weak_ptr<autograd::ContextRecord> context;
    Reading reading;
  };
  using Readings = std::map<ContextId, Known>;
  void keep(const std::shared_ptr<autograd::ContextRecord>& context, const Reading& reading);
  /// Takes out what contexts read that are over.
  Readings take_over() CAFTAN_REQUIRES(mutex_);

  const std::uint32_t number_;
  const RRef<TrainerSeat> seat_;
  base::Mutex mutex_;
  Readings readings_ CAFTAN_GUARDED_BY(mutex_);  // of contexts that have not stepped
  std::optional<TrainerRates> rates_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::nn
