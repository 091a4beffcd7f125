#include "caftan/rpc/ambient.hpp"

#include <c10/core/GradMode.h>

#include "caftan/wire/archive.hpp"

namespace caftan {

thread_local constinit Ambient* Ambient::current_ = nullptr;

void CancelFlag::set() noexcept {
  set_.store(true);
  for (;;) {
    std::shared_ptr<Part> part;
    {
      const base::LockGuard lock(mutex_);
      if (!parts_) return;
      part = parts_->weak_from_this().lock();  // null: it is being destroyed
      Part& first = *parts_;
      parts_ = first.next_;
      if (parts_) parts_->before_ = &parts_;
      first.before_ = nullptr;
    }
    if (part) part->give_up();
  }
}

void CancelFlag::add(const std::shared_ptr<Part>& part) const {
  const base::LockGuard lock(mutex_);
  if (is_set()) return;
  part->next_ = parts_;
  part->before_ = &parts_;
  if (parts_) parts_->before_ = &part->next_;
  parts_ = part.get();
}

void CancelFlag::remove(Part& part) const noexcept {
  const base::LockGuard lock(mutex_);
  if (!part.before_) return;
  *part.before_ = part.next_;
  if (part.next_) part.next_->before_ = part.before_;
  part.before_ = nullptr;
}

Ambient& Ambient::of_thread() noexcept {
  static thread_local Ambient own;
  if (!current_) current_ = &own;
  return *current_;
}

Ambient Ambient::capture() {
  Ambient captured;
  if (current_) {
    captured = *current_;
    captured.order = {current_->order.next(), 0};
  }
  captured.turn = nullptr;
  captured.brief = nullptr;
  captured.executor = nullptr;
  captured.inside_reading_wait = false;
  captured.grad_mode = c10::GradMode::is_enabled();
  return captured;
}

AmbientSwap::AmbientSwap(Ambient* next) noexcept
    : previous_(Ambient::current_), previous_grad_mode_(c10::GradMode::is_enabled()) {
  // A continuation is captured on one thread and runs on another; it waits with the executor of the thread on which it
  // runs.
  if (next && !next->executor && previous_) next->executor = previous_->executor;
  Ambient::current_ = next;
  const bool wanted = !next || next->grad_mode;
  if (wanted != previous_grad_mode_) c10::GradMode::set_enabled(wanted);
}

AmbientSwap::~AmbientSwap() {
  Ambient::current_ = previous_;
  c10::GradMode::set_enabled(previous_grad_mode_);
}

namespace rpc {

namespace {
Ambient make_reading() {
  Ambient ambient;
  ambient.inside_reading_wait = true;
  return ambient;
}
constexpr std::size_t kMostHeld = 64;
constexpr std::size_t kLongestName = 256;
}  // namespace

Result<void> check_may_wait() {
  const Ambient* const ambient = Ambient::current();
  if (!ambient || !ambient->brief) return {};
  return Error(Errc::would_deadlock, *ambient->brief +
                                         " is registered as brief, so it must not wait: the thread that it "
                                         "runs on reads the replies. Register it without brief");
}

NoUserCode::NoUserCode() noexcept : empty_(make_reading()), swap_(&empty_) {}

void encode_held(const HeldObjects& held, wire::Bytes& to) {
  wire::OutArchive archive(to);
  std::vector<const HeldObject*> live;
  if (held) {
    for (const HeldObject& object : *held) {
      if (!object.is_over()) live.push_back(&object);
    }
  }
  archive.save_count(live.size());
  for (const HeldObject* object : live) archive << object->id << object->name;
}

Result<HeldObjects> decode_held(wire::ByteView from) {
  wire::InArchive archive(from);
  try {
    std::vector<HeldObject> held(archive.load_count(21));
    if (held.size() > kMostHeld) throw wire::DecodeError("a call chain holds too many objects");
    for (HeldObject& object : held) {
      archive >> object.id >> object.name;
      if (object.name.size() > kLongestName) throw wire::DecodeError("the name of a held object is too long");
    }
    if (archive.remaining() > 0) throw wire::DecodeError("bytes left over");
    if (held.empty()) return HeldObjects();
    return HeldObjects(std::make_shared<const std::vector<HeldObject>>(std::move(held)));
  } catch (...) {
    return wire::detail::decode_failure(archive.position());
  }
}

HeldObjects with_held(const HeldObjects& held, HeldObject object) {
  std::vector<HeldObject> all;
  if (held) all = *held;
  if (object.name.size() > kLongestName) object.name.resize(kLongestName);
  all.push_back(std::move(object));
  return std::make_shared<const std::vector<HeldObject>>(std::move(all));
}

}  // namespace rpc
}  // namespace caftan
