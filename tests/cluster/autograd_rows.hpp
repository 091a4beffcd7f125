/// For the tests that follow rows of PyTorch's own suite (groups 15 to 19): the functions that they register on each
/// worker, and their fixture.
#pragma once

#include <string>
#include <vector>

#include "autograd_roles.hpp"

namespace caftan::test {

using autograd::Context;
using autograd::ContextInfo;
using Path = std::vector<std::string>;

/// An object that each worker of a test has; its methods are called remotely.
class Lab {
 public:
  explicit Lab(double seed);
  at::Tensor add_own(const at::Tensor& x) const;
  at::Tensor only_own(const at::Tensor&) const;
  /// Returns 3 a + b if `a` needs gradients, else a - b.
  at::Tensor mixed(const at::Tensor& a, const at::Tensor& b) const;
  /// Returns 2 x; its backward throws while `set_failing` is on.
  at::Tensor failing(const at::Tensor& x) const;
  void set_failing(bool on) { fails_ = on; }
  at::Tensor looked_up(const at::Tensor& indices) const;
  std::vector<double> own_gradient(Worker& worker) const;
  std::vector<double> table_gradient(Worker& worker) const;

 private:
  at::Tensor own_;
  at::Tensor table_;
  bool fails_ = false;
};

/// Returns a sparse leaf of size 3 whose elements 0 and 2 are `numbers`.
at::Tensor sparse(const std::vector<double>& numbers, at::ScalarType type = at::kDouble);
at::Tensor dense(const at::Tensor& tensor);

at::Tensor ask_lab(const RRef<Lab>& lab, const at::Tensor& x);
at::Tensor fail_at_lab(const RRef<Lab>& lab, const at::Tensor& x);
at::Tensor sum_of(const std::vector<at::Tensor>& all);
/// Adds at the last worker of `path`.
at::Tensor add_along(Worker& worker, const Path& path, const at::Tensor& a, const at::Tensor& b);
/// Linear layers and a chain of matrices.
at::Tensor layers(const at::Tensor& a, const at::Tensor& b);
/// Computes here, calls `where`, and computes on with the result.
at::Tensor layers_around(Worker& worker, const std::string& where, const at::Tensor& a, const at::Tensor& b);
at::Tensor product_around(Worker& worker, const std::string& where, const at::Tensor& a, const at::Tensor& b);
at::Tensor make_leaf(const std::vector<double>& numbers);
at::Tensor make_sparse_leaf(const std::vector<double>& numbers);
at::Tensor add_to_referred(const RRef<at::Tensor>& r, const at::Tensor& x);
/// As add_to_referred, but called by a third worker, which is neither the owner of `r` nor the first caller.
at::Tensor add_at_owner(Worker& worker, const RRef<at::Tensor>& r, const at::Tensor& x);
/// Returns the gradient of the one leaf of this worker that has one in the running context.
std::vector<double> only_gradient(Worker& worker);
std::vector<double> gradient_of(Worker& worker, const RRef<at::Tensor>& r);

/// Returns a description of the graph that this worker has recorded in the running context: for each message that it
/// has sent, in order, the nodes that the message's gradients lead to. Received messages are numbered in the order in
/// which the description names them.
std::vector<std::string> sent_graphs(Worker& worker);

Registry make_rows_registry();

class RowsCluster : public AutogradCluster {
 protected:
  RowsCluster() : AutogradCluster({"worker0", "worker1", "worker2", "worker3"}, &make_rows_registry) {}
  ContextInfo info(std::size_t worker) {
    const auto all = (*this)[worker].autograd_contexts();
    return all.empty() ? ContextInfo() : all[0];
  }
  std::vector<std::string> graphs(const std::string& worker) { return (*this)[0].rpc_sync<&sent_graphs>(worker); }
};

}  // namespace caftan::test
