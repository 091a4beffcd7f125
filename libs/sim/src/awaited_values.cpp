#include "caftan/sim/internal/awaited_values.hpp"

#include <utility>

namespace caftan::sim {

std::string too_large(std::size_t size, std::uint64_t largest) {
  return ": the event has " + std::to_string(size) +
         " bytes, more than limits.message allows: " + std::to_string(largest);
}

std::uint64_t AwaitedValues::add(std::unique_ptr<FutureEvent> value, std::string sending) {
  values_[next_] = {std::move(value), std::move(sending), {}};
  return next_++;
}

Result<wire::ByteView> AwaitedValues::wait_for(std::uint64_t number, std::uint64_t largest) {
  Value& value = values_.at(number);
  if (const auto future = std::exchange(value.future, nullptr)) {
    if (const Result<void> written = future->write(value.bytes); !written) {
      return Error(written.error().code(),
                   value.sending + ": the future of this event has failed: " + written.error().message());
    }
    if (value.bytes.size() > largest) {
      return Error(Errc::limit_exceeded, value.sending + too_large(value.bytes.size(), largest));
    }
  }
  return wire::ByteView(value.bytes);
}

}  // namespace caftan::sim
