#include "shortened.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace caftan::actors {

namespace {

constexpr std::size_t kShortest = 80;
constexpr std::size_t kInnermost = 160;

Error without_causes(const Error& error, std::size_t text) {
  return Error(error.code(), error.worker(), error.text().substr(0, text)).of_kind(error.kind());
}

const Error& innermost(const Error& error) {
  const Error* last = &error;
  while (last->cause()) last = last->cause();
  return *last;
}

}  // namespace

Error shortened(const Error& error, std::size_t text) {  // NOLINT(misc-no-recursion)
  if (!error.cause()) return without_causes(error, text);
  const bool cut = text <= kShortest || !error.cause()->cause();
  auto cause = std::make_shared<const Error>(cut ? without_causes(innermost(error), std::max(text / 2, kInnermost))
                                                 : shortened(*error.cause(), text / 2));
  return Error(error.code(), error.worker(), error.text().substr(0, text), std::move(cause)).of_kind(error.kind());
}

Error without_kinds(const Error& error) {  // NOLINT(misc-no-recursion)
  const Errc code = error.code() == Errc::user_error ? Errc::remote_exception : error.code();
  auto cause = error.cause() ? std::make_shared<const Error>(without_kinds(*error.cause())) : nullptr;
  return {code, error.worker(), error.text(), std::move(cause)};
}

}  // namespace caftan::actors
