/// The one error currency: an `Error` {code, worker, text, cause} goes from the deepest function to the user, and over
/// the wire unchanged. Start with `Errc`; every code is explained in docs/errors.md.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace caftan {

/// What went wrong, as far as a caller would act differently. Numbers travel on the wire: never reuse one.
enum class Errc : std::uint8_t {
  ok = 0,
  timeout = 1,               ///< the deadline of a call passed; the callee may still be running it
  cancelled = 2,             ///< the caller gave up
  overloaded = 3,            ///< a limit was reached and the caller chose not to wait; nothing was sent
  peer_down = 4,             ///< the worker or its connection ended before the reply came
  unknown_worker = 5,        ///< no worker of that name in this job
  unknown_function = 6,      ///< the callee has not registered that name
  bad_arguments = 7,         ///< wrong types, count or values; nothing was run
  malformed_payload = 8,     ///< bytes that do not decode
  remote_exception = 9,      ///< user code at the callee threw
  rref_deleted = 10,         ///< the referenced value is gone
  unknown_context = 11,      ///< the autograd context was never made here or is released
  backward_failed = 12,      ///< a distributed backward pass failed
  device_unavailable = 13,   ///< the tensor's device is not here
  invalid_config = 14,       ///< an application file, an override or an option is wrong
  shut_down = 15,            ///< the worker is ending
  broken_promise = 16,       ///< the request was dropped without a reply
  peer_unreachable = 17,     ///< a worker could not be reached to confirm a reference
  would_deadlock = 18,       ///< the call chain comes back to an object that keeps its turn
  unsupported = 19,          ///< a kind of tensor or value that cannot travel; the text gives its position
  protocol_mismatch = 20,    ///< peers speak different protocol versions
  wrong_cluster = 21,        ///< the peer belongs to another cluster
  not_authenticated = 22,    ///< the peer does not know the shared secret
  limit_exceeded = 23,       ///< a message is larger than limits allow
  not_owner = 24,            ///< only the owner of a reference can do this
  wrong_type = 25,           ///< a value of another type than the caller asked for
  io_error = 26,             ///< the operating system refused a file or a socket
  duplicate_worker = 27,     ///< another live worker has this name or id; after its end a new one may take it
  goal_missed = 28,          ///< an application ran to its end without reaching what its file asks for
  foreign_context = 29,      ///< a backward pass met a message of another context
  context_released = 30,     ///< the autograd context was released, or its home is lost
  unused_branch = 31,        ///< Mode::fast: a recorded message gets no gradient from these roots
  reentrant_pass = 32,       ///< backward from inside a node of the same context
  pass_busy = 33,            ///< another backward pass of this context is still open
  invalid_gradient = 34,     ///< a gradient that does not fit what was sent forward, or that is not expected
  graph_freed = 35,          ///< the graph was freed by an earlier pass that failed without retain_graph
  user_error = 36,           ///< code of the application failed here, or says with `kind` what is wrong
  module_busy = 37,          ///< the module's state cannot change while an autograd context uses it
  lease_conflict = 38,       ///< an older context has the lease of a shared module
  stale_gradient = 39,       ///< a gradient is more steps behind than a shared module allows
  round_closed = 40,         ///< a shared module has made the step of this round without this gradient
  lookahead_violation = 41,  ///< a process of a simulation sent an event to another group with too small a delay
  not_permitted = 42,        ///< a rule of [permissions] forbids the call or the reference; nothing was run
};

/// Returns the enumerator's name, for example "peer_down"; "unknown" for a number this build does not know.
std::string_view to_string(Errc code) noexcept;

/// An error as a value. Copying is cheap: text and cause are shared.
class [[nodiscard]] Error {
 public:
  Error() = default;
  Error(Errc code, std::string text) : Error(code, std::string(), std::move(text)) {}
  /// @param worker  the worker where it happened; empty = this one
  Error(Errc code, std::string worker, std::string text, std::shared_ptr<const Error> cause = nullptr)
      : code_(code), body_(std::make_shared<Body>(Body{std::move(worker), std::move(text), std::move(cause)})) {}

  Errc code() const noexcept { return code_; }
  /// Returns the worker where it happened; empty = this one.
  const std::string& worker() const noexcept { return body().worker; }
  /// Returns what went wrong, for people.
  const std::string& text() const noexcept { return body().text; }
  /// Returns the error that led to this one, or null; lives as long as this error.
  const Error* cause() const noexcept { return body().cause.get(); }
  /// Returns which of the application's own errors this is, for programs, for example "bank.no_funds"; empty for
  /// Caftan's errors.
  const std::string& kind() const noexcept { return body().kind; }

  /// Returns this error with `worker` filled in where it was empty.
  Error at(std::string worker) const;
  /// Returns this error with another code.
  Error with_code(Errc code) const;
  /// Returns this error with `kind`, of which at most kMostKind bytes are kept.
  Error of_kind(std::string kind) const;
  /// The most bytes that a kind keeps.
  static constexpr std::size_t kMostKind = 128;
  /// Returns one line: "code: worker: text (because: ...)".
  std::string message() const;

 private:
  struct Body {
    std::string worker;
    std::string text;
    std::shared_ptr<const Error> cause;
    std::string kind{};
  };
  Error(Errc code, std::shared_ptr<const Body> body) noexcept : code_(code), body_(std::move(body)) {}
  const Body& body() const noexcept;

  Errc code_ = Errc::ok;
  std::shared_ptr<const Body> body_;
};

/// Writes `error.message()`.
std::ostream& operator<<(std::ostream& out, const Error& error);

/// Returns an error of the application's own. A remote function returns it in its Result, or throws it as RpcException:
/// it arrives at the caller with its kind, so that programs need not search the text.
/// @param kind  at most 128 bytes, for example "bank.no_funds"
Error user_error(std::string kind, std::string text);

/// What `Future::get`, `rpc_sync` and `to_here` throw. Each has a form that returns `Result` instead.
class RpcException : public std::runtime_error {
 public:
  explicit RpcException(Error error) : std::runtime_error(error.message()), error_(std::move(error)) {}
  const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};

}  // namespace caftan
