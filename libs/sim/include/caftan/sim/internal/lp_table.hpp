/// `LpTable`: the objects of one partition's processes, those of a range in one array, and 32 bytes beside each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "caftan/sim/internal/large_memory.hpp"
#include "caftan/sim/internal/layout.hpp"

namespace caftan::sim {

/// A process of this partition, in half a cache line.
struct LpEntry {
  void* object = nullptr;
  std::uint64_t sequence : 56 = 0;  ///< of its next event
  std::uint64_t type : 8 = 0;       ///< position of its class
  std::uint64_t draws = 0;          ///< from its stream without a name
  std::uint64_t hash = 0;           ///< of what it has handled (SM-18)
};
static_assert(sizeof(LpEntry) == 32 && Layout::kMost < 256);

/// Threads: one at a time.
class LpTable {
 public:
  using Handle = void (*)(void*, wire::ByteView, LpContext&);

  /// `layout` is placed, and outlives the table.
  LpTable(const Layout& layout, std::uint32_t partition);
  LpTable(const LpTable&) = delete;
  LpTable& operator=(const LpTable&) = delete;
  ~LpTable();

  // ---- filling it, by Builder
  /// The ids of this partition among those of the next range, and memory for their objects.
  struct Slots {
    std::uint64_t begin;
    std::uint64_t end;
    std::byte* memory;
  };
  /// Returns where the objects of the next range go. @param first, count  the ids of the range
  Slots reserve(const LpClass& type, std::uint64_t first, std::uint64_t count);
  /// The next object of the range that was reserved last was made.
  void made() noexcept;
  /// Returns whether all objects were made, of the classes that the layout has.
  bool is_complete() const noexcept { return made_ == entries_.size(); }

  // ---- reading it
  std::uint32_t first() const noexcept { return first_; }
  std::size_t size() const noexcept { return entries_.size(); }
  bool has(std::uint32_t id) const noexcept { return id - first_ < entries_.size(); }
  /// Precondition: has(id).
  LpEntry& at(std::uint32_t id) noexcept { return entries_[id - first_]; }
  const LpEntry& at(std::uint32_t id) const noexcept { return entries_[id - first_]; }
  /// Returns the handler of an event type for processes of a class; null if there is none.
  Handle handler(std::uint32_t type, std::uint8_t event) const noexcept { return handlers_[type * events_ + event]; }
  const LpClass& class_of(const LpEntry& entry) const noexcept { return *layout_.classes()[entry.type]; }

 private:
  const Layout& layout_;
  std::uint32_t first_;
  std::size_t made_ = 0;
  std::size_t stride_ = 0;     // of the range that was reserved last
  std::byte* next_ = nullptr;  // its next object
  std::uint32_t type_ = 0;     // its class
  std::vector<LargeMemory> arrays_;
  LargeMemory entry_memory_;
  std::span<LpEntry> entries_;
  std::vector<Handle> handlers_;  // by class and event type
  std::size_t events_;
};

}  // namespace caftan::sim
