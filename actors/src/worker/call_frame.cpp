#include "worker/call_frame.hpp"

#include <algorithm>
#include <utility>

#include "caftan/net/internal/handshake.hpp"
#include "caftan/rpc/internal/shared_arguments.hpp"
#include "caftan/tensor/codec.hpp"
#include "caftan/wire/archive.hpp"
#include "caftan/wire/base_codecs.hpp"
#include "caftan/wire/internal/shortened.hpp"

namespace caftan::actors {

using wire::InFrame;
using wire::SectionType;

namespace {

void append_target(wire::Bytes& sections, const RRefId& id) {
  wire::Bytes bytes;
  wire::OutArchive archive(bytes);
  archive << id;
  wire::append_section(sections, SectionType::target, wire::kSectionCritical, bytes);
}

Result<void> append_rrefs(wire::Bytes& sections, const OutgoingRRefs& handed) {
  if (handed.empty()) return {};
  auto manifest = handed.encode();
  if (!manifest) return manifest.error();
  wire::append_section(sections, SectionType::rrefs, wire::kSectionCritical, *manifest);
  return {};
}

void append_autograd(wire::Bytes& sections, const wire::Bytes& autograd) {
  if (!autograd.empty()) wire::append_section(sections, SectionType::autograd, wire::kSectionCritical, autograd);
}

/// Makes the views of the frame show `encoded`'s sections, `body` and `encoded`'s table.
void show(EncodedFrame& encoded, wire::ByteView body) {
  encoded.frame.sections = encoded.sections;
  encoded.frame.body = body;
  encoded.frame.table = encoded.table;
}

void take_tensors(EncodedFrame& encoded, tensor::EncodedTensors&& tensors) {
  encoded.table = std::move(tensors.table);
  encoded.frame.segments = std::move(tensors.segments);
}

/// Takes the tensors of a group call, which the first of its requests encodes. The segments of all share the bytes.
Result<void> take_shared_tensors(const rpc::OutRequest& request, EncodedFrame& encoded) {
  rpc::SharedArguments& shared = *request.shared;
  if (!shared.tensors || shared.recorded != request.recorded) {
    auto tensors = tensor::encode_tensors(request.tensors, request.recorded);
    if (!tensors) return tensors.error();
    shared.tensors = std::move(*tensors);
    shared.recorded = request.recorded;
  }
  encoded.table = shared.tensors->table;
  encoded.frame.segments = shared.tensors->segments;
  return {};
}

}  // namespace

Result<void> encode_request(rpc::OutRequest& request, std::uint64_t features, const OutgoingRRefs& handed,
                            EncodedFrame& encoded) {
  encoded.frame.header.kind = request.kind;
  encoded.frame.header.trace = request.trace;
  wire::Bytes& sections = encoded.sections;
  if (const auto rrefs = append_rrefs(sections, handed); !rrefs) return rrefs.error();
  if (request.target) append_target(sections, request.target);
  if (request.held) {
    wire::Bytes held;
    rpc::encode_held(request.held, held);
    wire::append_section(sections, SectionType::chain, 0, held);
  }
  if (request.depth > 0 && (features & net::kKnowsDepth)) {
    const std::byte depth{static_cast<std::uint8_t>(std::min(request.depth, 255U))};
    wire::append_section(sections, SectionType::depth, 0, {&depth, 1});
  }
  if (!request.grad_mode && (features & net::kKnowsGradMode)) {
    const std::byte off{0};
    wire::append_section(sections, SectionType::grad_mode, 0, {&off, 1});
  }
  append_autograd(sections, request.autograd);
  if (!request.tensors.empty() && request.shared) {
    if (const auto taken = take_shared_tensors(request, encoded); !taken) return taken;
  } else if (!request.tensors.empty()) {
    encoded.small_tensors.reuse();
    auto tensors = tensor::encode_tensors(request.tensors, request.recorded, tensor::SharedMemory::reference,
                                          &encoded.small_tensors);
    if (!tensors) return tensors.error();
    take_tensors(encoded, std::move(*tensors));
  }
  show(encoded, request.whole_body());
  return {};
}

Result<void> encode_result(rpc::OutReply& reply, std::uint64_t call, const OutgoingRRefs& handed,
                           EncodedFrame& encoded) {
  encoded.frame.header.kind = wire::FrameKind::response;
  encoded.frame.header.call = call;
  if (const auto rrefs = append_rrefs(encoded.sections, handed); !rrefs) return rrefs.error();
  append_autograd(encoded.sections, reply.autograd);
  if (!reply.tensors.empty()) {
    const auto shared = reply.of_object ? tensor::SharedMemory::copy : tensor::SharedMemory::reference;
    encoded.small_tensors.reuse();
    auto tensors = tensor::encode_tensors(reply.tensors, reply.recorded, shared, &encoded.small_tensors);
    if (!tensors) {
      std::string text = tensors.error().text();
      if (text.starts_with("argument ")) text = "result " + text.substr(9);
      return Error(tensors.error().code(), std::move(text));
    }
    take_tensors(encoded, std::move(*tensors));
  }
  show(encoded, reply.body);
  return {};
}

Result<void> encode_error(Error error, std::uint64_t call, std::uint64_t features, EncodedFrame& encoded) {
  encoded.frame.header.kind = wire::FrameKind::response;
  encoded.frame.header.call = call;
  encoded.frame.header.flags = wire::kFlagError;
  if (!(features & net::kKnowsErrorKinds)) {
    error = wire::without_kinds(error);
  } else if (const wire::Bytes kinds = wire::encode_kinds(error); !kinds.empty()) {
    wire::append_section(encoded.sections, SectionType::error_kinds, 0, kinds);
  }
  if (auto written = wire::encode_into(encoded.body, error); !written) return written.error();
  show(encoded, encoded.body);
  return {};
}

Result<void> decode_payload(InFrame& frame, const net::Limits& limits, rpc::InPayload& payload) {
  if (!frame.received) return frame.received.error();
  payload.body = frame.body;
  if (!frame.table.empty()) {
    payload.tensors.reuse();
    const auto decoded = tensor::decode_tensors(frame.table, {limits.tensors, limits.segments},
                                                std::move(frame.segments), payload.tensors, payload.recorded);
    if (!decoded) return decoded.error();
  }
  if (frame.manifest) payload.rrefs = std::static_pointer_cast<ReceivedRRefs>(frame.manifest)->handles;
  if (frame.sections.autograd) wire::append(payload.autograd, *frame.sections.autograd);
  return {};
}

Error decode_error(const InFrame& reply) {
  Error error;
  if (const auto decoded = wire::decode_into(reply.body, error); !decoded) return decoded.error();
  if (!reply.sections.error_kinds) return error;
  const auto added = wire::add_kinds(error, *reply.sections.error_kinds);
  return added ? error : added.error();
}

Result<RRefId> read_target(const InFrame& request) {
  const auto& target = request.sections.target;
  return target ? wire::decode<RRefId>(*target) : RRefId{};
}

Result<bool> read_grad_mode(const InFrame& request) {
  const auto& said = request.sections.grad_mode;
  if (!said) return true;
  if (said->size() == 1 && said->front() == std::byte{0}) return false;
  return Error(Errc::malformed_payload, "a section grad_mode that does not say that grad mode is off");
}

unsigned read_depth(const InFrame& request) {
  const auto& depth = request.sections.depth;
  return depth && depth->size() == 1 ? std::to_integer<unsigned>(depth->front()) : 0;
}

HeldObjects read_held(const InFrame& request) {
  const auto& chain = request.sections.chain;
  if (!chain) return {};
  auto held = rpc::decode_held(*chain);
  return held ? std::move(*held) : HeldObjects();
}

}  // namespace caftan::actors
