#include "channels/name_dial.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caftan/base/mutex.hpp"
#include "caftan/transport/internal/thread.hpp"

namespace caftan::transport {
namespace {

using Names = Result<std::vector<std::string>>;
using LookUp = Names (*)(const std::string& address);

/// What the thread of a lookup and the executor share; the last of both closes the descriptor.
struct LookUpState {
  LookUpState() : event(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~LookUpState() {
    if (event >= 0) ::close(event);
  }
  LookUpState(const LookUpState&) = delete;
  LookUpState& operator=(const LookUpState&) = delete;

  const int event;
  base::Mutex mutex;
  std::optional<Names> names CAFTAN_GUARDED_BY(mutex);
};

/// The executor, at which it is registered, keeps it alive until the names are there.
class PendingLookUp final : public Pollable {
 public:
  PendingLookUp(PollingExecutor& executor, std::shared_ptr<LookUpState> state, std::function<void(Names)> found)
      : executor_(executor), state_(std::move(state)), found_(std::move(found)) {}

  int fd() const noexcept override { return state_->event; }
  void on_ready(std::uint32_t) override {
    std::optional<Names> names;
    {
      const base::LockGuard lock(state_->mutex);
      names = std::move(state_->names);
    }
    executor_.unwatch(*this);
    if (names) std::exchange(found_, {})(*std::move(names));
  }

 private:
  PollingExecutor& executor_;
  const std::shared_ptr<LookUpState> state_;
  std::function<void(Names)> found_;
};

/// Runs on a thread of its own.
void look_up_names(LookUpState& state, const std::string& address, LookUp look_up) {
  Names names = look_up(address);
  const base::LockGuard lock(state.mutex);
  state.names.emplace(std::move(names));
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(state.event, &one, sizeof one);
}

/// Calls `found` with what `look_up` returns, on a runner. A thread of its own waits for the name service; the executor
/// does not wait for that thread at its end, and `found` is not called then.
void look_up_beside(PollingExecutor& executor, const std::string& address, LookUp look_up,
                    std::function<void(Names)> found) {
  const auto state = std::make_shared<LookUpState>();
  if (state->event < 0) return found(Error(Errc::peer_down, address + ": eventfd: " + std::strerror(errno)));
  auto thread = Thread::make([state, address, look_up] { look_up_names(*state, address, look_up); });
  if (!thread) return found(Error(Errc::peer_down, address + ": the system gives no thread to look the name up"));
  thread->detach();
  executor.watch(std::make_shared<PendingLookUp>(executor, state, std::move(found)), EPOLLIN);
}

/// Dials the addresses of a name one after the other until a peer answers (SE-39).
class NameDial : public std::enable_shared_from_this<NameDial> {
 public:
  struct Parts {
    PollingExecutor& executor;
    const ChannelKind& kind;
    std::string address;
    net::HandshakeOptions options;
    std::string expected_peer;
    HandshakeIoOptions io_options;
    HandshakeDone done;
  };
  explicit NameDial(Parts parts) : parts_(std::move(parts)) {}

  void begin() {
    look_up_beside(parts_.executor, parts_.address, parts_.kind.look_up,
                   [self = shared_from_this()](Result<std::vector<std::string>> found) {
                     if (!found) return self->parts_.done(found.error());
                     self->addresses_ = *std::move(found);
                     self->dial_next();
                   });
  }

 private:
  void dial_next() {
    const std::string& address = addresses_[next_++];
    parts_.kind.dial(
        parts_.executor, address, parts_.options, parts_.expected_peer, parts_.io_options,
        [self = shared_from_this(), address](Result<Accepted> result) { self->take(address, std::move(result)); });
  }

  void take(const std::string& address, Result<Accepted> result) {
    const bool may_be_another =
        !result && (result.error().code() == Errc::peer_down || result.error().code() == Errc::timeout ||
                    result.error().code() == Errc::io_error);
    if (!may_be_another || addresses_.size() == 1) return parts_.done(std::move(result));
    failures_ += (failures_.empty() ? "" : "; ") + address + ": " + result.error().text();
    if (next_ < addresses_.size()) return dial_next();
    parts_.done(Error(Errc::peer_down, "none of the " + std::to_string(addresses_.size()) + " addresses of " +
                                           parts_.address + " answers: " + failures_));
  }

  const Parts parts_;
  std::vector<std::string> addresses_;
  std::size_t next_ = 0;
  std::string failures_;
};

}  // namespace

void dial_by_name(PollingExecutor& executor, const ChannelKind& kind, const std::string& address,
                  net::HandshakeOptions options, const std::string& expected_peer, HandshakeIoOptions io_options,
                  HandshakeDone done) {
  std::make_shared<NameDial>(NameDial::Parts{.executor = executor,
                                             .kind = kind,
                                             .address = address,
                                             .options = std::move(options),
                                             .expected_peer = expected_peer,
                                             .io_options = io_options,
                                             .done = std::move(done)})
      ->begin();
}

}  // namespace caftan::transport
