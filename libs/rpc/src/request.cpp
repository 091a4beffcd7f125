#include "caftan/rpc/request.hpp"

#include "caftan/rpc/internal/shared_arguments.hpp"

namespace caftan::rpc {

wire::ByteView OutRequest::whole_body() const noexcept { return shared ? wire::ByteView(shared->body) : body; }

void InPayload::keep_body() {
  if (owner || body.empty()) return;
  auto copy = std::make_shared<wire::Bytes>(body.begin(), body.end());
  body = *copy;
  owner = std::move(copy);
}

Responder& Responder::operator=(Responder&& other) noexcept {
  if (this != &other) {
    drop();
    sink_ = std::move(other.sink_);
  }
  return *this;
}

void Responder::answer(Result<OutReply>&& reply) noexcept {
  if (const auto sink = std::move(sink_)) sink->answer(std::move(reply));
}

void Responder::drop() noexcept {
  if (sink_) fail(Error(Errc::broken_promise, "the request was dropped without a reply"));
}

}  // namespace caftan::rpc
