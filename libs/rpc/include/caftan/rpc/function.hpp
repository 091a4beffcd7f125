/// `RemoteFunction<R(P...)>`: a remote function by name and type, for callers that do not have the callee's code:
///     inline constexpr caftan::RemoteFunction<int(int, int)> add{"math.add"};
///     worker.rpc_sync(add, "worker1", 1, 2);            // at the caller
///     registry.add(add, &impl);                         // at the callee
#pragma once

#include <string_view>

#include "caftan/base/fnv1a.hpp"
#include "caftan/rpc/signature.hpp"

namespace caftan {

/// A function of another program, known by its name and type: `RemoteFunction<int(int, int)>("math.add")`.
template <class Signature>
class RemoteFunction {
  static_assert(std::is_function_v<Signature>, "write RemoteFunction<int(int, int)>");
};

template <class R, class... P>
class RemoteFunction<R(P...)> {
 public:
  using Pointer = R (*)(P...);
  using Types = rpc::CallTypes<Pointer>;
  using Value = typename Types::Value;

  /// @param name  static storage; as registered at the callee
  constexpr explicit RemoteFunction(std::string_view name) noexcept
      : key_{name, Types::signature(), base::fnv1a(name), Types::signature_hash()} {}

  constexpr std::string_view name() const noexcept { return key_.name; }
  constexpr const rpc::FunctionKey& key() const noexcept { return key_; }

 private:
  rpc::FunctionKey key_;
};

}  // namespace caftan
