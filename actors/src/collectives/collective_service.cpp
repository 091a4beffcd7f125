#include "collectives/collective_service.hpp"

#include <utility>

#include "caftan/actors/worker.hpp"
#include "caftan/rpc/registry.hpp"
#include "service/member_ports.hpp"

namespace caftan::actors {

namespace {

using collectives::GroupKey;
using collectives::GroupTable;
using collectives::PieceHeader;
using collectives::Reason;

Future<void> on_piece(Worker& worker, const CallInfo& info, const GroupKey& key, const PieceHeader& header,
                      const std::vector<at::Tensor>& tensors) {
  const auto table = collectives::table_of(MemberPorts::of(worker));
  if (!table) return make_ready_future<void>(table.error());
  return (*table)->on_piece(info.caller, key, header, tensors);
}

Result<void> on_leave(Worker& worker, const CallInfo& info, const GroupKey& key, std::uint64_t operations) {
  const auto table = collectives::table_of(MemberPorts::of(worker));
  if (!table) return table.error();
  return (*table)->on_left(info.caller, key, operations);
}

Result<void> on_fail(Worker& worker, const CallInfo& info, const GroupKey& key, const Reason& reason) {
  const auto table = collectives::table_of(MemberPorts::of(worker));
  if (!table) return table.error();
  return (*table)->on_failed(info.caller, key, reason);
}

Future<wire::Bytes> on_store(Worker& worker, const CallInfo& info, const GroupKey& key, const std::string& name,
                             const std::vector<wire::Bytes>& value) {
  const auto table = collectives::table_of(MemberPorts::of(worker));
  if (!table) return make_ready_future<wire::Bytes>(table.error());
  return (*table)->on_store(info.caller, key, name, value);
}

}  // namespace

void CollectiveService::register_with(Registry& registry, remote::MessageRegistry&) {
  registry.extend(collectives::GroupTableExtension::kName,
                  std::make_shared<const collectives::GroupTableExtension>(table_));
  registry.add(collectives::kPiece, &on_piece);
  registry.add(collectives::kLeave, &on_leave);
  registry.add(collectives::kFail, &on_fail);
  registry.add(collectives::kStore, &on_store);
}

void CollectiveService::on_session_end(const transport::Session& session, bool is_last) {
  if (is_last) table_->on_lost(session.peer().life.id);
}

void CollectiveService::end_all(const Error& reason, StopReport&) { table_->end(reason); }

}  // namespace caftan::actors
