/// `ModuleControl`: what a handle refers to beside the module. Its methods hand one request each to the module's actor,
/// which answers the future. Users start with remote_module.hpp.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caftan/nn/internal/owned_module.hpp"
#include "caftan/rpc/function.hpp"
#include "caftan/rpc/future.hpp"

namespace caftan::nn {

/// The way to the module's actor, which ends when this object is destroyed.
class ModuleMailbox {
 public:
  virtual ~ModuleMailbox() = default;
  /// Threads: any; does not block.
  virtual void send(std::shared_ptr<ModuleRequest> request) = 0;
};

/// A request: the work to be done on the module, and the promise of the outcome.
template <class T>
class ModuleWork final : public ModuleRequest {
 public:
  using Work = std::function<Result<T>(OwnedModule&)>;
  ModuleWork(std::optional<base::Duration> wait, Work work) : wait_(wait), work_(std::move(work)) {}

  /// Call it once, before the request is sent.
  Future<T> future() { return promise_.future(); }
  std::optional<base::Duration> wait() const override { return wait_; }
  void run(OwnedModule& module) override { outcome_ = work_(module); }
  void fail(Error error) override { outcome_ = Result<T>(std::move(error)); }
  void answer() override { promise_.set(std::move(outcome_)); }

 private:
  const std::optional<base::Duration> wait_;
  const Work work_;
  Promise<T> promise_;
  Result<T> outcome_ = Error(Errc::broken_promise, "the request was not done");
};

/// Errors of all methods: shut_down (the worker is ending), and those of OwnedModule's.
class ModuleControl {
 public:
  explicit ModuleControl(std::unique_ptr<ModuleMailbox> mailbox) : mailbox_(std::move(mailbox)) {}

  /// Returns a reference to each parameter or buffer.
  Future<std::vector<NamedReference>> list(TensorKind kind);
  /// Copies the state and returns where to read the copy.
  Future<SavedModule> save();
  /// Makes a place for a state.
  Future<RRef<StagedState>> stage(const std::vector<TensorInfo>& given);
  /// Gives the module the state that has arrived in `staged`.
  /// @param wait  how long to wait for open contexts to end, >= 0; then module_busy
  Future<void> take(const RRef<StagedState>& staged, base::Duration wait);
  /// Moves the module to a device. @param wait  as that of `take`
  Future<void> to(const std::string& device, base::Duration wait);

 private:
  template <class T>
  Future<T> ask(std::optional<base::Duration> wait, typename ModuleWork<T>::Work work);

  std::unique_ptr<ModuleMailbox> mailbox_;
};

/// Makes the actor of a module at its owner. Every worker has it registered.
/// Errors: those of OwnedModule::make, and why the module will never be there.
inline constexpr RemoteFunction<Result<ModuleControl>(Worker&, const RRef<ServedModule>&)> kServeModule{
    "caftan.module"};

}  // namespace caftan::nn
