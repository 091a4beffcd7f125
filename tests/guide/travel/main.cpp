// Which values travel: the user's own structs, containers of them, tensors, references; and which do not.
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <caftan/caftan.hpp>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct Step {
  std::string action;
  double reward = 0;
  std::optional<at::Tensor> picture;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& action& reward& picture;
  }
};

std::map<std::string, int> count_actions(const std::vector<Step>& episode) {
  std::map<std::string, int> counts;
  for (const Step& step : episode) ++counts[step.action];
  return counts;
}

/// Changes the copy that arrived.
Step brighten(Step step) {
  if (step.picture) step.picture->mul_(2);
  return step;
}

struct Order {
  caftan::RRef<at::Tensor> picture;  // the picture itself stays where it is
  int copies = 1;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& picture& copies;
  }
};

std::int64_t pixels(const Order& order) { return order.copies * order.picture.to_here().numel(); }

bool structs_travel(const caftan::Worker& worker) {
  const std::vector<Step> episode{{"left", 1.0, at::arange(4)}, {"left", 0.5, {}}, {"right", 1.0, {}}};
  const std::map<std::string, int> counts = worker.rpc_sync<&count_actions>("alone", episode);
  return counts.at("left") == 2 && counts.at("right") == 1;
}

bool tensors_are_copied(const caftan::Worker& worker) {
  const Step sent{"left", 1.0, at::arange(4)};
  const Step received = worker.rpc_sync<&brighten>("alone", sent);
  return sent.picture->sum().item<int>() == 6 && received.picture->sum().item<int>() == 12;
}

bool references_travel_inside(const caftan::Worker& worker) {
  const Order order{worker.make_rref(at::arange(100)), 3};
  return worker.rpc_sync<&pixels>("alone", order) == 300;
}

bool is_refused_by_name(const caftan::Worker& worker) {
  const Step step{"left", 1.0, at::empty({4}, at::device(at::kMeta))};  // a meta tensor: it has no data
  const caftan::Result<Step> result = worker.try_rpc_sync<&brighten>("alone", step);
  if (result) return false;
  std::printf("%s\n", result.error().message().c_str());
  return result.error().code() == caftan::Errc::unsupported;
}

int main() {
  caftan::Registry registry;
  registry.add<&count_actions>("count_actions");
  registry.add<&brighten>("brighten");
  registry.add<&pixels>("pixels");
  caftan::WorkerOptions options;
  options.name = "alone";
  options.world = {{"alone", ""}};  // calls to itself take the same way as all others
  const auto worker = caftan::Worker::start(options, registry).value();
  const bool right = structs_travel(*worker) && tensors_are_copied(*worker) && references_travel_inside(*worker) &&
                     is_refused_by_name(*worker);
  return right ? 0 : 1;
}
