/// `Thread`: a thread of the transport. Unlike std::thread it reports by a value that the system gives no more threads
/// (a limit of the user, or of the container), so that the caller can go on with fewer.
#pragma once

#include <pthread.h>

#include <functional>
#include <optional>
#include <utility>

namespace caftan::transport {

/// Move-only; join or detach it before it is destroyed. The thread takes no signals but those that it causes itself
/// (SIGSEGV and the like): the program's own threads take the others.
class Thread {
 public:
  /// Starts a thread that runs `body`. Returns nothing if the system gives none; then nothing has changed.
  static std::optional<Thread> make(std::function<void()> body);

  Thread(Thread&& other) noexcept : handle_(std::exchange(other.handle_, std::nullopt)) {}
  Thread& operator=(Thread&&) = delete;
  ~Thread();

  /// Waits for the thread's end. Not to be called on the thread itself.
  void join();
  /// Lets the thread end by itself. Precondition: `body` owns all that it uses.
  void detach();

 private:
  explicit Thread(pthread_t handle) noexcept : handle_(handle) {}

  std::optional<pthread_t> handle_;
};

}  // namespace caftan::transport
