#include "caftan/wire/internal/shortened.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "caftan/wire/archive.hpp"
#include "caftan/wire/frame.hpp"

namespace caftan::wire {

namespace {

constexpr std::size_t kShortest = 80;
constexpr std::size_t kInnermost = 160;
constexpr std::size_t kMostText = 4096;
/// The encoded bytes of an error that has only a code and a text, apart from the text itself.
constexpr std::size_t kBesideText = 8;

Error without_causes(const Error& error, std::size_t text) {
  return Error(error.code(), error.worker(), error.text().substr(0, text)).of_kind(error.kind());
}

/// Returns the bytes of `error` and of its kinds as a section; more than any limit if it cannot be encoded.
std::size_t size_of(const Error& error) {
  const Result<Bytes> bytes = encode(error);
  return bytes ? bytes->size() + kSectionHeaderSize + encode_kinds(error).size()
               : std::numeric_limits<std::size_t>::max();
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

Error fitting(const Error& error, std::size_t most) {
  for (std::size_t text = kMostText; text >= kShortest / 2; text /= 2) {
    if (Error brief = shortened(error, text); size_of(brief) <= most) return brief;
  }
  return {error.code(), error.text().substr(0, std::min(kShortest, most - std::min(most, kBesideText)))};
}

Error without_kinds(const Error& error) {  // NOLINT(misc-no-recursion)
  const Errc code = error.code() == Errc::user_error ? Errc::remote_exception : error.code();
  auto cause = error.cause() ? std::make_shared<const Error>(without_kinds(*error.cause())) : nullptr;
  return {code, error.worker(), error.text(), std::move(cause)};
}

}  // namespace caftan::wire
