#include "caftan/sim/internal/lp_table.hpp"

#include <algorithm>
#include <new>

namespace caftan::sim {

LpTable::LpTable(const Layout& layout, std::uint32_t partition)
    : layout_(layout),
      first_(static_cast<std::uint32_t>(layout.first_of(partition))),
      entries_(layout.first_of(partition + 1) - layout.first_of(partition)),
      events_(layout.event_types().size()) {
  handlers_.resize(layout.classes().size() * events_);
  for (std::size_t type = 0; type < layout.classes().size(); ++type) {
    for (const LpClass::Handler& handler : layout.classes()[type]->handlers) {
      handlers_[type * events_ + *layout.position_of(handler.event)] = handler.handle;
    }
  }
}

LpTable::~LpTable() {
  for (std::size_t i = 0; i < made_; ++i) class_of(entries_[i]).destroy(entries_[i].object);
  for (const Array& array : arrays_) ::operator delete(array.memory, std::align_val_t(array.alignment));
}

LpTable::Slots LpTable::reserve(const LpClass& type, std::uint64_t first, std::uint64_t count) {
  const std::uint64_t begin = std::clamp<std::uint64_t>(first_, first, first + count);
  const std::uint64_t end = std::clamp<std::uint64_t>(first_ + entries_.size(), first, first + count);
  if (begin >= end) return {first, first, nullptr};
  auto* const memory =
      static_cast<std::byte*>(::operator new((end - begin) * type.size, std::align_val_t(type.alignment)));
  arrays_.push_back({memory, type.alignment});
  next_ = memory;
  stride_ = type.size;
  type_ = layout_.type_of(static_cast<std::uint32_t>(begin));
  return {begin, end, memory};
}

void LpTable::made() noexcept {
  entries_[made_].object = next_;
  entries_[made_].type = type_;
  next_ += stride_;
  ++made_;
}

}  // namespace caftan::sim
