/// The interface by which a parity test runs a program twice: calls between four workers, each with leaves of its own.
/// `World` is the worker at which some code runs, in Caftan or in the reference; `Driver` is the worker that has the
/// context.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace caftan::parity {

using Tensors = std::vector<at::Tensor>;

constexpr int kWorkers = 4;  // worker 0 drives

/// The leaves of one worker, which depend on its rank alone; float64, small whole numbers.
struct Leaves {
  explicit Leaves(int rank);
  at::Tensor weight;  ///< [4]
  at::Tensor table;   ///< [5, 4], whose gradient is sparse
};

class World {
 public:
  virtual ~World() = default;
  /// Runs `function` at that worker, in the context of the running code. Waits.
  virtual at::Tensor call(int rank, const std::string& function, const Tensors& arguments) = 0;
  virtual const Leaves& leaves() const = 0;
  /// Returns the gradient that the context has for a leaf of this worker; undefined if there is none.
  virtual at::Tensor gradient(const at::Tensor& leaf) = 0;
};

/// Worker 0, which drives the program. The context begins and ends with this object.
class Driver : public World {
 public:
  virtual void backward(const Tensors& roots, bool retain_graph) = 0;
};

/// Runs, at `world`, one of the functions that every worker has. "relay 213" calls worker 2, which calls worker 1,
/// which calls worker 3; each multiplies by its own weight on the way back. Throws std::invalid_argument if there is no
/// such function.
at::Tensor run(World& world, const std::string& function, const Tensors& arguments);

/// Makes the driver of one side.
using MakeDriver = std::function<std::unique_ptr<Driver>()>;
/// Returns the function that makes drivers of Caftan's side, over the stepped executor. @param seed  of the order in
/// which everything happens
MakeDriver caftan_side(std::uint64_t seed);
/// The reference's side. Precondition: the ReferenceProcesses run.
MakeDriver reference_side();

/// The four processes of the reference, with this one among them. Make this object before any thread.
class ReferenceProcesses {
 public:
  ReferenceProcesses();
  ~ReferenceProcesses();
  ReferenceProcesses(const ReferenceProcesses&) = delete;
  ReferenceProcesses& operator=(const ReferenceProcesses&) = delete;
  /// Ends all four processes, without static destructors: those of the reference's singletons are not safe.
  [[noreturn]] void leave(int code);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace caftan::parity
