#include "caftan/base/error.hpp"

#include <stdexcept>

#include "caftan/base/result.hpp"

namespace caftan {

std::string_view to_string(Errc code) noexcept {
  switch (code) {
    case Errc::ok:
      return "ok";
    case Errc::timeout:
      return "timeout";
    case Errc::cancelled:
      return "cancelled";
    case Errc::overloaded:
      return "overloaded";
    case Errc::peer_down:
      return "peer_down";
    case Errc::unknown_worker:
      return "unknown_worker";
    case Errc::unknown_function:
      return "unknown_function";
    case Errc::bad_arguments:
      return "bad_arguments";
    case Errc::malformed_payload:
      return "malformed_payload";
    case Errc::remote_exception:
      return "remote_exception";
    case Errc::rref_deleted:
      return "rref_deleted";
    case Errc::unknown_context:
      return "unknown_context";
    case Errc::backward_failed:
      return "backward_failed";
    case Errc::device_unavailable:
      return "device_unavailable";
    case Errc::invalid_config:
      return "invalid_config";
    case Errc::shut_down:
      return "shut_down";
    case Errc::broken_promise:
      return "broken_promise";
    case Errc::peer_unreachable:
      return "peer_unreachable";
    case Errc::would_deadlock:
      return "would_deadlock";
    case Errc::unsupported:
      return "unsupported";
    case Errc::protocol_mismatch:
      return "protocol_mismatch";
    case Errc::wrong_cluster:
      return "wrong_cluster";
    case Errc::not_authenticated:
      return "not_authenticated";
    case Errc::limit_exceeded:
      return "limit_exceeded";
    case Errc::not_owner:
      return "not_owner";
    case Errc::wrong_type:
      return "wrong_type";
    case Errc::io_error:
      return "io_error";
    case Errc::duplicate_worker:
      return "duplicate_worker";
    case Errc::goal_missed:
      return "goal_missed";
    case Errc::foreign_context:
      return "foreign_context";
    case Errc::context_released:
      return "context_released";
    case Errc::unused_branch:
      return "unused_branch";
    case Errc::reentrant_pass:
      return "reentrant_pass";
    case Errc::pass_busy:
      return "pass_busy";
    case Errc::invalid_gradient:
      return "invalid_gradient";
    case Errc::graph_freed:
      return "graph_freed";
    case Errc::user_error:
      return "user_error";
  }
  return "unknown";
}

const Error::Body& Error::body() const noexcept {
  static const Body empty;
  return body_ ? *body_ : empty;
}

Error Error::at(std::string worker) const {
  if (!body().worker.empty()) return *this;
  Body changed = body();
  changed.worker = std::move(worker);
  return Error(code_, std::make_shared<const Body>(std::move(changed)));
}

Error Error::with_code(Errc code) const { return Error(code, body_); }

Error Error::of_kind(std::string kind) const {
  Body changed = body();
  changed.kind = std::move(kind);
  if (changed.kind.size() > kMostKind) changed.kind.resize(kMostKind);
  return Error(code_, std::make_shared<const Body>(std::move(changed)));
}

Error user_error(std::string kind, std::string text) {
  return Error(Errc::user_error, std::move(text)).of_kind(std::move(kind));
}

std::string Error::message() const {
  std::string out(to_string(code_));
  if (!kind().empty()) out += " " + kind();
  if (!worker().empty()) out += ": " + worker();
  if (!text().empty()) out += ": " + text();
  if (cause()) out += " (because: " + cause()->message() + ")";
  return out;
}

void detail::no_error_there() { throw std::logic_error("error() of a Result that has a value"); }

}  // namespace caftan
