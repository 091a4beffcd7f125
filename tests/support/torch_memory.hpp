/// `TorchMemory`: while an object of this class lives, it is libtorch's CPU allocator, which counts large blocks and
/// refuses them on demand.
#pragma once

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cstddef>

namespace caftan::test {

/// At most one object at a time in a process.
class TorchMemory {
 public:
  /// @param large  bytes from which on a block counts
  explicit TorchMemory(std::size_t large) {
    large_ = large;
    blocks_ = 0;
    refuses_ = false;
    c10::SetCPUAllocator(&allocator_, kPriority);
  }
  ~TorchMemory() { c10::SetCPUAllocator(c10::GetDefaultCPUAllocator(), kPriority); }
  TorchMemory(const TorchMemory&) = delete;
  TorchMemory& operator=(const TorchMemory&) = delete;

  /// From now on there is no memory for large blocks.
  void refuse() { refuses_ = true; }
  void allow() { refuses_ = false; }
  /// Returns how many large blocks were taken.
  int blocks() const { return blocks_; }

 private:
  class Counting final : public c10::Allocator {
   public:
    c10::DataPtr allocate(std::size_t bytes) override {
      if (bytes >= large_) {
        // The text is that of libtorch's own allocator.
        TORCH_CHECK(!refuses_, "DefaultCPUAllocator: can't allocate memory: you tried to allocate ", bytes, " bytes.");
        ++blocks_;
      }
      return c10::GetDefaultCPUAllocator()->allocate(bytes);
    }
    c10::DeleterFnPtr raw_deleter() const override { return c10::GetDefaultCPUAllocator()->raw_deleter(); }
    void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
  };

  static constexpr std::uint8_t kPriority = 100;
  static inline Counting allocator_;
  static inline std::atomic<std::size_t> large_{0};
  static inline std::atomic<int> blocks_{0};
  static inline std::atomic<bool> refuses_{false};
};

}  // namespace caftan::test
