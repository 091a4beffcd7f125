// Feeds arbitrary bytes to a session with actors as an authenticated peer could write them to the socket: actor
// messages, monitors, links and ends. The first byte says in pieces of how many bytes (0 = at once).
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "exchange_side.hpp"

namespace caftan::remote {
struct FuzzMessage {
  std::vector<std::string> words;
  caf::actor who;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& words& who;
  }
};
}  // namespace caftan::remote

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::remote::FuzzMessage)

namespace {

using namespace caftan;
using namespace caftan::remote;
using namespace caftan::transport;

void require(bool holds) {
  if (!holds) std::abort();
}

/// The actor that the peer reaches as its root: it answers each message with that message, and monitors the actor that
/// the message brings.
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

SessionOptions small_limits() {
  SessionOptions options;
  options.limits.message = 64 * 1024;
  options.limits.tensors = 64 * 1024;
  options.limits.segments = 8;
  return options;
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
  ExchangeSide side(executor, WorkerId{0}, WorkerId{1}, std::move(ours), small_limits(), std::move(messages));
  const caf::actor root = side.host.spawn<Root>();
  ActorExchange::of(*side.session).export_at(Address::root(), caf::actor_cast<caf::strong_actor_ptr>(root));
  side.session->start();
  for (std::size_t at = 0; at < in.size(); at += piece) {
    peer.write(in.subspan(at, std::min(piece, in.size() - at)));
    executor.run();
  }
  (void)peer.read_kinds();  // what it wrote are frames
  require(side.handler.ends.size() == (side.session->ended() ? 1U : 0U));

  peer.close();
  executor.run();
  require(side.session->ended() && side.handler.ends.size() == 1);
  require(ActorExchange::of(*side.session).proxies() == 0);
  caf::anon_send_exit(root, caf::exit_reason::user_shutdown);
  executor.run();
  return 0;
}
