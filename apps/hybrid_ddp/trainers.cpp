#include "hybrid_ddp/trainers.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "caftan/base/peer_loss.hpp"
#include "caftan/caftan.hpp"
#include "hybrid_ddp/trainer.hpp"

namespace caftan::hybrid_ddp {
namespace {

/// A call that lasts as long as the training does.
constexpr CallOptions kPatient{.timeout = base::Duration(0)};

/// Waits for all. Of several errors it returns the one that the others follow from: the loss of a worker before what
/// its peers report of that loss, and else the first.
template <class T>
Result<std::vector<Result<T>>> all_of(std::vector<Future<T>> futures) {
  std::vector<Result<T>> results;
  std::optional<Error> error;
  for (Future<T>& future : futures) {
    results.push_back(std::move(future).result());
    const Result<T>& result = results.back();
    if (result) continue;
    if (!error || (is_loss_of_peer(result.error()) && !is_loss_of_peer(*error))) error = result.error();
  }
  if (error) return *error;
  return results;
}

}  // namespace

Result<TextFacts> Trainers::open() const {
  std::vector<Future<TextFacts>> opening;
  for (const auto& trainer : trainers_) opening.push_back(trainer.with(kPatient).rpc_async<&Trainer::open>());
  const auto texts = all_of(std::move(opening));
  if (!texts) return texts.error();
  const TextFacts& first = *texts->front();
  for (std::size_t i = 1; i < texts->size(); ++i) {
    const TextFacts& other = *(*texts)[i];
    if (other.checksum == first.checksum && other.words == first.words && other.per_class == first.per_class) continue;
    return Error(Errc::invalid_config, "trainer 0 has other passages than trainer " + std::to_string(i) + " (" +
                                           first.source + "; " + other.source + "): all need the same");
  }
  return first;
}

Result<void> Trainers::join(JoinOrder order, const nn::RemoteModule<WordBags>& embedding) const {
  for (const auto& trainer : trainers_) order.members.push_back(trainer.owner_name());
  std::vector<Future<void>> joining;
  for (const auto& trainer : trainers_) {
    joining.push_back(trainer.with(kPatient).rpc_async<&Trainer::join>(order, embedding));
    ++order.rank;
  }
  const auto joined = all_of(std::move(joining));
  return joined ? Result<void>() : Result<void>(joined.error());
}

Result<TrainReport> Trainers::train(const TrainOrder& order) const {
  std::vector<Future<TrainReport>> running;
  for (const auto& trainer : trainers_) running.push_back(trainer.with(kPatient).rpc_async<&Trainer::train>(order));
  const auto reports = all_of(std::move(running));
  if (!reports) return reports.error();
  TrainReport all{.hash = reports->front()->hash};
  for (const auto& report : *reports) {
    all.loss_sum += report->loss_sum;
    all.steps += report->steps;
    all.seconds = std::max(all.seconds, report->seconds);
    if (report->hash == all.hash) continue;
    return Error(Errc::invalid_config, "the replicas differ after step " + std::to_string(order.end));
  }
  return all;
}

Result<Accuracy> Trainers::measure() const {
  std::vector<Future<Accuracy>> measuring;
  for (const auto& trainer : trainers_) measuring.push_back(trainer.with(kPatient).rpc_async<&Trainer::measure>());
  const auto parts = all_of(std::move(measuring));
  if (!parts) return parts.error();
  Accuracy all;
  for (const auto& part : *parts) {
    all.right += part->right;
    all.passages += part->passages;
  }
  return all;
}

Result<std::vector<TrainerState>> Trainers::save() const {
  std::vector<Future<TrainerState>> saving;
  for (const auto& trainer : trainers_) saving.push_back(trainer.rpc_async<&Trainer::save>());
  auto results = all_of(std::move(saving));
  if (!results) return results.error();
  std::vector<TrainerState> states;
  for (auto& result : *results) states.push_back(*std::move(result));
  return states;
}

Result<void> Trainers::load(const std::vector<TrainerState>& states) const {
  std::vector<Future<void>> loading;
  for (std::size_t i = 0; i < trainers_.size(); ++i) {
    loading.push_back(trainers_[i].rpc_async<&Trainer::load>(states[i]));
  }
  const auto loaded = all_of(std::move(loading));
  return loaded ? Result<void>() : Result<void>(loaded.error());
}

void Trainers::leave() const {
  for (const auto& trainer : trainers_) (void)trainer.try_rpc_sync<&Trainer::leave>();
}

}  // namespace caftan::hybrid_ddp
