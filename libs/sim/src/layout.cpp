#include "caftan/sim/internal/layout.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace caftan::sim {

void Layout::set_lookahead(Result<Time> least) {
  if (!least) return fail(Error(Errc::invalid_config, "lookahead: that of the model: " + least.error().text()));
  if (least->ticks < 1)
    return fail(Error(Errc::invalid_config, "lookahead: that of the model is below one tick, it must be more than 0"));
  lookahead_ = *least;
}

void Layout::begin_group() {
  if (group_of_.empty()) {
    // The processes so far are groups of their own.
    for (std::uint64_t id = 0; id < size_; ++id) group_of_.push_back(groups_++);
  }
  ++groups_;
  is_in_group_ = true;
}

std::uint64_t Layout::add(const LpClass& type, std::uint64_t count) {
  const std::uint64_t first = size_;
  constexpr std::uint64_t kMostProcesses = std::numeric_limits<std::uint32_t>::max() - 1;
  if (count > kMostProcesses - size_) {
    fail(Error(Errc::bad_arguments, "the model has more than 2^32 - 2 processes: it adds " + std::to_string(count) +
                                        " of the class " + std::string(type.name)));
    return first;
  }
  if (count == 0) return first;
  ranges_.push_back({first, count, register_class(type)});
  size_ += count;
  if (is_in_group_) group_of_.resize(size_, groups_ - 1);
  return first;
}

std::uint32_t Layout::register_class(const LpClass& type) {
  const auto found = std::find(classes_.begin(), classes_.end(), &type);
  if (found != classes_.end()) return static_cast<std::uint32_t>(found - classes_.begin());
  classes_.push_back(&type);
  for (const LpClass::Handler& handler : type.handlers) {
    if (!position_of(handler.event)) event_types_.push_back({handler.event, handler.event_name});
  }
  if (classes_.size() > kMost || event_types_.size() > kMost)
    fail(Error(Errc::bad_arguments, "the model has more than 255 classes or types of events"));
  return static_cast<std::uint32_t>(classes_.size() - 1);
}

void Layout::fail(Error error) {
  if (!failure_) failure_ = std::move(error);
}

Result<void> Layout::place(std::uint32_t partitions) {
  if (failure_) return *failure_;
  if (size_ == 0) return Error(Errc::bad_arguments, "the model has no processes: its build adds none");
  if (partitions == 0) return Error(Errc::bad_arguments, "a simulation has at least one partition");
  bounds_.assign(1, 0);
  std::uint64_t id = 0;
  for (std::uint32_t partition = 1; partition < partitions; ++partition) {
    // The first group that begins at or behind the even share; a group is never split.
    id = std::max(id, size_ * partition / partitions);
    while (id > 0 && id < size_ &&
           group_of(static_cast<std::uint32_t>(id)) == group_of(static_cast<std::uint32_t>(id - 1)))
      ++id;
    bounds_.push_back(id);
  }
  bounds_.push_back(size_);
  if (partitions > groups())
    warn("there are " + std::to_string(partitions) + " partitions, but only " + std::to_string(groups()) +
         " groups: some partitions have nothing to do");
  return {};
}

std::uint32_t Layout::type_of(std::uint32_t id) const noexcept {
  const auto behind = std::upper_bound(ranges_.begin(), ranges_.end(), id,
                                       [](std::uint32_t value, const Range& range) { return value < range.first; });
  return std::prev(behind)->type;
}

std::uint32_t Layout::partition_of(std::uint32_t id) const noexcept {
  return static_cast<std::uint32_t>(std::upper_bound(bounds_.begin(), bounds_.end(), id) - bounds_.begin() - 1);
}

std::uint64_t Layout::digest() const noexcept {
  std::uint64_t hash = size_;
  const auto add = [&hash](std::uint64_t word) { hash = mix64(hash * 31 + word); };
  add(static_cast<std::uint64_t>(lookahead_.ticks));
  for (const LpClass* type : classes_) add(type->hash);
  for (const EventType& type : event_types_) add(type.hash);
  for (const Range& range : ranges_) add(range.count * (kMost + 1) + range.type);
  for (std::size_t i = 1; i < group_of_.size(); ++i) {
    if (group_of_[i] != group_of_[i - 1]) add(i);
  }
  return hash;
}

std::string Layout::name_of(std::uint64_t id) const {
  std::string text = "LP " + std::to_string(id);
  if (id < size_) text += " (" + std::string(class_of(static_cast<std::uint32_t>(id)).name) + ")";
  return text;
}

}  // namespace caftan::sim
