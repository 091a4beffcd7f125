#include "caftan/transport/internal/thread.hpp"

#include <csignal>
#include <exception>
#include <memory>

namespace caftan::transport {

std::optional<Thread> Thread::make(std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  // The kernel sends these signals to the thread that caused them. If they were blocked, it would kill the process
  // without calling a handler.
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  auto held = std::make_unique<std::function<void()>>(std::move(body));
  pthread_t handle{};
  const auto enter = [](void* given) -> void* {
    const std::unique_ptr<std::function<void()>> body(static_cast<std::function<void()>*>(given));
    (*body)();
    return nullptr;
  };
  const int failed = pthread_create(&handle, nullptr, enter, held.get());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed != 0) return std::nullopt;
  (void)held.release();  // the thread owns it
  return Thread(handle);
}

Thread::~Thread() {
  if (handle_) std::terminate();
}

void Thread::join() {
  pthread_join(*handle_, nullptr);
  handle_.reset();
}

void Thread::detach() {
  pthread_detach(*handle_);
  handle_.reset();
}

}  // namespace caftan::transport
