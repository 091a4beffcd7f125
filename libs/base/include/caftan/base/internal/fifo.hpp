/// `Fifo`: a queue in one piece of memory that it keeps, so that items come and go without an allocation.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace caftan::base {

/// T has a default value, which holds nothing. An item that is removed is destroyed at once. References to items are
/// valid until the next item is added or removed. Threads: one at a time.
template <class T>
class Fifo {
 public:
  bool empty() const noexcept { return first_ == items_.size(); }
  std::size_t size() const noexcept { return items_.size() - first_; }
  auto begin() noexcept { return items_.begin() + static_cast<std::ptrdiff_t>(first_); }
  auto end() noexcept { return items_.end(); }
  /// Precondition of these four: not empty.
  T& front() noexcept { return items_[first_]; }
  const T& front() const noexcept { return items_[first_]; }
  T& back() noexcept { return items_.back(); }
  void pop_front() {
    items_[first_++] = T();
    if (empty()) {
      reset();
    } else if (first_ >= kMostGaps && 2 * first_ >= items_.size()) {
      items_.erase(items_.begin(), begin());
      first_ = 0;
    }
  }

  void push_back(T&& item) { items_.push_back(std::move(item)); }
  void clear() {
    items_.clear();
    reset();
  }

 private:
  static constexpr std::size_t kMostGaps = 64;    // places of removed items, before items are moved into them
  static constexpr std::size_t kMostKept = 1024;  // items for which an empty queue keeps memory

  /// Precondition: empty.
  void reset() {
    if (items_.capacity() > kMostKept) std::vector<T>().swap(items_);
    items_.clear();
    first_ = 0;
  }

  std::vector<T> items_;  // those before first_ were removed
  std::size_t first_ = 0;
};

}  // namespace caftan::base
