#include "shortened.hpp"

#include <memory>
#include <utility>

namespace caftan::actors {

Error shortened(const Error& error, std::size_t text) {  // NOLINT(misc-no-recursion)
  constexpr std::size_t kShortest = 80;
  std::shared_ptr<const Error> cause;
  if (error.cause() && text > kShortest) cause = std::make_shared<const Error>(shortened(*error.cause(), text / 2));
  return {error.code(), error.worker(), error.text().substr(0, text), std::move(cause)};
}

}  // namespace caftan::actors
