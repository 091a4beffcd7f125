#include "caftan/autograd/context.hpp"
#include "caftan/testing/cluster.hpp"
#include "world.hpp"

namespace caftan::parity {

namespace {

const Leaves& leaves_of(const std::string& worker) {
  static const std::vector<Leaves> all = {Leaves(0), Leaves(1), Leaves(2), Leaves(3)};
  return all[static_cast<std::size_t>(worker[0] - '0')];
}

at::Tensor serve(Worker& worker, const std::string& function, const Tensors& arguments);

/// A worker while it serves a call.
class Served final : public World {
 public:
  explicit Served(Worker& worker) : worker_(worker) {}
  at::Tensor call(int rank, const std::string& function, const Tensors& arguments) override {
    return worker_.rpc_sync<&serve>(std::to_string(rank), function, arguments);
  }
  const Leaves& leaves() const override { return leaves_of(worker_.name()); }
  at::Tensor gradient(const at::Tensor& leaf) override {
    return autograd::Context::current(worker_).gradients().of(leaf);
  }

 private:
  Worker& worker_;
};

at::Tensor serve(Worker& worker, const std::string& function, const Tensors& arguments) {
  Served world(worker);
  return run(world, function, arguments);
}

Registry make_registry() {
  Registry registry;
  registry.add<&serve>("serve");
  return registry;
}

class CaftanDriver final : public Driver {
 public:
  explicit CaftanDriver(std::shared_ptr<testing::Cluster> cluster)
      : cluster_(std::move(cluster)), world_((*cluster_)[0]), context_((*cluster_)[0]) {}
  at::Tensor call(int rank, const std::string& function, const Tensors& arguments) override {
    return world_.call(rank, function, arguments);
  }
  const Leaves& leaves() const override { return world_.leaves(); }
  at::Tensor gradient(const at::Tensor& leaf) override { return world_.gradient(leaf); }
  void backward(const Tensors& roots, bool retain_graph) override {
    context_.backward(roots, {.retain_graph = retain_graph});
  }

 private:
  const std::shared_ptr<testing::Cluster> cluster_;
  Served world_;
  const autograd::Context context_;
};

}  // namespace

MakeDriver caftan_side(std::uint64_t seed) {
  auto cluster = std::make_shared<testing::Cluster>(seed, std::vector<std::string>{"0", "1", "2", "3"}, make_registry);
  return [cluster] { return std::make_unique<CaftanDriver>(cluster); };
}

}  // namespace caftan::parity
