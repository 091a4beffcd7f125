/// PyTorch's own RPC agent, autograd contexts and engine in this process, driven from C++ without Python: the other
/// side of benchmarks and parity tests. Start with `start`; a call is a built-in operator that runs at the callee.
///
/// One agent per process, for ever: the reference keeps its state in singletons whose destructors are not safe, so a
/// process that has started one leaves with _exit.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace torch::jit {
struct Operator;
}

namespace caftan::reference {

struct Listener {
  int fd = -1;
  std::uint16_t port = 0;
};
/// Returns a socket for the store of rank 0, which by itself would listen on every address of the machine. A failure
/// ends the program.
Listener listen_on_loopback();

struct Member {
  std::int16_t rank = 0;
  std::int16_t world = 2;
  /// "default" = the transports that the reference chooses; "shm" or "uv" = only that one, with the channel "basic".
  /// Only uv sleeps while it is idle.
  std::string transports = "default";
  Listener store;  ///< of rank 0: its listening socket; of other ranks: only rank 0's port
};
/// Makes this process a member, and returns when it may call the others. Call in a process without other threads.
void start(const Member& member);

struct Function {
  std::shared_ptr<torch::jit::Operator> op;
  /// Run the callee in the caller's context even if no argument needs a gradient: PyTorch calls users' functions so,
  /// not operators.
  bool always_in_context = false;
};
/// Finds a built-in operator. If there is none, the program ends.
Function find_function(const std::string& name, const std::string& overload = "");
/// Makes a function of our own callable, in every process before its `start`. @param schema  "aten::name(Tensor x) ->
/// Tensor"
Function add_function(const std::string& schema, std::function<at::Tensor(const std::vector<c10::IValue>&)> body);

using Pending = c10::intrusive_ptr<c10::ivalue::Future>;
/// Calls `function` at the worker of that rank; the call is recorded if the calling thread is in a context.
/// @param arguments  all of them, in the order of the schema
Pending call_async(std::int16_t rank, const Function& function, std::vector<c10::IValue> arguments);
/// Waits for the value. Errors: what the callee threw.
c10::IValue get(const Pending& pending);
inline c10::IValue call(std::int16_t rank, const Function& function, std::vector<c10::IValue> arguments) {
  return get(call_async(rank, function, std::move(arguments)));
}

/// An autograd context, current for the thread that makes it. Its end releases it here and, later, at the others.
class Context {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  std::int64_t id() const noexcept { return id_; }
  void backward(const std::vector<at::Tensor>& roots, bool retain_graph = false) const;
  /// Returns the gradient of a leaf of this process; undefined if it has none.
  at::Tensor gradient(const at::Tensor& leaf) const;

 private:
  const std::int64_t id_;
};

/// Returns the gradient of a leaf of this process in the context that the running function was called in.
at::Tensor gradient_in_current_context(const at::Tensor& leaf);

}  // namespace caftan::reference
