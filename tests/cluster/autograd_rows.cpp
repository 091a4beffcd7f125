#include "autograd_rows.hpp"

#include <ATen/ops/embedding.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <span>
#include <stdexcept>

#include "caftan/autograd/internal/context_record.hpp"
#include "script_files.hpp"

namespace caftan::test {
namespace {

/// A function whose backward throws while the switch that a test holds is on.
struct FailingBackward : torch::autograd::Function<FailingBackward> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const bool* fails) {
    context->saved_data["fails"] = reinterpret_cast<std::int64_t>(fails);
    return x * 2;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    if (*reinterpret_cast<const bool*>(context->saved_data["fails"].toInt())) {
      throw std::runtime_error("simulated failure");
    }
    return {gradients[0] * 2, at::Tensor()};
  }
};

std::vector<double> gradient_at(Worker& worker, const at::Tensor& of) {
  return values(dense(Context::current(worker).gradients().of(of)));
}

/// Prints a graph from its roots down to received messages and leaves.
class GraphPrinter {
 public:
  std::string print(std::span<const torch::autograd::Edge> edges) {
    std::string text;
    for (const auto& edge : edges) {
      if (edge.is_valid()) text += (text.empty() ? "" : " ") + print(edge.function.get());
    }
    return "(" + text + ")";
  }

 private:
  std::string print(torch::autograd::Node* node) {
    const std::string name = node->name();
    if (name == "torch::autograd::AccumulateGrad") return "leaf";
    if (name.find("Recv") == std::string::npos) return name + print(node->next_edges());
    auto at = std::find(received_.begin(), received_.end(), node);
    if (at == received_.end()) at = received_.insert(at, node);
    return "recv" + std::to_string(at - received_.begin());
  }

  std::vector<torch::autograd::Node*> received_;
};

}  // namespace

Lab::Lab(double seed) : own_(leaf({seed, seed, seed})), table_(at::ones({4, 2}, at::kDouble).requires_grad_()) {}
at::Tensor Lab::add_own(const at::Tensor& x) const { return x + own_; }
at::Tensor Lab::only_own(const at::Tensor&) const { return own_.sum(); }
at::Tensor Lab::mixed(const at::Tensor& a, const at::Tensor& b) const { return a.requires_grad() ? a * 3 + b : a - b; }
at::Tensor Lab::failing(const at::Tensor& x) const { return FailingBackward::apply(x, &fails_); }
at::Tensor Lab::looked_up(const at::Tensor& indices) const {
  return at::embedding(table_, indices, -1, false, /*sparse=*/true);
}
std::vector<double> Lab::own_gradient(Worker& worker) const { return gradient_at(worker, own_); }
std::vector<double> Lab::table_gradient(Worker& worker) const { return gradient_at(worker, table_); }

at::Tensor sparse(const std::vector<double>& numbers, at::ScalarType type) {
  const at::Tensor at = at::tensor({0, 2}, at::kLong).view({1, 2});
  return at::sparse_coo_tensor(at, at::tensor(numbers, type), {3}).requires_grad_();
}
at::Tensor dense(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_sparse() ? tensor.to_dense() : tensor;
}

at::Tensor ask_lab(const RRef<Lab>& lab, const at::Tensor& x) { return lab.rpc_sync<&Lab::add_own>(x); }
at::Tensor fail_at_lab(const RRef<Lab>& lab, const at::Tensor& x) { return lab.rpc_sync<&Lab::failing>(x); }
at::Tensor sum_of(const std::vector<at::Tensor>& all) {
  at::Tensor sum = all.at(0);
  for (std::size_t i = 1; i < all.size(); ++i) sum = sum + all[i];
  return sum;
}
at::Tensor add_along(Worker& worker, const Path& path, const at::Tensor& a, const at::Tensor& b) {
  if (path.empty()) return a + b;
  return worker.rpc_sync<&add_along>(path[0], Path(path.begin() + 1, path.end()), a, b);
}
at::Tensor layers(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor c = at::ones({3, 3}, at::kDouble);
  for (int i = 0; i < 3; ++i) c = a.matmul(c.t()).add(b).matmul(b);
  return c.mm(a).mm(b.t());
}
at::Tensor layers_around(Worker& worker, const std::string& where, const at::Tensor& a, const at::Tensor& b) {
  return a * 2 + b * worker.rpc_sync<&layers>(where, a, b);
}
at::Tensor product_around(Worker& worker, const std::string& where, const at::Tensor& a, const at::Tensor& b) {
  return a + worker.rpc_sync<&add_tensors>(where, a * b, b);
}
at::Tensor make_leaf(const std::vector<double>& numbers) { return leaf(numbers); }
at::Tensor make_sparse_leaf(const std::vector<double>& numbers) { return sparse(numbers); }
at::Tensor add_to_referred(const RRef<at::Tensor>& r, const at::Tensor& x) { return *r.local_value() + x; }
at::Tensor add_at_owner(Worker& worker, const RRef<at::Tensor>& r, const at::Tensor& x) {
  return worker.rpc_sync<&add_to_referred>(r.owner(), r, x);
}
std::vector<double> only_gradient(Worker& worker) {
  const auto gradients = Context::current(worker).gradients();
  const auto all = gradients.entries();
  return all.size() == 1 ? values(all.front().gradient) : std::vector<double>();
}
std::vector<double> gradient_of(Worker& worker, const RRef<at::Tensor>& r) {
  return gradient_at(worker, *r.local_value());
}

std::vector<std::string> sent_graphs(Worker& worker) {
  const auto record = Context::current(worker).record();
  std::vector<AutogradMessageId> messages = record->sends();
  std::sort(messages.begin(), messages.end());
  GraphPrinter printer;
  std::vector<std::string> graphs;
  for (const auto& message : messages) graphs.push_back(printer.print(record->send_function(message)->next_edges()));
  return graphs;
}

Registry make_rows_registry() {
  Registry registry = make_autograd_registry();
  registry.add<&ask_lab>("ask_lab");
  registry.add<&fail_at_lab>("fail_at_lab");
  registry.add<&sum_of>("sum_of");
  registry.add<&add_along>("add_along");
  registry.add<&layers>("layers");
  registry.add<&layers_around>("layers_around");
  registry.add<&product_around>("product_around");
  registry.add<&make_leaf>("make_leaf");
  registry.add<&make_sparse_leaf>("make_sparse_leaf");
  registry.add<&add_to_referred>("add_to_referred");
  registry.add<&add_at_owner>("add_at_owner");
  registry.add<&gradient_of>("gradient_of");
  registry.add<&sent_graphs>("sent_graphs");
  registry.add<&only_gradient>("only_gradient");
  const ScriptFolder folder;  // a file is read when it is added
  registry.add_script("rows", folder.save("rows.pt", {.code = "def add(self, x, y):\n  return x + y\n"
                                                              "def add_own(self, x):\n  return x + self.own\n",
                                                      .parameters = {{"own", leaf({5, 5, 5})}}}));
  registry.add<Lab>("Lab")
      .constructor<double>()
      .method<&Lab::add_own>("add_own")
      .method<&Lab::only_own>("only_own")
      .method<&Lab::mixed>("mixed")
      .method<&Lab::failing>("failing")
      .method<&Lab::set_failing>("set_failing")
      .method<&Lab::looked_up>("looked_up")
      .method<&Lab::own_gradient>("own_gradient")
      .method<&Lab::table_gradient>("table_gradient");
  return registry;
}

}  // namespace caftan::test
