/// `Mutex` and its locks, and the annotations that say which mutex guards what. clang checks them (`-Wthread-safety`,
/// tests/lint/thread_safety.py); other compilers ignore them. clang does not know that a lambda runs under a lock of
/// the function around it: such a lambda begins with `mutex_.assert_held()`.
#pragma once

#include <mutex>

#if defined(__clang__)
#define CAFTAN_THREAD_SAFETY(x) __attribute__((x))
#else
#define CAFTAN_THREAD_SAFETY(x)
#endif

/// On a data member: it is read and written only while this mutex is held.
#define CAFTAN_GUARDED_BY(mutex) CAFTAN_THREAD_SAFETY(guarded_by(mutex))
/// On a function: its caller holds the mutex.
#define CAFTAN_REQUIRES(...) CAFTAN_THREAD_SAFETY(requires_capability(__VA_ARGS__))
/// On a function: it returns with the mutex held; with no argument, the mutex is the object itself.
#define CAFTAN_ACQUIRE(...) CAFTAN_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
/// On a function: it is called with the mutex held and returns without it; with no argument, the mutex is the object
/// itself.
#define CAFTAN_RELEASE(...) CAFTAN_THREAD_SAFETY(release_capability(__VA_ARGS__))
/// On a function: its caller does not hold the mutex, because the function locks it.
#define CAFTAN_EXCLUDES(...) CAFTAN_THREAD_SAFETY(locks_excluded(__VA_ARGS__))

namespace caftan::base {

/// A std::mutex that the annotations can name.
class CAFTAN_THREAD_SAFETY(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() CAFTAN_ACQUIRE() { mutex_.lock(); }
  void unlock() CAFTAN_RELEASE() { mutex_.unlock(); }
  /// States to clang that the calling code holds this mutex. Does nothing when it runs.
  void assert_held() const noexcept CAFTAN_THREAD_SAFETY(assert_capability(this)) {}

 private:
  friend class UniqueLock;
  std::mutex mutex_;
};

/// Holds a mutex from its construction to its destruction.
class CAFTAN_THREAD_SAFETY(scoped_lockable) LockGuard {
 public:
  explicit LockGuard(Mutex& mutex) CAFTAN_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~LockGuard() CAFTAN_RELEASE() { mutex_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Mutex& mutex_;
};

/// Holds a mutex, and can release and take it again before its end, as a condition variable does.
class CAFTAN_THREAD_SAFETY(scoped_lockable) UniqueLock {
 public:
  explicit UniqueLock(Mutex& mutex) CAFTAN_ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~UniqueLock() CAFTAN_RELEASE() {}
  UniqueLock(const UniqueLock&) = delete;
  UniqueLock& operator=(const UniqueLock&) = delete;

  void lock() CAFTAN_ACQUIRE() { lock_.lock(); }
  void unlock() CAFTAN_RELEASE() { lock_.unlock(); }
  /// For std::condition_variable: `changed_.wait(lock.native(), ...)`.
  std::unique_lock<std::mutex>& native() noexcept { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace caftan::base
