#include <signal.h>
#include <unistd.h>

#include "peer_process.hpp"
#include "reference.hpp"
#include "world.hpp"

namespace caftan::parity {

namespace {

/// The worker of this process: the calls that it serves run at it, and so does the driver in the driver's process.
/// @param rank  of this process
class Site : public World {
 public:
  explicit Site(int rank) : leaves_(rank) {
    serve_ = reference::add_function("aten::caftan_serve(str function, Tensor[] arguments) -> Tensor",
                                     [this](const std::vector<c10::IValue>& values) {
                                       return run(*this, values[0].toStringRef(), values[1].toTensorVector());
                                     });
  }
  at::Tensor call(int rank, const std::string& function, const Tensors& arguments) override {
    return reference::call(static_cast<std::int16_t>(rank), serve_, {function, arguments}).toTensor();
  }
  const Leaves& leaves() const override { return leaves_; }
  at::Tensor gradient(const at::Tensor& leaf) override { return reference::gradient_in_current_context(leaf); }

 private:
  const Leaves leaves_;
  reference::Function serve_;
};

class ReferenceDriver final : public Driver {
 public:
  explicit ReferenceDriver(Site& site) : site_(site) {}
  at::Tensor call(int rank, const std::string& function, const Tensors& arguments) override {
    return site_.call(rank, function, arguments);
  }
  const Leaves& leaves() const override { return site_.leaves(); }
  at::Tensor gradient(const at::Tensor& leaf) override { return context_.gradient(leaf); }
  void backward(const Tensors& roots, bool retain_graph) override { context_.backward(roots, retain_graph); }

 private:
  Site& site_;
  const reference::Context context_;
};

Site* own_site = nullptr;  // the Site of this process: the reference has one agent per process

}  // namespace

struct ReferenceProcesses::State {
  std::vector<std::unique_ptr<bench::PeerProcess>> peers;
  std::unique_ptr<Site> site;
};

ReferenceProcesses::ReferenceProcesses() : state_(std::make_unique<State>()) {
  const auto start = [](int rank, reference::Listener store) {
    reference::start({.rank = static_cast<std::int16_t>(rank), .world = kWorkers, .transports = "uv", .store = store});
  };
  for (int rank = 1; rank < kWorkers; ++rank) {
    state_->peers.push_back(std::make_unique<bench::PeerProcess>([&, rank](const bench::ParentLink& parent) -> int {
      Site site(rank);
      start(rank, {-1, static_cast<std::uint16_t>(std::stoi(parent.hear()))});
      parent.wait_for_end();
      _exit(0);
    }));
  }
  state_->site = std::make_unique<Site>(0);
  const reference::Listener listener = reference::listen_on_loopback();
  for (const auto& peer : state_->peers) peer->tell(std::to_string(listener.port));
  start(0, listener);
  own_site = state_->site.get();
}

void ReferenceProcesses::leave(int code) {
  // All processes are killed at once: otherwise each would warn of the loss of the others.
  for (const auto& peer : state_->peers) ::kill(peer->pid(), SIGKILL);
  _exit(code);
}

ReferenceProcesses::~ReferenceProcesses() = default;

MakeDriver reference_side() {
  return [] { return std::make_unique<ReferenceDriver>(*own_site); };
}

}  // namespace caftan::parity
