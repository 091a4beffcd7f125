#include "ps_bench/server.hpp"

#include <chrono>
#include <string>
#include <utility>

#include "caftan/caftan.hpp"
#include "ps_bench/dummy_model.hpp"

namespace caftan::ps_bench {

Result<void> Server::open(Plan plan, std::uint32_t server) {
  if (server >= plan.servers) {
    return Error(Errc::bad_arguments,
                 "no server " + std::to_string(server) + " of " + std::to_string(plan.servers) + " servers");
  }
  times_.clear();
  buckets_.clear();
  rule_ = plan.rule;
  const std::vector<ParameterShape> shapes = shapes_of(plan.model);
  const std::vector<Bucket> buckets = make_buckets(shapes, plan.bucket);
  std::vector<at::Tensor> parameters;
  if (plan.rule == Rule::immediate) parameters = DummyModel(plan.model, plan.seed).parameters();
  const BucketRule::Options options{
      .rule = plan.rule, .trainers = trainers_of(plan.layout, server, plan.servers, plan.trainers), .lr = plan.lr};
  for (std::size_t number = 0; number < buckets.size(); ++number) {
    if (server_of(plan.layout, options.trainers.first, number, plan.servers, plan.trainers) != server) continue;
    std::vector<ParameterShape> of_bucket;
    std::vector<at::Tensor> values;
    for (const std::size_t parameter : buckets[number]) {
      of_bucket.push_back(shapes[parameter]);
      if (!parameters.empty()) values.push_back(parameters[parameter].detach());
    }
    buckets_.emplace(static_cast<std::uint32_t>(number),
                     Open{.rule = BucketRule(options, std::move(of_bucket), std::move(values))});
  }
  return {};
}

Future<std::vector<at::Tensor>> Server::update(Contribution contribution) {
  Promise<std::vector<at::Tensor>> reply;
  Future<std::vector<at::Tensor>> future = reply.future();
  const auto found = buckets_.find(contribution.bucket);
  if (found == buckets_.end()) {
    reply.set(Error(Errc::bad_arguments, "this server has no bucket " + std::to_string(contribution.bucket)));
    return future;
  }
  Open& bucket = found->second;
  if (bucket.rule.arrived() == 0) bucket.first = clock_.now();
  const auto complete = bucket.rule.take(contribution.trainer, contribution.batch, std::move(contribution.gradients));
  if (!complete) {
    reply.set(complete.error());
    return future;
  }
  bucket.waiting.push_back(std::move(reply));
  if (*complete) end_round(bucket);
  return future;
}

void Server::end_round(Open& bucket) {
  const base::TimePoint last = clock_.now();
  const auto values = bucket.rule.finish();
  const base::TimePoint computed = clock_.now();
  for (auto& waiting : std::exchange(bucket.waiting, {})) (void)waiting.set(values);
  if (rule_ == Rule::immediate) {
    record(kStep, last, computed);
  } else {
    record(kStraggler, bucket.first, last);
    record(kAverage, last, computed);
  }
  record(kServerBatch, bucket.first, clock_.now());
}

void Server::record(const char* metric, base::TimePoint from, base::TimePoint to) {
  times_[metric].push_back(std::chrono::duration<double, std::milli>(to - from).count());
}

ServerReport Server::report() const { return {.worker = context_.name(), .times = times_}; }

}  // namespace caftan::ps_bench
