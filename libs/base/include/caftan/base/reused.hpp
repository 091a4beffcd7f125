/// `Reused<C>`: a container that leaves its memory to the next one of its kind on the thread that ends it, so that what
/// each message needs for a moment is allocated once.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

namespace caftan::base {

namespace detail {

/// The memory that containers of type C have left on one thread.
template <class C>
class SpareMemory {
 public:
  static void take(C& to) noexcept {
    if (is_over_) return;
    SpareMemory& spare = of_thread_;
    if (spare.count_ > 0) to.swap(spare.containers_[--spare.count_]);
  }
  static void keep(C& from) noexcept {
    constexpr std::size_t kMostBytes = 8192;  // more than this of one container goes back to the system
    from.clear();
    if (is_over_ || from.capacity() * sizeof(typename C::value_type) > kMostBytes) return;
    SpareMemory& spare = of_thread_;
    if (spare.count_ < spare.containers_.size()) from.swap(spare.containers_[spare.count_++]);
  }
  ~SpareMemory() { is_over_ = true; }

 private:
  static constexpr std::size_t kMost = 4;

  std::array<C, kMost> containers_;
  std::size_t count_ = 0;  // the first so many have memory

  static thread_local SpareMemory of_thread_;
  static inline thread_local constinit bool is_over_ = false;  // the thread ends, and of_thread_ is gone
};

template <class C>
thread_local SpareMemory<C> SpareMemory<C>::of_thread_;

}  // namespace detail

/// A std::vector C whose destructor keeps the memory for the thread. It begins without memory; `reuse` takes what was
/// kept. Used as a C in every other respect. Threads: as C.
template <class C>
class Reused : public C {
 public:
  using C::C;
  Reused() = default;
  Reused(C&& other) noexcept : C(std::move(other)) {}  // NOLINT(google-explicit-constructor): it becomes one
  Reused(const Reused&) = default;
  Reused(Reused&&) noexcept = default;
  Reused& operator=(const Reused&) = default;
  Reused& operator=(Reused&& other) noexcept {
    if (this != &other) {
      leave();
      C::swap(other);
    }
    return *this;
  }
  ~Reused() { leave(); }

  /// Takes memory that another one of its kind has left on this thread, if it has none itself.
  void reuse() noexcept {
    if (C::capacity() == 0) detail::SpareMemory<C>::take(*this);
  }
  /// Removes all elements and leaves the memory to the next one.
  void leave() noexcept {
    if (C::capacity() != 0) detail::SpareMemory<C>::keep(*this);
    C().swap(*this);
  }
};

}  // namespace caftan::base
