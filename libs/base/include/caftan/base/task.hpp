/// `Task`: a move-only `void()` with room for small captures, so that posting one to a runner does not allocate.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace caftan::base {

/// A function without parameters and result. Move-only; default-made it is empty. Threads: one at a time.
class Task {
 public:
  Task() = default;
  template <class F>
  requires(!std::is_same_v<std::decay_t<F>, Task> && std::is_invocable_v<std::decay_t<F>&>)
      Task(F&& function) {  // NOLINT(google-explicit-constructor): a lambda is a task
    using Function = std::decay_t<F>;
    if constexpr (sizeof(Function) <= kRoom && alignof(Function) <= alignof(std::max_align_t) &&
                  std::is_nothrow_move_constructible_v<Function>) {
      ::new (room_) Function(std::forward<F>(function));
      table_ = &kInPlace<Function>;
    } else {
      ::new (room_) std::unique_ptr<Function>(std::make_unique<Function>(std::forward<F>(function)));
      table_ = &kOnHeap<Function>;
    }
  }
  Task(Task&& other) noexcept : table_(std::exchange(other.table_, nullptr)) {
    if (table_) table_->move(other.room_, room_);
  }
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      reset();
      table_ = std::exchange(other.table_, nullptr);
      if (table_) table_->move(other.room_, room_);
    }
    return *this;
  }
  ~Task() { reset(); }

  explicit operator bool() const noexcept { return table_ != nullptr; }
  /// Runs the function. Precondition: not empty.
  void operator()() { table_->run(room_); }

 private:
  static constexpr std::size_t kRoom = 72;
  struct Table {
    void (*run)(void*);
    void (*move)(void* from, void* to) noexcept;
    void (*destroy)(void*) noexcept;
  };
  template <class F>
  static constexpr Table kInPlace{[](void* at) { (*static_cast<F*>(at))(); },
                                  [](void* from, void* to) noexcept {
                                    ::new (to) F(std::move(*static_cast<F*>(from)));
                                    static_cast<F*>(from)->~F();
                                  },
                                  [](void* at) noexcept { static_cast<F*>(at)->~F(); }};
  template <class F>
  static constexpr Table kOnHeap{[](void* at) { (**static_cast<std::unique_ptr<F>*>(at))(); },
                                 [](void* from, void* to) noexcept {
                                   ::new (to) std::unique_ptr<F>(std::move(*static_cast<std::unique_ptr<F>*>(from)));
                                   std::destroy_at(static_cast<std::unique_ptr<F>*>(from));
                                 },
                                 [](void* at) noexcept { std::destroy_at(static_cast<std::unique_ptr<F>*>(at)); }};

  void reset() noexcept {
    if (table_) table_->destroy(room_);
    table_ = nullptr;
  }

  alignas(std::max_align_t) std::byte room_[kRoom];
  const Table* table_ = nullptr;
};

}  // namespace caftan::base
