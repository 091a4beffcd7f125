#include "caftan/sim/internal/lp_table.hpp"

#include <algorithm>
#include <memory>

namespace caftan::sim {

LpTable::LpTable(const Layout& layout, std::uint32_t partition)
    : layout_(layout),
      first_(static_cast<std::uint32_t>(layout.first_of(partition))),
      events_(layout.event_types().size()) {
  const auto count = static_cast<std::size_t>(layout.first_of(partition + 1) - layout.first_of(partition));
  entry_memory_ = LargeMemory(count * sizeof(LpEntry), sizeof(LpEntry));
  entries_ = {reinterpret_cast<LpEntry*>(entry_memory_.data()), count};
  std::uninitialized_default_construct(entries_.begin(), entries_.end());
  handlers_.resize(layout.classes().size() * events_);
  for (std::size_t type = 0; type < layout.classes().size(); ++type) {
    for (const LpClass::Handler& handler : layout.classes()[type]->handlers) {
      handlers_[type * events_ + *layout.position_of(handler.event)] = handler.handle;
    }
  }
}

LpTable::~LpTable() {
  for (std::size_t i = 0; i < made_; ++i) class_of(entries_[i]).destroy(entries_[i].object);
}

LpTable::Slots LpTable::reserve(const LpClass& type, std::uint64_t first, std::uint64_t count) {
  const std::uint64_t begin = std::clamp<std::uint64_t>(first_, first, first + count);
  const std::uint64_t end = std::clamp<std::uint64_t>(first_ + entries_.size(), first, first + count);
  if (begin >= end) return {first, first, nullptr};
  arrays_.emplace_back((end - begin) * type.size, type.alignment);
  next_ = arrays_.back().data();
  stride_ = type.size;
  type_ = layout_.type_of(static_cast<std::uint32_t>(begin));
  return {begin, end, next_};
}

void LpTable::made() noexcept {
  entries_[made_].object = next_;
  entries_[made_].type = type_;
  next_ += stride_;
  ++made_;
}

}  // namespace caftan::sim
