// Takes arbitrary bytes as messages of the backward protocol that come to one worker's context, one after another:
// what decodes must be written as the same bytes, and whatever it says, every pass ends once all others are lost
// (DA-10).
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "caftan/autograd/internal/context_passes.hpp"
#include "caftan/wire/archive.hpp"

namespace {

using namespace caftan;
using namespace caftan::autograd;

void require(bool holds) {
  if (!holds) std::abort();
}

constexpr WorkerLife kHome{{0}, {10}};
constexpr std::array<WorkerLife, 3> kOthers{WorkerLife{{1}, {11}}, WorkerLife{{2}, {12}}, WorkerLife{{3}, {13}}};
constexpr ContextId kContext{kHome.id, kHome.incarnation, 1};

/// A record of two sent messages, 1 and 2, whose receiver is the second of the other workers.
class TwoSent final : public RecordedMessages {
 public:
  explicit TwoSent(WorkerLife self) : self_(self) {}
  std::optional<WorkerLife> receiver_of(AutogradMessageId message) const override {
    if (message.maker() != self_ || message.number == 0 || message.number > 2) return std::nullopt;
    return kOthers[1];
  }
  std::vector<AutogradMessageId> sends() const override {
    return {{self_.id, self_.incarnation, 1}, {self_.id, self_.incarnation, 2}};
  }

 private:
  const WorkerLife self_;
};

/// One worker that took part in the context and has opened a pass. Its graph reaches one message from each side.
class Receiver {
 public:
  explicit Receiver(WorkerLife self) : self_(self), sent_(self), passes_(kContext, self, sent_) {
    if (!passes_.is_home()) perform(passes_.join());
    auto opened = passes_.open({});
    require(opened.has_value());
    perform(std::move(*opened));
  }

  void receive(WorkerLife from, const PassMessage& message) {
    // A worker never gives such a message to its ContextPasses.
    if (from == self_ || context_of(message) != kContext) return;
    perform(passes_.receive(from, message));
  }

  void lose_all() {
    for (const WorkerLife& other : kOthers) perform(passes_.peer_down(other));
    perform(passes_.peer_down(kHome));
    require(ended_ == 1);
    require(passes_.pass() == nullptr && passes_.ledger() == nullptr);
  }

 private:
  void perform(PassActions actions) {
    todo_.insert(todo_.end(), std::move_iterator(actions.begin()), std::move_iterator(actions.end()));
    while (!todo_.empty()) {
      const PassAction action = std::move(todo_.front());
      todo_.pop_front();
      PassActions more;
      if (std::holds_alternative<PassEnded>(action)) ++ended_;
      if (const auto* begin = std::get_if<BeginPass>(&action)) begin_pass(*begin);
      if (const auto* walk = std::get_if<WalkGraph>(&action)) more = walk_graph(*walk);
      if (const auto* run = std::get_if<RunGraph>(&action)) more = run_graph(*run);
      todo_.insert(todo_.end(), std::move_iterator(more.begin()), std::move_iterator(more.end()));
    }
  }

  void begin_pass(const BeginPass&) {
    found_ = false;
    waiting_ = 0;
  }
  PassActions walk_graph(const WalkGraph& walk) {
    PassActions all;
    if (!found_) all = passes_.found(walk.pass, {{kContext, received()}});
    found_ = true;
    PassActions walked = passes_.walked(walk.pass);
    all.insert(all.end(), std::move_iterator(walked.begin()), std::move_iterator(walked.end()));
    return all;
  }
  PassActions run_graph(const RunGraph& run) {
    PassActions all;
    if (!run.sources_counted) {
      waiting_ = run.sources.size();
      all = passes_.produced(run.pass, received());
    }
    require(waiting_ >= run.feed.size());
    waiting_ -= run.feed.size();
    PassActions ran = passes_.ran(run.pass, {.drained = waiting_ == 0, .staged_bytes = 8});
    all.insert(all.end(), std::move_iterator(ran.begin()), std::move_iterator(ran.end()));
    return all;
  }
  static AutogradMessageId received() { return {kOthers[1].id, kOthers[1].incarnation, 7}; }

  const WorkerLife self_;
  const TwoSent sent_;
  ContextPasses passes_;
  std::deque<PassAction> todo_;
  bool found_ = false;
  std::size_t waiting_ = 0;
  int ended_ = 0;
};

std::optional<PassMessage> read(wire::ByteView bytes) {
  const Result<PassMessage> message = wire::decode<PassMessage>(bytes);
  if (!message) {
    require(message.error().code() == Errc::malformed_payload || message.error().code() == Errc::limit_exceeded);
    return std::nullopt;
  }
  const auto written = wire::encode(*message);
  require(written && std::equal(written->begin(), written->end(), bytes.begin(), bytes.end()));
  require(!to_string(*message).empty());
  return *message;
}

}  // namespace

/// The input's first byte says whether the worker is the home. Then follow the messages, each with its sender, its
/// length and its bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const bool home = data[0] % 2 == 0;
  Receiver receiver(home ? kHome : kOthers[0]);
  wire::ByteView rest = std::as_bytes(std::span(data + 1, size - 1));
  while (rest.size() > 2) {
    const auto from = static_cast<std::size_t>(rest[0]) % (kOthers.size() + 1);
    const std::size_t length = std::min<std::size_t>(static_cast<std::size_t>(rest[1]), rest.size() - 2);
    if (const auto message = read(rest.subspan(2, length))) {
      receiver.receive(from == kOthers.size() ? kHome : kOthers[from], *message);
    }
    rest = rest.subspan(2 + length);
  }
  receiver.lose_all();
  return 0;
}
