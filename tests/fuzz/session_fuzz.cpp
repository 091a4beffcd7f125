// Feeds arbitrary bytes to a session as an authenticated peer could write them to the socket: frames, sections, tensor
// segments, places of tensors in its memory and answers. Frames about actors are only kept. The first byte says in
// pieces of how many bytes (0 = at once). The memory of the peer has 1 MiB, all zero.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "lending_channel.hpp"
#include "session_side.hpp"

namespace {

using namespace caftan;
using namespace caftan::transport;

void require(bool holds) {
  if (!holds) std::abort();
}

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
  auto [ours, theirs] = make_loopback_pair(executor, std::size_t{1} << 30);
  BytePeer peer(std::move(theirs));
  const auto lending = std::make_shared<LendingChannel>(std::move(ours));
  lending->find = [](std::uint64_t from) -> Result<const void*> {
    static const std::array<std::byte, 64 * 1024> zeros{};
    if (from < (1 << 20)) return zeros.data();
    return Error(Errc::malformed_payload, "no such memory");
  };
  SessionSide side(executor, WorkerId{1}, lending, small_limits());
  side.session->start();
  const auto sink = std::make_shared<RecordingSink>();
  wire::OutFrame call;
  call.header.kind = wire::FrameKind::call;
  const std::uint64_t room = OpenRequests::room_for(0);
  require(side.session->requests().try_acquire(room).has_value());
  require(side.session->request(call, room, base::kNever, sink).has_value());

  for (std::size_t at = 0; at < in.size(); at += piece) {
    peer.write(in.subspan(at, std::min(piece, in.size() - at)));
    executor.run();
  }
  (void)peer.read_kinds();  // what it wrote are frames
  require(sink->ends.size() <= 1);
  require(side.handler.ends.size() == (side.session->ended() ? 1U : 0U));
  // Each frame has a header, so the input cannot hold more frames than headers fit into it.
  require(side.handler.frames.size() + side.actor_frames.size() <= in.size() / wire::kFrameHeaderSize);

  peer.close();
  executor.run();
  require(side.session->ended() && side.handler.ends.size() == 1);
  require(sink->ends.size() == 1);  // SE-1
  return 0;
}
