// Feeds arbitrary bytes to a session as an authenticated peer could write them to the socket: frames, sections, tensor
// segments, actor messages, monitors, links and answers. The first byte says in pieces of how many bytes (0 = at once).
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "session_side.hpp"

namespace caftan::transport {
struct FuzzMessage {
  std::vector<std::string> words;
  caf::actor who;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& words& who;
  }
};
}  // namespace caftan::transport

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::transport::FuzzMessage)

namespace {

using namespace caftan;
using namespace caftan::transport;

void require(bool holds) {
  if (!holds) std::abort();
}

/// Reachable for the peer as its root: replies, and monitors and remembers the actors that it receives.
class Root final : public caf::event_based_actor {
 public:
  explicit Root(caf::actor_config& config) : caf::event_based_actor(config) {
    set_exit_handler([this](const caf::exit_msg& exit) {
      if (exit.reason == caf::exit_reason::user_shutdown) quit(exit.reason);
    });
    set_down_handler([](const caf::down_msg&) {});
  }
  caf::behavior make_behavior() override {
    return {[this](const FuzzMessage& message) {
      monitor(message.who);
      return message;
    }};
  }
};

SessionLimits small_limits() {
  SessionLimits limits;
  limits.message = 64 * 1024;
  limits.tensor_bytes = 64 * 1024;
  limits.tensors = 8;
  return limits;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = data[0] == 0 ? size : data[0];
  const wire::ByteView in(reinterpret_cast<const std::byte*>(data) + 1, size - 1);

  SteppedExecutor executor(1);
  MessageRegistry messages;
  messages.add<FuzzMessage>("fuzz");
  auto [ours, theirs] = make_loopback_pair(executor, std::size_t{1} << 30);
  BytePeer peer(std::move(theirs));
  SessionSide side(executor, WorkerId{0}, WorkerId{1}, std::move(ours), small_limits(), std::move(messages));
  const caf::actor root = side.host.spawn<Root>();
  side.session->actors().export_at(Address::root(), caf::actor_cast<caf::strong_actor_ptr>(root));
  side.session->start();
  const auto sink = std::make_shared<RecordingSink>();
  OutFrame call;
  call.header.kind = wire::FrameKind::call;
  const std::uint64_t room = Session::room_for(0);
  require(side.session->try_acquire(room).has_value());
  require(side.session->request(call, room, kNever, sink).has_value());

  for (std::size_t at = 0; at < in.size(); at += piece) {
    peer.write(in.subspan(at, std::min(piece, in.size() - at)));
    executor.run();
  }
  (void)peer.read_kinds();  // what it wrote are frames
  require(sink->ends.size() <= 1);
  require(side.handler.ends.size() == (side.session->ended() ? 1U : 0U));
  // Each frame has a header, so this many at most were made of these bytes.
  require(side.handler.frames.size() <= in.size() / wire::kFrameHeaderSize);

  peer.close();
  executor.run();
  require(side.session->ended() && side.handler.ends.size() == 1);
  require(sink->ends.size() == 1);  // SE-1
  require(side.session->actors().proxies() == 0);
  caf::anon_send_exit(root, caf::exit_reason::user_shutdown);
  executor.run();
  return 0;
}
