/// `OwnedShared`: the values of a shared module at its owner, and the jobs on them that the module's actor asks for:
/// copies for readers, checks of gradients, steps. `SharedServer` decides what runs when.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "caftan/nn/internal/shared_server.hpp"
#include "caftan/optim/local_optimizer.hpp"
#include "caftan/rpc/call_site.hpp"

namespace caftan::nn {

/// Threads: any; the jobs run on the module's strand. Every `done` is called once, on any thread, possibly inside the
/// turn: it must not block.
class OwnedShared : public std::enable_shared_from_this<OwnedShared> {
 public:
  /// Waits for the turn of the module.
  /// @param object   the value of `module`
  /// @param options  with the code of the user's algorithm
  /// @param site     of the owner
  /// Errors: invalid_config (check_consistency), wrong_type (no module), bad_arguments (an algorithm that needs a
  ///   closure; it is shared already), those of LocalOptimizer::make, remote_exception (the module threw), io_error
  ///   (the step log).
  static Result<std::shared_ptr<OwnedShared>> make(std::shared_ptr<rpc::HostedObject> object,
                                                   const RRef<ServedModule>& module, const SharedOptions& options,
                                                   const CallSite& site);

  const SharedOptions& options() const noexcept { return options_; }
  const CallSite& site() const noexcept { return site_; }
  /// Returns the module itself.
  const std::shared_ptr<SharedCopy>& module() const noexcept { return module_; }
  const std::shared_ptr<ReadersCount>& readers() const noexcept { return readers_; }

  using CopyDone = std::function<void(Result<std::shared_ptr<SharedCopy>>)>;
  using Done = std::function<void(Result<void>)>;
  /// Gives a copy the values that the module has now.
  /// @param copy      null, or of other sizes: makes one, of the module's class and constructor arguments, on the
  ///                  module's strand
  /// @param executor  outlives what runs on it
  /// Errors: unsupported (the class makes modules of other tensors, or of the same ones), remote_exception (the
  ///   constructor threw), limit_exceeded (no memory), shut_down.
  void copy(std::shared_ptr<SharedCopy> copy, base::Executor& executor, CopyDone done);
  /// Errors: those of LocalOptimizer::prepare; bad_arguments (rates that the algorithm does not take).
  void check(std::vector<at::Tensor> gradients, const std::optional<StepRates>& rates, Done done);
  /// Steps by the mean of the gradients, at the rates of the step, and takes over the buffers that their contexts have
  /// written: the mean of those of a floating dtype, of the others those of the first contribution.
  /// Errors: those of gradient_mean, LocalOptimizer::prepare and StepLogWriter::append, and unsupported (a context has
  ///   given a buffer other sizes or another dtype): nothing has changed then; those of LocalOptimizer::update.
  void apply(const StepRecord& step, std::vector<Delivered> delivered, Done done);

  /// Returns the rates that the next step would be made at. From then on they are the initial ones, if there were none.
  void rates(std::function<void(Result<SharedRates>)> done);
  /// Returns options and state of the optimizer. Errors: those of LocalOptimizer::save.
  void save_optimizer(std::function<void(Result<wire::Bytes>)> done);
  /// Errors: those of LocalOptimizer::load; module_busy (something reads the module, or is about to step it).
  void load_optimizer(wire::Bytes state, Done done);

 private:
  OwnedShared(SharedOptions options, CallSite site)
      : options_(std::move(options)), site_(site), readers_(std::make_shared<ReadersCount>(0)) {}
  Result<void> set_up(const RRef<ServedModule>& module, std::shared_ptr<rpc::HostedObject> object);
  Result<std::shared_ptr<SharedCopy>> make_copy() const;
  Result<void> step(const StepRecord& step, const std::vector<Delivered>& delivered);
  /// Returns what a step gives the buffers; empty where the calls have written them in place.
  Result<std::vector<at::Tensor>> written_buffers(const std::vector<Delivered>& delivered) const;

  const SharedOptions options_;
  const CallSite site_;
  const std::shared_ptr<ReadersCount> readers_;
  std::shared_ptr<SharedCopy> module_;
  std::optional<optim::LocalOptimizer> optimizer_;  // used on the module's strand, as the log is
  std::optional<StepLogWriter> log_;
};

}  // namespace caftan::nn
