// Data parallelism beside a server: each trainer has a replica of a layer, whose gradients are averaged, and all call
// one embedding. The file says how many trainers there are.
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <caftan/caftan.hpp>
#include <caftan/collectives/collectives.hpp>
#include <caftan/nn/remote_module.hpp>
#include <caftan/nn/replicated.hpp>
#include <caftan/optim/distributed_optimizer.hpp>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

class Words {  // lives once, at the worker "table"
 public:
  explicit Words(int count) : weight_(at::linspace(-1, 1, 4L * count).view({count, 4}).requires_grad_(true)) {}
  at::Tensor forward(const at::Tensor& words) const { return at::embedding(weight_, words); }
  std::vector<caftan::nn::NamedTensor> named_parameters() const { return {{"weight", weight_}}; }

 private:
  at::Tensor weight_;
};

class Layer {  // each trainer has one
 public:
  Layer()
      : weight_(at::linspace(-0.5, 0.5, 4).view({1, 4}).requires_grad_(true)),
        bias_(at::zeros({1}).requires_grad_(true)) {}
  at::Tensor forward(const at::Tensor& x) const { return at::linear(x, weight_, bias_); }
  std::vector<caftan::nn::NamedTensor> named_parameters() const { return {{"weight", weight_}, {"bias", bias_}}; }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
};

class Table {
 public:
  explicit Table(caftan::RoleContext& context) : words_(context, context.name(), 6) {}
  caftan::nn::RemoteModule<Words> words() { return words_; }

 private:
  caftan::nn::RemoteModule<Words> words_;
};

class Trainer {
 public:
  explicit Trainer(caftan::RoleContext& context) : context_(context), table_(context.use<Table>("table")) {}

  caftan::Result<void> run(std::stop_token stop) {
    std::vector<std::string> members;
    for (int i = 0; i < context_.replicas(); ++i) members.push_back(context_.role() + "-" + std::to_string(i));
    const auto group = caftan::collectives::join_group(context_, {.name = "layers", .members = members}).value();
    const caftan::nn::Replicated<Layer> layer(context_, group, std::make_shared<Layer>());

    const caftan::nn::RemoteModule<Words> words = table_.rpc_sync<&Table::words>();
    auto parameters = words.parameters();
    parameters.insert(parameters.end(), layer.parameters().begin(), layer.parameters().end());
    caftan::optim::DistributedOptimizer optimizer(context_, parameters, caftan::optim::SGD{.lr = 0.05});

    const std::int64_t rank = group->rank();
    const at::Tensor own = at::tensor({2 * rank, 2 * rank + 1}, at::kLong);
    for (int step = 0; step < 40 && !stop.stop_requested(); ++step) {
      const caftan::autograd::Context context(context_);
      const at::Tensor y = layer.forward(words.forward(own));
      const at::Tensor loss = at::mse_loss(y, own.to(at::kFloat).view({2, 1}));
      context.backward(loss);   // the layer's gradients are the means of all trainers
      optimizer.step(context);  // the layer here, and the words at the table
      context_.metric("loss", loss.item<double>(), {.step = step});
    }
    layer.check_equal().value();  // the same bits at all trainers
    context_.report("layer " + std::to_string(layer.hash()));
    return {};
  }

 private:
  caftan::RoleContext& context_;
  caftan::RRef<Table> table_;
};

int main(int argc, char** argv) {
  caftan::Program program("replicas");
  program.provide([](caftan::Registry& registry) {
    caftan::nn::add_module<Words>(registry, "words").constructor<int>().method<&Words::forward>("forward");
  });
  program.role<Table>("table").method<&Table::words>("words");
  program.role<Trainer>("trainer").uses<Table>("table");
  return program.main(argc, argv);
}
