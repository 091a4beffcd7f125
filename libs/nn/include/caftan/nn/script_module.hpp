/// `ScriptModule`: a module of a TorchScript file that lives at another worker and is used as any remote module. Its
/// owner names the file (`[roles.NAME.modules]`, `Registry::add_script_module`); callers register nothing:
///     nn::RemoteModule<nn::ScriptModule> net(worker, "ps", "policy");
///     at::Tensor y = net.forward(x);
///     optim::DistributedOptimizer optimizer(worker, net.parameters(), optim::Adam{.lr = 1e-3});
/// Rules: docs/protocols/modules.md, docs/protocols/script.md.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "caftan/nn/remote_module.hpp"
#include "caftan/rpc/operators.hpp"

namespace caftan::rpc {
class Script;
}

namespace caftan::nn {

/// The module at its owner. Threads: one at a time.
class ScriptModule {
 public:
  /// @param script  not null; read for use as a module
  explicit ScriptModule(std::shared_ptr<rpc::Script> script);

  /// Calls a method of the script. Errors: unknown_function (naming those that it has), and those of Script::run.
  Result<rpc::OperatorValues> call(const std::string& method, const std::vector<rpc::OperatorArgument>& arguments);
  /// As call, of a method that returns one tensor. Errors: as call; wrong_type.
  Result<at::Tensor> call_for_tensor(const std::string& method, const std::vector<rpc::OperatorArgument>& arguments);
  /// Returns the parameters, in the order of the file, those of submodules as "encoder.weight".
  std::vector<NamedTensor> named_parameters() const;
  /// Returns the buffers, as named_parameters does.
  std::vector<NamedTensor> named_buffers() const;
  /// Sets the mode of the module and its submodules.
  void train(bool on);
  /// Returns the mode that the module has.
  bool is_training() const;

 private:
  std::shared_ptr<rpc::Script> script_;
};

/// A module of TorchScript at its owner. See ModuleHandle for its modes, parameters and state. Arguments are those of
/// operators, also by keyword (`rpc::kwarg`); the owner compares them with the method's schema and adds its defaults.
/// Source: torch.distributed.nn.RemoteModule with module_interface_cls. Differences: the owner has the file, no code
///   travels; every method of the file can be called, without an interface.
template <>
class RemoteModule<ScriptModule> : public ModuleHandle {
 public:
  RemoteModule() = default;
  /// Makes a module of the file that the worker `to` has under that name, without waiting for it. Each module has
  /// parameters of its own, with the values of the file. An error of its creation is that of each use: unknown_function
  /// (the worker has no such file), invalid_config, io_error (the file has changed since the worker started).
  /// @param site  a Worker or a RoleContext
  /// Errors (thrown): unknown_worker, and what `remote` throws.
  RemoteModule(const CallSite& site, const rpc::Destination& to, std::string_view name)
      : RemoteModule(try_make(site, to, name).value()) {}
  /// As the constructor, without throwing.
  static Result<RemoteModule> try_make(const CallSite& site, const rpc::Destination& to, std::string_view name);

  /// Returns a handle with options for its calls: `net.with({.timeout = 5s}).forward(x)`. They are not sent along.
  RemoteModule with(CallOptions options) const {
    RemoteModule other = *this;
    other.options_ = options;
    return other;
  }

  /// Calls the method `forward` and waits. Errors (thrown): as `call`.
  template <class... A>
  at::Tensor forward(A&&... arguments) const {
    return call("forward", std::forward<A>(arguments)...);
  }
  template <class... A>
  Result<at::Tensor> try_forward(A&&... arguments) const {
    return try_call("forward", std::forward<A>(arguments)...);
  }
  /// As forward, without waiting.
  template <class... A>
  Future<at::Tensor> forward_async(A&&... arguments) const {
    return start_for_tensor("forward", list(std::forward<A>(arguments)...));
  }
  /// Calls `forward` and keeps its result at the owner: stages of a pipeline take it as a reference.
  template <class... A>
  RRef<at::Tensor> forward_remote(A&&... arguments) const {
    return call_remote("forward", std::forward<A>(arguments)...);
  }

  /// Calls a method, which returns one tensor, in the mode of this handle, and waits. Autograd records it as any call.
  /// Errors (thrown): as CallSite; unknown_function (the module has no such method), wrong_type (its result is not one
  ///   tensor: use call_async).
  template <class... A>
  at::Tensor call(std::string_view method, A&&... arguments) const {
    return try_call(method, std::forward<A>(arguments)...).value();
  }
  template <class... A>
  Result<at::Tensor> try_call(std::string_view method, A&&... arguments) const {
    return start_for_tensor(method, list(std::forward<A>(arguments)...)).result();
  }
  /// As call, without waiting; the future gets the result, of a tuple its parts.
  template <class... A>
  Future<rpc::OperatorValues> call_async(std::string_view method, A&&... arguments) const {
    return start(method, list(std::forward<A>(arguments)...));
  }
  /// As call; the one resulting tensor stays at the owner.
  template <class... A>
  RRef<at::Tensor> call_remote(std::string_view method, A&&... arguments) const {
    return try_call_remote(method, std::forward<A>(arguments)...).value();
  }
  template <class... A>
  Result<RRef<at::Tensor>> try_call_remote(std::string_view method, A&&... arguments) const {
    return keep(method, list(std::forward<A>(arguments)...));
  }

 private:
  using Arguments = std::vector<rpc::OperatorArgument>;
  template <class... A>
  static Arguments list(A&&... arguments) {
    Arguments all;
    (all.emplace_back(std::forward<A>(arguments)), ...);
    return all;
  }
  Future<rpc::OperatorValues> start(std::string_view method, const Arguments& arguments) const;
  Future<at::Tensor> start_for_tensor(std::string_view method, const Arguments& arguments) const;
  Result<RRef<at::Tensor>> keep(std::string_view method, const Arguments& arguments) const;
};

}  // namespace caftan::nn
