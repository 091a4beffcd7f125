#include <utility>

#include "caftan/actors/simulation.hpp"
#include "sim/partition_seat.hpp"

namespace caftan::sim {
namespace {

Error not_open() { return {Errc::bad_arguments, "the partition is not open: its clock opens it first"}; }

}  // namespace

PartitionCalls::PartitionCalls(Build build, std::string config, std::function<void(const std::string&)> log)
    : build_(std::move(build)), config_(std::move(config)), log_(std::move(log)), nothing_(std::make_shared<int>(0)) {}

PartitionCalls::~PartitionCalls() {
  if (seat_) seat_->abandon();
}

Result<OpenReply> PartitionCalls::open(Worker& worker, const CallInfo& info, const OpenRequest& request) {
  if (seat_)
    return Error(Errc::bad_arguments, "the partition is open already: one clock uses it, in one simulation at a time");
  OpenReply reply;
  reply.config = config_;
  auto seat = actors::PartitionSeat::open(worker, info, request, build_, keep(), log_, reply);
  if (!seat) return seat.error();
  seat_ = *std::move(seat);
  return reply;
}

Future<BorderReply> PartitionCalls::advance(const AdvanceRequest& request) {
  return seat_ ? seat_->advance(request) : make_ready_future<BorderReply>(not_open());
}

Result<RecordsPage> PartitionCalls::records() {
  if (!seat_) return not_open();
  return seat_->records();
}

Result<void> PartitionCalls::save(const std::string& folder) { return seat_ ? seat_->save(folder) : not_open(); }

Result<ResultsPage> PartitionCalls::results(std::uint64_t next_hash, std::uint64_t next_statistic) {
  if (!seat_) return not_open();
  return seat_->results(next_hash, next_statistic);
}

Result<void> PartitionCalls::close() {
  if (seat_) std::exchange(seat_, nullptr)->close();
  return {};
}

}  // namespace caftan::sim
