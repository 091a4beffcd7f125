#include "autograd/autograd_messages.hpp"

#include "caftan/remote/internal/actor_exchange.hpp"

namespace caftan::wire {

void Codec<actors::GradientMessage>::save(OutArchive& to, const actors::GradientMessage& message) {
  to << message.grad;
  auto* const beside = to.companion<remote::OutAttachment>();
  if (!beside) throw EncodeError(Error(Errc::unsupported, "a gradient travels only as an actor message"));
  beside->table = std::move(message.encoded->table);
  beside->segments = std::move(message.encoded->segments);
}

void Codec<actors::GradientMessage>::load(InArchive& from, actors::GradientMessage& message) {
  from >> message.grad;
  auto* const beside = from.companion<remote::InAttachment>();
  auto* const exchange = from.companion<remote::ActorExchange>();
  if (!beside || !exchange) throw DecodeError("a gradient travels only as an actor message");
  message.received = std::move(beside->received);
  if (!message.received) return;
  const net::Limits& limits = exchange->session().limits();
  std::vector<std::uint8_t> recorded;
  const auto decoded = tensor::decode_tensors(beside->table, {limits.tensors, limits.segments},
                                              std::move(beside->segments), message.tensors, recorded);
  if (!decoded) throw DecodeError("the tensors of a gradient", decoded.error().code());
  // A gradient is a value: whether its sender's tensor required a gradient does not matter here.
  for (at::Tensor& tensor : message.tensors) {
    if (tensor.defined() && tensor.requires_grad()) tensor = tensor.detach();
  }
}

}  // namespace caftan::wire
