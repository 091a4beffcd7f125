#include "rref/rref_frames.hpp"

#include <atomic>

#include <caf/send.hpp>

#include "rref/rref_handles.hpp"
#include "rref/rref_host.hpp"

namespace caftan::actors {

Result<wire::Bytes> OutgoingRRefs::encode() const { return wire::encode(manifest_); }

void OutgoingRRefs::undo() {
  for (const auto& step : std::exchange(undo_, {})) step();
}

ReceivedRRefs::~ReceivedRRefs() {
  const auto alive = caller_.lock();
  if (alive && creation) {
    host_.set_value(creation->rref, Error(Errc::broken_promise, alive->name(), "the request to create it was dropped"));
  }
}

void when_confirmed(const std::shared_ptr<ReceivedRRefs>& received, base::Executor& executor, base::TimePoint deadline,
                    std::function<void(Result<void>)> done) {
  struct Pending {
    Pending(std::size_t left, std::shared_ptr<ReceivedRRefs> received, std::function<void(Result<void>)> done)
        : left(left), received(std::move(received)), done(std::move(done)) {}
    std::atomic<std::size_t> left;
    std::shared_ptr<ReceivedRRefs> received;
    std::function<void(Result<void>)> done;
    void one() {
      if (left.fetch_sub(1) != 1) return;
      for (const auto& handle : received->handles) {
        if (auto refused = static_cast<const HandleBase&>(*handle).refused()) return done(std::move(*refused));
      }
      done({});
    }
  };
  auto pending = std::make_shared<Pending>(received->handles.size() + 1, received, std::move(done));
  bool waits = false;
  for (const auto& handle : received->handles) {
    auto& base = static_cast<HandleBase&>(*handle);
    if (base.has_outcome_or([pending] { pending->one(); })) {
      pending->one();
    } else {
      waits = true;
    }
  }
  if (waits && deadline != base::kNever) {
    executor.post_at(deadline, [weak = std::weak_ptr(received)] {
      const auto late = weak.lock();
      if (!late) return;
      for (const auto& handle : late->handles) {
        if (const auto* user = dynamic_cast<UserHandle*>(handle.get())) {
          caf::anon_send(user->actor(), UserEvent{user_event::Deadline{}});
        }
      }
    });
  }
  pending->one();
}

}  // namespace caftan::actors
