// BU-1 to BU-9 (docs/protocols/bulk.md) and SP-3 (docs/protocols/spin.md) in random histories of two processes: the
// real sessions, with a kernel that reads memory of one process for the other. Runners, a thread that waits for replies
// and an idle runner that spins take turns in any order, also while memory is read and while memory is let go of;
// processes switch to lending late, are closed, aborted and killed, and another process gets the number of one that was
// killed.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "caftan/transport/internal/session.hpp"
#include "histories.hpp"
#include "model_channel.hpp"
#include "model_process.hpp"
#include "soak_size.hpp"

namespace caftan::transport::bulk_model_test {
namespace {

using test::below;
using wire::FrameKind;
using wire::kLentFrom;

/// The rule that the model lacks, to show that the model notices.
enum class Without {
  nothing,
  keeping,    ///< BU-2: the lender's memory is used for something else as soon as the message was sent
  end,        ///< BU-4: a lender does not say that what it has lent is there no more
  identity,   ///< BU-1: each process has the same identity
  last_look,  ///< SP-3: bytes that came before a sleep was prepared wake no thread
};

constexpr pid_t kFirstProcess = 1'000'000'000;  // beyond what a kernel gives
constexpr std::size_t kLarge = 600 * 1024;      // read in two parts
constexpr std::array<std::size_t, 8> kSizes = {24,        3000,      kLentFrom,     kLentFrom,
                                               kLentFrom, kLentFrom, kLentFrom + 8, kLarge};
constexpr std::array<std::size_t, 8> kSizesInChunks = {24, 24, 24, 24, 3000, 3000, 3000, kLentFrom - 1};
constexpr std::size_t kPlaces = 24;  // for segments in the memory of a process, the first four of them for large ones
constexpr std::size_t kLargePlaces = 4;
constexpr std::size_t kSendQueue = 3 * kLentFrom;
constexpr std::size_t kMostLent = 512 * 1024;  // of one read (BU-7)
constexpr unsigned kPartsPerTurn = 16;

/// The memory of both processes where tensors are. Made once.
std::byte* memory_of(int side, std::size_t place) {
  static std::vector<std::byte> all(2 * (kLargePlaces * kLarge + kPlaces * (kLentFrom + 4096)));
  std::byte* const begin = all.data() + static_cast<std::size_t>(side) * all.size() / 2;
  if (place < kLargePlaces) return begin + place * kLarge;
  return begin + kLargePlaces * kLarge + place * (kLentFrom + 4096);
}

/// What both processes receive into. One for all histories: memory that is fresh costs more than a history.
wire::BlockPool& pool() {
  static wire::BlockPool pool;
  return pool;
}

/// The words of a tensor by which it is known: at the begin and the end of each part in which it is read.
std::array<std::size_t, 4> marks(std::size_t size) {
  const std::size_t part = std::min(size, kMostLent);
  return {0, (part - 8) & ~std::size_t{7}, size > part ? part : 0, (size - 8) & ~std::size_t{7}};
}
/// Copies begin and end of a part, which have its marks: to copy all takes longer than the rest of a history.
void copy_marks(const iovec& to, const iovec& from) {
  const std::size_t size = std::min<std::size_t>(to.iov_len, 64);
  std::memcpy(to.iov_base, from.iov_base, size);
  std::memcpy(static_cast<std::byte*>(to.iov_base) + to.iov_len - size,
              static_cast<const std::byte*>(from.iov_base) + to.iov_len - size, size);
}
/// Counts the histories: memory of an earlier one is no tensor of this one.
std::uint64_t histories_run = 0;
std::uint64_t content(std::uint64_t number, std::size_t segment, std::size_t at) {
  return ((histories_run << 24) + number * 64 + segment) * 0x9e3779b97f4a7c15U + at;
}
void fill(std::byte* memory, std::size_t size, std::uint64_t number, std::size_t segment) {
  for (const std::size_t at : marks(size)) {
    const std::uint64_t word = content(number, segment, at);
    std::memcpy(memory + at, &word, sizeof word);
  }
}
bool holds(const std::byte* memory, std::size_t size, std::uint64_t number, std::size_t segment) {
  return std::ranges::all_of(marks(size), [&](std::size_t at) {
    const std::uint64_t word = content(number, segment, at);
    return std::memcmp(memory + at, &word, sizeof word) == 0;
  });
}

struct History {
  std::uint32_t world = 0;  // what the kernel allows, how much is written at once, which faults there are
  std::vector<std::uint32_t> steps;
};

class World;
World* kernel_of = nullptr;  // null: the kernel itself reads

class World {
 public:
  explicit World(Without without) : without_(without) {}
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Returns what went wrong, empty if nothing did.
  std::string run(const History& history);
  /// Reads memory, as the kernel does.
  ssize_t read_memory(pid_t process, const iovec* local, const iovec* remote, unsigned long count);

 private:
  /// A message that was sent.
  struct Sent {
    std::uint64_t number = 0;
    std::size_t segments_left = 0;  // not let go of
    std::uint64_t lent = 0;         // bytes
    bool is_call = false;           // the model sees when it is handed over
  };
  class Side;

  std::string start(std::uint32_t world);
  void step(std::uint32_t choice);
  void act(Side& side, std::uint32_t kind, std::uint32_t drawn);
  void end_side(Side& side, std::uint32_t drawn);
  void meanwhile(const Side* only);
  bool drain();
  bool go_on(Side& side);
  void check_end();
  void check_side(Side& side);
  void fail(const std::string& what) {
    if (bad_.empty()) bad_ = what;
  }

  const Without without_;
  const History* history_ = nullptr;
  std::size_t next_ = 0;  // the next step of the history
  bool is_inside_ = false;
  bool is_draining_ = false;
  bool is_over_ = false;
  std::string bad_;
  base::ManualClock clock_;
  std::array<ModelStream, 2> streams_;
  std::array<std::array<std::byte, kLendingAt + sizeof(LendingWords)>, 2> headers_{};
  std::array<std::unique_ptr<Side>, 2> sides_;
};

/// One process: its session, a thread that waits for replies, and an idle runner that spins.
class World::Side final : public FrameHandler {
 public:
  Side(World& world, int self)
      : world_(world),
        self_(self),
        process(world.clock_),
        lending(header(self), header(1 - self), kFirstProcess + 1 - self, nullptr) {}

  std::byte* header(int side) { return world_.headers_[static_cast<std::size_t>(side)].data(); }
  Side& other() { return *world_.sides_[static_cast<std::size_t>(1 - self_)]; }
  std::string name() const { return "side " + std::to_string(self_); }
  void make_session(const net::Limits& limits);

  // ---- what it does
  void send(std::uint32_t drawn, FrameKind kind);
  void switch_to_lending();
  bool wait_for_replies(std::uint32_t drawn);
  bool spin(std::uint32_t drawn);
  bool run_task(std::uint32_t drawn) {
    parts_ = 0;
    return process.run_one(drawn);
  }
  void kill() {
    is_killed = true;
    channel->kill();
    process.kill();
  }

  // ---- what is checked
  bool is_fine() const { return !is_killed && !session->ended(); }
  std::uint64_t lent_beyond_the_oldest() const;
  bool keeps(bool only_lent) const {
    return std::ranges::any_of(places_,
                               [&](const Place& place) { return place.is_kept && (place.is_lent || !only_lent); });
  }
  void before_read_lent(std::span<std::byte>);

  Result<std::shared_ptr<void>> on_manifest(Session&, FrameKind, wire::ByteView) override {
    return std::shared_ptr<void>();
  }
  Result<void> on_frame(const std::shared_ptr<Session>&, wire::InFrame frame) override;
  void on_end(Session&, const Error& reason) override { end = reason; }

 private:
  friend class World;
  struct NoActors final : ActorFrames {
    explicit NoActors(PollingExecutor& to) : process(to) {}
    Result<void> on_frame(wire::InFrame) override { return {}; }
    void end(const Error&, std::function<void()> done) override { process.post(std::move(done)); }
    PollingExecutor& process;
  };
  enum class Doing { away, reading, asleep };

  std::size_t other_calls() const { return world_.sides_[static_cast<std::size_t>(1 - self_)]->calls_got; }
  std::optional<std::size_t> free_place(std::size_t size) const;
  wire::Segment keep(std::uint64_t number, std::size_t index, std::size_t size, std::size_t place);
  bool lends(std::size_t size) const { return channel->lends() && size >= kLentFrom; }
  void let_go(std::uint64_t number, std::size_t size, std::size_t place);
  void leave(bool may_defer);

  World& world_;
  const int self_;

 public:
  ModelProcess process;
  Lending lending;
  std::shared_ptr<ModelChannel> channel;
  std::shared_ptr<Session> session;
  bool is_killed = false;
  bool is_closing = false;
  bool has_new_number = false;  // another process has the number of this one
  std::optional<Error> end;

 private:
  struct Place {
    bool is_kept = false;
    bool is_lent = false;
  };
  std::array<Place, kPlaces> places_{};
  std::vector<Sent> sent_;
  net::Traffic traffic_;
  std::size_t calls_sent = 0;
  std::size_t calls_got = 0;
  std::array<std::uint64_t, 2> last_got_{};  // without and with tensors
  unsigned parts_ = 0;                       // of the peer's memory that were read in this turn
  bool is_read_due_ = false;                 // bytes had come when a part was read
  bool has_switched_ = false;
  struct Threads {
    Doing waiter = Doing::away;
    bool is_waiter_inside = false;
    bool has_deferred = false;
    bool spins = false;
  } threads_;
};

// ---- the kernel

ssize_t World::read_memory(pid_t process, const iovec* local, const iovec* remote, unsigned long count) {
  Side& lender = *sides_[static_cast<std::size_t>(process - kFirstProcess)];
  meanwhile(nullptr);
  if ((history_->world >> (1 - lender.self_) & 1) != 0) return errno = EPERM, -1;
  if (lender.is_killed && !lender.has_new_number) return errno = ESRCH, -1;
  ssize_t total = 0;
  for (unsigned long i = 0; i < count; ++i) {
    const bool is_identity = i + 1 == count;
    if (lender.has_new_number && !(is_identity && without_ == Without::identity)) {
      std::memset(local[i].iov_base, 0xee, std::min<std::size_t>(local[i].iov_len, 64));
    } else {
      copy_marks(local[i], remote[i]);
    }
    total += static_cast<ssize_t>(local[i].iov_len);
  }
  meanwhile(nullptr);
  return total;
}

/// What other threads and processes do while one of them is at work, by the next steps of the history.
/// @param only  null: any process
void World::meanwhile(const Side* only) {
  if (is_inside_ || is_draining_ || is_over_) return;
  is_inside_ = true;
  for (int i = 0; i < 4 && next_ < history_->steps.size() && history_->steps[next_] >> 31 != 0; ++i) {
    const std::uint32_t choice = history_->steps[next_++];
    if (only && sides_[choice & 1].get() != only) continue;
    step(choice);
  }
  is_inside_ = false;
}

// ---- one process

void World::Side::make_session(const net::Limits& limits) {
  channel = std::make_shared<ModelChannel>(process, world_.streams_[static_cast<std::size_t>(1 - self_)],
                                           world_.streams_[static_cast<std::size_t>(self_)]);
  channel->says_end = world_.without_ != Without::end;
  channel->looks_again = world_.without_ != Without::last_look;
  channel->on_read = [this] { is_read_due_ = false; };
  channel->on_read_lent = [this](std::span<std::byte> to) { before_read_lent(to); };
  channel->after_read_lent = [this] { is_read_due_ = channel->has_unread(); };
  SessionOptions options;
  options.limits = limits;
  options.liveness = std::nullopt;
  session =
      Session::make({process, pool(), *this}, {{WorkerId{1}, Incarnation{2}}, "peer", limits}, 1, channel, options);
  session->set_actors(std::make_unique<NoActors>(process));
}

void World::Side::before_read_lent(std::span<std::byte> to) {
  if (is_killed) return;
  if (to.size() > kMostLent) world_.fail("BU-7: " + std::to_string(to.size()) + " bytes are read at once");
  if (is_read_due_) world_.fail("BU-7: frames that had come wait for more than one part");
  if (++parts_ > kPartsPerTurn) world_.fail("BU-7: a runner reads more than 16 parts in one turn");
}

std::optional<std::size_t> World::Side::free_place(std::size_t size) const {
  const std::size_t begin = size > kLentFrom + 4096 ? 0 : kLargePlaces;
  const std::size_t end = begin == 0 ? kLargePlaces : kPlaces;
  for (std::size_t place = begin; place < end; ++place) {
    if (!places_[place].is_kept) return place;
  }
  return std::nullopt;
}

/// Makes a tensor in a place of this process's memory.
wire::Segment World::Side::keep(std::uint64_t number, std::size_t index, std::size_t size, std::size_t place) {
  places_[place] = {true, lends(size)};
  std::byte* const memory = memory_of(self_, place);
  fill(memory, size, number, index);
  return {memory, size, std::shared_ptr<const void>(memory, [=, this](const void*) { let_go(number, size, place); })};
}

/// The place is used for something else. The other process may read just then.
void World::Side::let_go(std::uint64_t number, std::size_t size, std::size_t place) {
  if (world_.is_over_) return;
  std::memset(memory_of(self_, place), 0xdd, 8);
  std::memset(memory_of(self_, place) + size - 8, 0xdd, 8);
  places_[place] = {};
  const auto message = std::ranges::find(sent_, number, &Sent::number);
  if (message != sent_.end() && --message->segments_left == 0) message->lent = 0;
  if (!is_killed) world_.meanwhile(&other());
}

/// Returns the bytes that the peer has not taken, but for those of the oldest message that lends.
std::uint64_t World::Side::lent_beyond_the_oldest() const {
  std::uint64_t lent = 0;
  bool is_oldest = true;
  for (const Sent& message : sent_) {
    if (message.lent > 0 && !std::exchange(is_oldest, false)) lent += message.lent;
  }
  return lent;
}

void World::Side::send(std::uint32_t drawn, FrameKind kind) {
  const std::uint64_t number = 2 * sent_.size() + 2 + static_cast<std::uint64_t>(self_);
  wire::OutFrame frame;
  frame.header.kind = kind;
  frame.header.call = number;
  Sent message{.number = number, .is_call = kind != FrameKind::response};
  const std::uint32_t count =
      kind == FrameKind::cancel || (kind == FrameKind::response && drawn % 4 != 0) ? 0 : 1 + drawn % 3;
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool in_chunks = !channel->lends() && (drawn >> 15 & 15) != 0;
    const std::size_t size = (in_chunks ? kSizesInChunks : kSizes)[drawn >> (4 + 3 * i) & 7];
    const auto place = free_place(size);
    if (!place) continue;
    if (lends(size)) message.lent += size;
    frame.segments.push_back(keep(number, frame.segments.size(), size, *place));
  }
  message.segments_left = frame.segments.size();
  const std::uint64_t size = frame.size();
  const std::uint64_t bulk = frame.bulk_size();
  const std::vector<wire::Segment> segments = frame.segments;
  sent_.push_back(message);
  if (!session->writer().send(frame, drawn >> 13 & 1 ? std::optional(FlushBy::soon) : std::nullopt)) {
    sent_.back().is_call = false;
    sent_.back().lent = 0;
    return;
  }
  calls_sent += message.is_call ? 1 : 0;
  traffic_.add(kind, 0, size, bulk);
  if (world_.without_ == Without::keeping && message.lent > 0) {
    for (const wire::Segment& segment : segments) std::memset(const_cast<std::byte*>(segment.data), 0xdd, 8);
  }
  if (lent_beyond_the_oldest() > kSendQueue && is_fine() && !session->writer().serve_gate().is_busy()) {
    world_.fail("BU-6: " + name() + " has lent more than its window, and calls of its peer begin");
  }
}

/// The acceptor reads the dialler's identity and shows its own, then the dialler reads that one.
void World::Side::switch_to_lending() {
  if ((self_ == 0 && !other().channel->lending) || std::exchange(has_switched_, true)) return;
  if (self_ == 1) (void)lending.probe();
  if (self_ == 1) (void)lending.show();
  if (self_ == 0) (void)lending.probe();
  channel->lending = &lending;
}

Result<void> World::Side::on_frame(const std::shared_ptr<Session>& from, wire::InFrame frame) {
  if (is_killed) return {};
  const std::uint64_t number = frame.header.call;
  const bool has_tensors = frame.header.bulk_size > 0;
  ++calls_got;
  if (from->has_left()) world_.fail("BU-2: a message comes behind the bye");
  if (std::exchange(last_got_[has_tensors], number) >= number) world_.fail("BU-3: a message was overtaken");
  for (std::size_t i = 0; i < frame.segments.size(); ++i) {
    if (!holds(frame.segments[i].data(), frame.segments[i].size(), number, i)) {
      world_.fail("BU-1, BU-2, BU-4: " + name() + " got bytes that are not those of the message");
    }
  }
  return {};
}

// ---- its threads

/// Ends the claim of the thread that waits.
void World::Side::leave(bool may_defer) {
  threads_.waiter = Doing::away;
  threads_.has_deferred = session->release(may_defer).lock() != nullptr;
}

/// A turn of the thread that waits for replies, as ThreadedExecutor's wait has it. Returns false if it does nothing.
bool World::Side::wait_for_replies(std::uint32_t drawn) {
  if (threads_.is_waiter_inside) return false;
  const bool is_free = !world_.is_draining_;  // to begin and to end waits
  switch (threads_.waiter) {
    case Doing::away: {
      if (!is_free) return false;
      const bool claimed = session->claim();
      if (std::exchange(threads_.has_deferred, false) && !claimed) session->end_deferral();
      if (!claimed) return false;
      threads_.waiter = Doing::reading;
      if ((drawn & 1) != 0) session->stay_awake();
      return true;
    }
    case Doing::asleep:
      if (!channel->is_rung() && !(is_free && drawn % 8 == 0)) return false;
      session->wake(channel->is_rung());
      threads_.waiter = Doing::reading;
      return true;
    case Doing::reading:
      break;
  }
  if (is_free && drawn % 8 == 0) return leave(true), true;
  const bool spins = is_free && (drawn & 8) != 0;
  if (spins && session->look() == Look::nothing) return true;
  if (!spins && session->try_sleep()) return threads_.waiter = Doing::asleep, true;
  parts_ = 0;
  threads_.is_waiter_inside = true;
  const bool more = session->read_claimed();
  threads_.is_waiter_inside = false;
  if (!more && !is_killed) leave(false);
  return true;
}

/// A turn of the idle runner. Returns false if it does nothing.
bool World::Side::spin(std::uint32_t drawn) {
  if (!threads_.spins) {
    if (!world_.is_draining_) threads_.spins = session->begin_spin();
    return threads_.spins;
  }
  const Look seen = session->look_as_runner();
  if (seen == Look::nothing && !world_.is_draining_ && drawn % 4 != 0) return true;
  threads_.spins = false;
  parts_ = 0;
  if (seen == Look::something) {
    session->read_as_runner();
  } else {
    session->end_spin();
  }
  return true;
}

// ---- histories

std::string World::start(std::uint32_t world) {
  net::Limits limits;
  limits.message = 100'000;
  limits.segments = 4;
  limits.send_queue = kSendQueue;
  constexpr std::array<std::size_t, 4> kCapacities = {1000, 64 * 1024, 64 * 1024, 1 << 20};
  for (ModelStream& stream : streams_) stream.capacity = kCapacities[world >> 2 & 3];
  for (const int self : {0, 1}) sides_[static_cast<std::size_t>(self)] = std::make_unique<Side>(*this, self);
  for (const auto& side : sides_) side->make_session(limits);
  sides_[0]->channel->peer = sides_[1]->channel;
  sides_[1]->channel->peer = sides_[0]->channel;
  if (!sides_[0]->lending.show()) return "no identity";
  for (const auto& side : sides_) side->session->start();
  if ((world >> 7 & 1) != 0) return {};  // they switch later
  sides_[1]->switch_to_lending();
  sides_[0]->switch_to_lending();
  return {};
}

World::~World() {
  is_over_ = true;
  for (const auto& side : sides_) {
    if (side) side->process.kill();
  }
  for (const auto& side : sides_) {
    if (side) side->session = nullptr;
  }
  kernel_of = nullptr;
}

std::string World::run(const History& history) {
  history_ = &history;
  kernel_of = this;
  ++histories_run;
  if (std::string bad = start(history.world); !bad.empty()) return bad;
  while (next_ < history.steps.size() && bad_.empty()) step(history.steps[next_++]);
  is_draining_ = true;
  if (bad_.empty() && !drain()) fail("the sessions do not come to rest");
  if (bad_.empty()) check_end();
  return bad_;
}

void World::step(std::uint32_t choice) {
  Side& side = *sides_[choice & 1];
  if (!side.is_killed) return act(side, choice >> 1 & 31, choice >> 6);
  if ((choice >> 1 & 31) == 31) side.has_new_number = true;
}

void World::act(Side& side, std::uint32_t kind, std::uint32_t drawn) {
  if (kind < 10) {
    side.process.flush();
    side.run_task(drawn);
  } else if (kind < 15) {
    (void)side.wait_for_replies(drawn);
  } else if (kind < 18) {
    (void)side.spin(drawn);
  } else if (kind < 22) {
    side.send(drawn, FrameKind::call);
  } else if (kind < 24) {
    side.send(drawn, FrameKind::cancel);
  } else if (kind < 27) {
    side.send(drawn, FrameKind::response);
  } else if (kind == 27) {
    clock_.advance(std::chrono::microseconds(50 + drawn % 1000));
  } else if (kind < 30) {
    side.switch_to_lending();
  } else {
    end_side(side, drawn);
  }
}

/// Ends a process, or its session, in histories that have such ends.
void World::end_side(Side& side, std::uint32_t drawn) {
  const std::uint32_t faults = history_->world >> 4 & 7;
  if (drawn % 8 != 0 || faults < 4) return;
  if (faults < 6) {
    side.is_closing = true;
    side.session->writer().close();
  } else if (faults == 6) {
    side.session->abort(Error(Errc::peer_down, "the model ends the session"));
  } else {
    side.kill();
  }
}

/// One thing that is left to do at a side.
bool World::go_on(Side& side) {
  if (side.is_killed) return false;
  return side.process.flush() || side.run_task(0) || side.wait_for_replies(1) || side.spin(1);
}

/// Goes on until nothing is left to do but to wait for bells. Returns false if that never comes.
bool World::drain() {
  for (int left = 100'000; left > 0; --left) {
    if (go_on(*sides_[0]) || go_on(*sides_[1])) continue;
    base::TimePoint next = base::kNever;
    for (const auto& side : sides_) next = std::min(next, side->process.next_timer());
    if (next == base::kNever) return true;
    clock_.advance(std::max(next - clock_.now(), base::Duration::zero()));
  }
  return false;
}

void World::check_end() {
  const bool is_killed = sides_[0]->is_killed || sides_[1]->is_killed;
  const bool is_closing = sides_[0]->is_closing || sides_[1]->is_closing;
  const bool is_aborted = (history_->world >> 4 & 7) == 6;
  const bool may_end = is_killed || is_closing || is_aborted;
  for (const auto& side : sides_) {
    if (side->is_killed) continue;
    const bool has_ended = side->session->ended();
    check_side(*side);
    if (has_ended && !may_end) fail("BU-9: an honest session ends: " + (side->end ? side->end->message() : "?"));
    if (has_ended != side->end.has_value()) fail("the end was not reported");
    if (!has_ended && (is_killed || is_closing)) fail("the session does not end");
    if (side->end && side->end->code() == Errc::malformed_payload) fail("BU-9: " + side->end->message());
    if (is_killed || is_aborted) continue;
    if (side->calls_sent != side->other_calls()) {
      fail(side->name() + " has sent " + std::to_string(side->calls_sent) + " messages, and " +
           std::to_string(side->other_calls()) + " were handed over");
    }
  }
}

void World::check_side(Side& side) {
  if (side.keeps(true)) fail("BU-2: " + side.name() + " still keeps what it has lent");
  if (side.session->writer().serve_gate().is_busy()) fail("BU-6: calls still wait at " + side.name());
  const net::Traffic sent = side.session->writer().traffic();
  for (const FrameKind kind : {FrameKind::call, FrameKind::cancel, FrameKind::response, FrameKind::chunk}) {
    if (!(sent.of(kind) == side.traffic_.of(kind))) fail("BU-6: " + side.name() + " counts frames differently");
  }
  if (side.session->ended()) side.session = nullptr;  // with what it has not written
  if (side.keeps(false)) fail(side.name() + " still keeps what it has sent");
}

/// Draws runs of one thing that one process does: some faults need many of them in a row.
History draw(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  History history;
  history.world = below(random, 4) == 0 ? below(random, 256) : below(random, 64) << 2;
  while (history.steps.size() < 150) {
    const std::uint32_t what = below(random, 64);
    const std::uint32_t inside = below(random, 2) << 31;
    for (std::uint32_t left = 1 + below(random, below(random, 3) == 0 ? 12 : 3); left > 0; --left) {
      history.steps.push_back(inside | (below(random, 1U << 25) << 6) | what);
    }
  }
  return history;
}

/// Returns a report of the first bad history, empty if there is none.
std::string search(Without without, std::uint64_t histories) {
  for (std::uint64_t seed = 1; seed <= histories; ++seed) {
    if (World(without).run(draw(seed)).empty()) continue;
    const auto is_bad = [&](const History& history) { return !World(without).run(history).empty(); };
    const History shortest = test::without_needless_steps<History>(draw(seed), is_bad);
    return "seed " + std::to_string(seed) + ", " + std::to_string(shortest.steps.size()) +
           " steps: " + World(without).run(shortest);
  }
  return {};
}

TEST(BulkModel, BU1_to_BU9_SP3_HoldInEachHistory) {
  EXPECT_EQ(search(Without::nothing, test::soak_size("CAFTAN_BULK_HISTORIES", 4'000)), "");
}

class BulkModelWithout : public ::testing::TestWithParam<std::pair<const char*, Without>> {};

TEST_P(BulkModelWithout, IsFound) { EXPECT_NE(search(GetParam().second, 20'000), ""); }

INSTANTIATE_TEST_SUITE_P(Rules, BulkModelWithout,
                         ::testing::Values(std::pair("BU1_AnIdentityOfItsOwn", Without::identity),
                                           std::pair("BU2_MemoryIsKept", Without::keeping),
                                           std::pair("BU4_TheEndIsSaid", Without::end),
                                           std::pair("SP3_OneMoreLookBeforeASleep", Without::last_look)),
                         [](const auto& info) { return std::string(info.param.first); });

}  // namespace
}  // namespace caftan::transport::bulk_model_test

/// The kernel's call, in this program: the model's kernel while a history runs.
extern "C" ssize_t process_vm_readv(pid_t process, const iovec* local, unsigned long locals, const iovec* remote,
                                    unsigned long remotes, unsigned long flags) noexcept {
  namespace model = caftan::transport::bulk_model_test;
  if (model::kernel_of) return model::kernel_of->read_memory(process, local, remote, locals);
  return ::syscall(SYS_process_vm_readv, process, local, locals, remote, remotes, flags);
}
