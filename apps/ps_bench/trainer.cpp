#include "ps_bench/trainer.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "caftan/base/fnv1a.hpp"
#include "caftan/base/settings_io.hpp"
#include "caftan/caftan.hpp"
#include "caftan/optim/local_optimizer.hpp"
#include "ps_bench/bucket_hooks.hpp"
#include "ps_bench/dummy_model.hpp"
#include "ps_bench/server.hpp"

namespace caftan::ps_bench {
namespace {

/// What came back of a bucket, and when.
struct Received {
  std::vector<at::Tensor> values{};
  base::TimePoint at{};
};

struct Sent {
  std::size_t bucket = 0;
  base::TimePoint at{};
  Future<Received> reply{};
};

std::uint64_t checksum_of(const std::vector<at::Tensor>& parameters) {
  std::uint64_t sum = base::fnv1a({});
  for (const at::Tensor& parameter : parameters) {
    const auto* bytes = reinterpret_cast<const char*>(parameter.const_data_ptr<float>());
    sum = base::fnv1a(std::string_view(bytes, parameter.nbytes()), sum);
  }
  return sum;
}

/// One call of Trainer::train. Its model and its gradients end with it.
class Training {
 public:
  Training(RoleContext& context, const TrainerOrder& order, const std::vector<RRef<Server>>& servers)
      : context_(context),
        order_(order),
        servers_(servers),
        shapes_(shapes_of(order.plan.model)),
        buckets_(make_buckets(shapes_, order.plan.bucket)),
        model_(order.plan.model, order.plan.seed),
        hooks_(model_.parameters(), buckets_,
               [this](std::size_t bucket, std::vector<at::Tensor> gradients) { send(bucket, std::move(gradients)); }) {}

  Result<TrainerReport> run(std::int64_t epochs);

 private:
  Result<double> step(const Samples& batch);
  void send(std::size_t bucket, std::vector<at::Tensor> gradients);
  Result<std::vector<at::Tensor>> receive();
  Result<void> apply(const std::vector<at::Tensor>& values);
  void record(const char* metric, base::TimePoint from, base::TimePoint to) {
    times_[metric].push_back(std::chrono::duration<double, std::milli>(to - from).count());
  }

  RoleContext& context_;
  const TrainerOrder& order_;
  const std::vector<RRef<Server>>& servers_;
  std::vector<ParameterShape> shapes_;
  std::vector<Bucket> buckets_;
  DummyModel model_;
  BucketHooks hooks_;
  std::optional<optim::LocalOptimizer> optimizer_{};  // of rules that average
  std::vector<Sent> sent_{};                          // by the backward pass that runs
  std::int64_t batch_ = 0;
  Times times_{};
  base::SteadyClock clock_{};
};

Result<TrainerReport> Training::run(std::int64_t epochs) {
  if (order_.plan.rule != Rule::immediate) {
    auto made = optim::LocalOptimizer::make({{model_.parameters(), optim::SGD{.lr = order_.plan.lr}}});
    if (!made) return made.error();
    optimizer_.emplace(*std::move(made));
  }
  TrainerReport report{.worker = context_.name()};
  const auto total = epochs * static_cast<std::int64_t>(order_.batches.size());
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (const Samples& batch : order_.batches) {
      if (context_.stop_token().stop_requested()) {
        return Error(Errc::cancelled, "stopped after " + std::to_string(batch_) + " batches");
      }
      const auto loss = step(batch);
      if (!loss) return loss.error();
      if (batch_ == 0) report.first_loss = *loss;
      report.last_loss = *loss;
      ++batch_;
      context_.progress(
          batch_, total,
          "batch " + std::to_string(batch_) + " of " + std::to_string(total) + "  loss " + format_fixed(*loss, 4));
    }
  }
  report.batches = batch_;
  report.times = std::move(times_);
  report.checksum = checksum_of(model_.parameters());
  return report;
}

Result<double> Training::step(const Samples& batch) {
  const base::TimePoint begin = clock_.now();
  const at::Tensor loss = loss_of(model_.forward(batch.inputs), batch.targets);
  const base::TimePoint forward = clock_.now();
  hooks_.backward(loss);
  const auto values = receive();
  if (!values) return values.error();
  const base::TimePoint backward = clock_.now();
  if (auto applied = apply(*values); !applied) return applied.error();
  const base::TimePoint end = clock_.now();
  record(kForward, begin, forward);
  record(kBackward, forward, backward);
  record(kBatchAll, begin, end);
  return loss.item<double>();
}

void Training::send(std::size_t bucket, std::vector<at::Tensor> gradients) {
  const Plan& plan = order_.plan;
  const RRef<Server>& server = servers_[server_of(plan.layout, order_.trainer, bucket, plan.servers, plan.trainers)];
  const base::TimePoint now = clock_.now();
  const Contribution contribution{.trainer = order_.trainer,
                                  .batch = batch_,
                                  .bucket = static_cast<std::uint32_t>(bucket),
                                  .gradients = std::move(gradients)};
  auto reply = server.rpc_async<&Server::update>(contribution)
                   .then([](Result<std::vector<at::Tensor>> values) -> Result<Received> {
                     if (!values) return values.error();
                     return Received{*std::move(values), base::SteadyClock().now()};
                   });
  sent_.push_back({bucket, now, std::move(reply)});
}

/// Waits for the replies of all buckets. Returns a value for each parameter.
Result<std::vector<at::Tensor>> Training::receive() {
  std::vector<at::Tensor> values(shapes_.size());
  const std::stop_token stop = context_.stop_token();
  std::vector<Sent> sent = std::exchange(sent_, {});
  for (Sent& one : sent) {
    while (!one.reply.wait_for(std::chrono::milliseconds(100))) {
      if (stop.stop_requested()) return Error(Errc::cancelled, "stopped at batch " + std::to_string(batch_ + 1));
    }
    auto received = std::move(one.reply).result();
    if (!received) return received.error();
    const Bucket& bucket = buckets_[one.bucket];
    if (received->values.size() != bucket.size()) {
      return Error(Errc::bad_arguments, "the server's reply is one for another bucket");
    }
    record(shapes_[bucket.front()].sparse ? kSparseCall : kDenseCall, one.at, received->at);
    for (std::size_t place = 0; place < bucket.size(); ++place) {
      values[bucket[place]] = std::move(received->values[place]);
    }
  }
  return values;
}

Result<void> Training::apply(const std::vector<at::Tensor>& values) {
  if (optimizer_) {
    const auto stepped = optimizer_->step(values);
    return stepped ? Result<void>() : Result<void>(stepped.error());
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    at::Tensor parameter = model_.parameters()[i].detach();
    if (values[i].sizes() != parameter.sizes()) {
      return Error(Errc::bad_arguments, "the server's parameters are those of another model");
    }
    parameter.copy_(values[i]);
  }
  return {};
}

}  // namespace

Result<void> Trainer::open(TrainerOrder order) {
  if (order.trainer >= order.plan.trainers || order.batches.empty()) {
    return Error(Errc::bad_arguments, "trainer " + std::to_string(order.trainer) + " of " +
                                          std::to_string(order.plan.trainers) + " with " +
                                          std::to_string(order.batches.size()) + " batches");
  }
  order_ = std::move(order);
  return {};
}

Result<TrainerReport> Trainer::train(std::vector<RRef<Server>> servers, std::int64_t epochs) {
  if (!order_ || servers.size() != order_->plan.servers) {
    return Error(Errc::bad_arguments, "this trainer is not opened, or for another number of servers");
  }
  return Training(context_, *order_, servers).run(epochs);
}

}  // namespace caftan::ps_bench
