#include "batch_parameter_server/rounds.hpp"

#include <string>

namespace caftan::batch_parameter_server {

Rounds::Rounds(std::uint32_t trainers, std::uint32_t quorum, base::Duration straggler_timeout, std::int64_t version)
    : trainers_(trainers), quorum_(quorum), straggler_timeout_(straggler_timeout), version_(version) {}

Result<Rounds::Arrival> Rounds::arrive(std::uint32_t trainer, std::int64_t version, base::TimePoint now) {
  const std::string who = "trainer " + std::to_string(trainer);
  if (trainer >= trainers_) {
    return Error(Errc::bad_arguments, "there is no " + who + ", there are " + std::to_string(trainers_));
  }
  if (lost_.contains(trainer)) return Error(Errc::bad_arguments, who + " is lost");
  if (version < 0 || version > version_) {
    return Error(Errc::bad_arguments, "a gradient of " + who + " at version " + std::to_string(version) +
                                          ", the model has version " + std::to_string(version_));
  }
  if (version < version_) return Arrival::late;
  if (!arrived_.insert(trainer).second) {
    return Error(Errc::bad_arguments, "a second gradient of " + who + " at version " + std::to_string(version));
  }
  if (is_full() && !closes_at_) closes_at_ = now + straggler_timeout_;
  return Arrival::counts;
}

bool Rounds::may_close(base::TimePoint now) const noexcept {
  if (!is_full()) return false;
  std::uint32_t missing = 0;
  for (std::uint32_t trainer = 0; trainer < trainers_; ++trainer) {
    if (!arrived_.contains(trainer) && !lost_.contains(trainer)) ++missing;
  }
  return missing == 0 || now >= *closes_at_;
}

void Rounds::close() {
  arrived_.clear();
  closes_at_.reset();
  ++version_;
}

bool Rounds::can_be_full() const noexcept {
  std::size_t possible = arrived_.size();
  for (std::uint32_t trainer = 0; trainer < trainers_; ++trainer) {
    if (!arrived_.contains(trainer) && !lost_.contains(trainer)) ++possible;
  }
  return possible >= quorum_;
}

}  // namespace caftan::batch_parameter_server
