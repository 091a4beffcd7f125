#include "caftan/base/error.hpp"

#include <ostream>
#include <stdexcept>

#include "caftan/base/internal/enumerator_name.hpp"
#include "caftan/base/result.hpp"

namespace caftan {

std::string_view to_string(Errc code) noexcept {
  const std::string_view name = enumerator_name(code);
  return name.empty() ? "unknown" : name;
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

std::ostream& operator<<(std::ostream& out, const Error& error) { return out << error.message(); }

void detail::no_error_there() { throw std::logic_error("error() of a Result that has a value"); }

}  // namespace caftan
