/// `OwnedModule`: the module of one worker as its actor has it, and the work that runners do for the actor on the
/// module's strand. `ModuleControl` is the way to the actor. Users start with remote_module.hpp.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "caftan/nn/internal/module_state.hpp"
#include "caftan/nn/served_module.hpp"
#include "caftan/rpc/call_site.hpp"
#include "caftan/rpc/hosted_object.hpp"

namespace caftan::nn {

class OwnedModule;

/// One request to the actor of a module. Its methods are called one after the other, on any thread.
class ModuleRequest {
 public:
  virtual ~ModuleRequest() = default;
  /// Returns how long to wait for open contexts to end; nothing where the request does not mind them.
  virtual std::optional<base::Duration> wait() const = 0;
  /// Does the work, on the module's strand, and keeps the outcome. Does not throw.
  virtual void run(OwnedModule& module) = 0;
  /// Keeps an error instead.
  virtual void fail(Error error) = 0;
  /// Replies with what was kept.
  virtual void answer() = 0;
};

/// A request to the actor of a module, and until when it waits for open contexts to end (MD-10). Its methods are called
/// one after the other, on any thread.
class ModuleAttempt {
 public:
  /// How long after an open context was found the request is tried again.
  static constexpr base::Duration kRetry = std::chrono::milliseconds(1);

  ModuleAttempt(std::shared_ptr<ModuleRequest> request, base::TimePoint now);

  /// Does the work, unless the request has to wait for an open context. When its time is over, it fails with
  /// module_busy.
  void run(OwnedModule& module, bool has_open_context, base::TimePoint now);
  /// Returns whether the request has its outcome; else it is tried again.
  bool is_over() const noexcept { return is_over_; }
  /// Replies with the outcome. Precondition: is_over().
  void answer() { request_->answer(); }

 private:
  const std::shared_ptr<ModuleRequest> request_;
  base::TimePoint until_;
  bool is_over_ = false;
};

/// Threads: `run` any; what a request's work calls, the module's strand.
class OwnedModule : public std::enable_shared_from_this<OwnedModule> {
 public:
  /// @param object  hosts a ServedModule
  /// @param site  of the owner
  /// Errors: wrong_type (another object), bad_arguments (the module has an actor already).
  static Result<std::shared_ptr<OwnedModule>> make(std::shared_ptr<rpc::HostedObject> object, CallSite site);

  /// Tries the request on the strand of the module.
  /// @param clock  outlives the attempt
  /// @param done  called once, on any thread, possibly inside the turn: must not block
  void run(std::shared_ptr<ModuleAttempt> attempt, const base::Clock& clock, std::function<void()> done);

  /// Returns a reference to each parameter or buffer; to a tensor with several names under the first (MD-4).
  /// Errors: remote_exception (the module threw).
  Result<std::vector<NamedReference>> list(TensorKind kind);
  /// Copies the state. Errors: as `describe`, limit_exceeded (no memory), remote_exception (the module threw).
  Result<SavedModule> save();
  /// Makes a place for a state. Errors: as check_fits and save.
  Result<RRef<StagedState>> stage(const std::vector<TensorInfo>& given);
  /// Gives the module the state that has arrived in `staged`. Errors: as StagedState::release and stage; unsupported (a
  /// tensor that cannot be written: one element of memory stands for several of it, or it was made in inference mode).
  Result<void> take(const RRef<StagedState>& staged);
  /// Errors: bad_arguments (no device), unsupported (one that is not the CPU).
  Result<void> move_to(const std::string& device);

 private:
  OwnedModule(std::shared_ptr<rpc::HostedObject> object, CallSite site)
      : object_(std::move(object)), site_(std::move(site)) {}
  ServedModule& served() const noexcept { return *object_->as<ServedModule>(); }
  StateDict state() const;

  using References = std::unordered_map<const void*, RRef<at::Tensor>>;  // by the tensor's implementation

  const std::shared_ptr<rpc::HostedObject> object_;
  const CallSite site_;
  std::array<References, 2> references_;  // of parameters, of buffers
};

}  // namespace caftan::nn
