// The split program: the encoder on a worker of its own. Its file is split.toml.
#include <ATen/ops/mse_loss.h>

#include <array>
#include <caftan/caftan.hpp>
#include <cstdio>

#include "model.hpp"

class EncoderRole {  // holds one part; its methods run one at a time
 public:
  explicit EncoderRole(caftan::RoleContext& context) : context_(context) {}
  at::Tensor forward(at::Tensor x) { return encoder_.forward(x); }
  std::vector<caftan::RRef<at::Tensor>> parameters() {
    std::vector<caftan::RRef<at::Tensor>> references;
    for (const at::Tensor& parameter : encoder_.parameters()) references.push_back(context_.make_rref(parameter));
    return references;
  }

 private:
  caftan::RoleContext& context_;
  Encoder encoder_;
};

class TrainerRole {  // holds the other part and the loop
 public:
  explicit TrainerRole(caftan::RoleContext& context)
      : context_(context), encoder_(context.use<EncoderRole>("encoder")) {}
  caftan::Result<void> run(std::stop_token stop) {
    std::vector<caftan::RRef<at::Tensor>> parameters = encoder_.rpc_sync<&EncoderRole::parameters>();
    for (const at::Tensor& parameter : head_.parameters()) parameters.push_back(context_.make_rref(parameter));
    caftan::optim::DistributedOptimizer optimizer(context_, parameters, caftan::optim::Adam{.lr = 0.02});

    for (int step = 1; step <= 100 && !stop.stop_requested(); ++step) {
      caftan::autograd::Context context(context_);  // calls from here on are recorded
      const at::Tensor code = encoder_.rpc_sync<&EncoderRole::forward>(inputs());
      const at::Tensor loss = at::mse_loss(head_.forward(code), targets());
      context.backward({loss});  // through both workers
      optimizer.step(context);   // each parameter where it lives
      if (step % 25 == 0) report(step, loss);
    }
    return {};
  }

 private:
  void report(int step, const at::Tensor& loss) const {
    std::array<char, 64> line{};
    std::snprintf(line.data(), line.size(), "step %d loss %a", step, loss.item<double>());
    context_.report(line.data());
  }

  caftan::RoleContext& context_;
  caftan::RRef<EncoderRole> encoder_;
  Head head_;
};

int main(int argc, char** argv) {
  caftan::Program program("split");
  program.role<EncoderRole>("encoder").method<&EncoderRole::forward>("forward").method<&EncoderRole::parameters>(
      "parameters");
  program.role<TrainerRole>("trainer").uses<EncoderRole>("encoder");
  return program.main(argc, argv);
}
