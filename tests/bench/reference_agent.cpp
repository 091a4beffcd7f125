// The reference: PyTorch's own TensorPipe agent, RRefs and autograd engine, driven from C++ without Python in two
// processes. A call runs the built-in operator aten::clone on a tensor, the reference's cheapest echo.
//
//   reference_agent default | shm       (the reference's default transports; or only {"shm"} with {"basic"})
#include <netinet/in.h>
#include <sys/socket.h>
#include <torch/csrc/distributed/autograd/context/container.h>
#include <torch/csrc/distributed/autograd/engine/dist_engine.h>
#include <torch/csrc/distributed/autograd/utils.h>
#include <torch/csrc/distributed/rpc/request_callback_no_python.h>
#include <torch/csrc/distributed/rpc/rref_context.h>
#include <torch/csrc/distributed/rpc/script_remote_call.h>
#include <torch/csrc/distributed/rpc/script_resp.h>
#include <torch/csrc/distributed/rpc/tensorpipe_agent.h>
#include <torch/csrc/distributed/rpc/utils.h>
#include <torch/csrc/jit/mobile/type_parser.h>
#include <torch/csrc/jit/runtime/operator.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "measure.hpp"
#include "peer_process.hpp"

namespace caftan::bench {
namespace {

namespace rpc = torch::distributed::rpc;
namespace autograd = torch::distributed::autograd;
using Future = c10::intrusive_ptr<c10::ivalue::Future>;

constexpr int kWorkerThreads = 16;  // the reference's default
constexpr float kRpcTimeoutSeconds = 60.0F;

struct Listener {
  int fd;
  std::uint16_t port;
};

/// A socket for the reference's store, which by itself would listen on every address of the machine.
Listener listen_on_loopback() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (fd < 0 || bind(fd, generic, length) != 0 || listen(fd, 8) != 0 || getsockname(fd, generic, &length) != 0) {
    std::perror("reference_agent: listen");
    std::exit(1);
  }
  return {fd, ntohs(address.sin_port)};
}

/// The reference's agent of one process; it lives until the process leaves.
std::shared_ptr<rpc::TensorPipeAgent> start_agent(const std::string& transports, std::int16_t rank, Listener store_at) {
  c10d::TCPStoreOptions store_options;
  store_options.port = store_at.port;
  store_options.isServer = rank == 0;
  store_options.waitWorkers = false;
  if (rank == 0) store_options.masterListenFd = store_at.fd;
  auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", store_options);

  std::optional<std::vector<std::string>> transport;
  std::optional<std::vector<std::string>> channel;
  if (transports == "shm") {
    transport = std::vector<std::string>{"shm"};
    channel = std::vector<std::string>{"basic"};
  }
  rpc::TensorPipeRpcBackendOptions options(kWorkerThreads, transport, channel, kRpcTimeoutSeconds, "env://");
  auto agent = std::make_shared<rpc::TensorPipeAgent>(
      store, "worker" + std::to_string(rank), rank, 2, options, std::unordered_map<std::string, rpc::DeviceMap>{},
      std::vector<c10::Device>{}, std::make_unique<rpc::RequestCallbackNoPython>());
  rpc::RpcAgent::setCurrentRpcAgent(agent);
  agent->setTypeResolver(std::make_shared<rpc::TypeResolver>([](const c10::QualifiedName& name) {
    return c10::StrongTypePtr(nullptr, c10::parseType(name.qualifiedName()));
  }));
  autograd::DistAutogradContainer::init(rank);
  agent->start();
  return agent;
}

std::shared_ptr<torch::jit::Operator> find_operator(const std::string& name, const std::string& overload) {
  for (const auto& op : torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(name))) {
    if (op->schema().overload_name() == overload) return op;
  }
  std::fprintf(stderr, "reference_agent: no operator %s.%s\n", name.c_str(), overload.c_str());
  std::exit(1);
}

class Reference {
 public:
  explicit Reference(std::shared_ptr<rpc::TensorPipeAgent> agent)
      : agent_(std::move(agent)), peer_(agent_->getWorkerInfo("worker1")), clone_(find_operator("aten::clone", "")) {}

  Future send_clone(const at::Tensor& tensor) const { return agent_->send(peer_, make_call(tensor)); }

  static at::Tensor receive(const Future& future) {
    future->waitAndThrow();
    return rpc::deserializeRespToIValue(*future->constValue().toCustomClass<rpc::Message>()).toTensor();
  }

  /// What rpc.remote followed by to_here does for a built-in operator.
  at::Tensor remote_to_here(const at::Tensor& tensor) const {
    auto& references = rpc::RRefContext::getInstance();
    auto user = references.createUserRRef(peer_.id_, c10::TensorType::get());
    references.addPendingUser(user->forkId(), user);
    rpc::ScriptRemoteCall call(clone_, stack_of(tensor), user->rrefId(), user->forkId());
    auto created = autograd::sendMessageWithAutograd(*agent_, peer_, std::move(call).toMessage());
    const auto fork_id = user->forkId();
    created->addCallback([fork_id](c10::ivalue::Future& done) { rpc::callback::confirmPendingUser(done, fork_id); });
    at::Tensor value = user->toHere().toTensor();
    // A reference that goes before its owner confirmed it would be deleted out of order.
    created->waitAndThrow();
    return value;
  }

  /// One hop: a context, clone at the peer, the sum of its result as loss, the backward pass, release.
  void hop(const at::Tensor& leaf) const {
    auto& container = autograd::DistAutogradContainer::getInstance();
    const auto context = container.newContext();
    const auto id = context->contextId();
    const auto future = autograd::sendMessageWithAutograd(*agent_, peer_, make_call(leaf));
    const at::Tensor loss = receive(future).sum();
    autograd::DistEngine::getInstance().execute(id, {loss}, false);
    const auto gradients = context->getGradients();
    if (gradients.find(leaf) == gradients.end()) {
      std::fprintf(stderr, "reference_agent: the backward pass left no gradient\n");
      std::exit(1);
    }
    container.releaseContext(id);
  }

 private:
  static std::vector<at::IValue> stack_of(const at::Tensor& tensor) { return {tensor, at::IValue()}; }
  c10::intrusive_ptr<rpc::Message> make_call(const at::Tensor& tensor) const {
    return rpc::ScriptCall(clone_, stack_of(tensor)).toMessage();
  }

  std::shared_ptr<rpc::TensorPipeAgent> agent_;
  const rpc::WorkerInfo& peer_;
  std::shared_ptr<torch::jit::Operator> clone_;
};

at::Tensor make_tensor(const Request& request) { return at::ones({static_cast<std::int64_t>(request.floats)}); }

int run(const std::string& transports) {
  // TensorPipe's uv transport else takes the address of the first interface that is not loopback.
  setenv("TP_SOCKET_IFNAME", "lo", 1);
  PeerProcess peer([&](const ParentLink& parent) -> int {
    const auto port = static_cast<std::uint16_t>(std::stoi(parent.hear()));
    const auto agent = start_agent(transports, 1, Listener{-1, port});
    parent.wait_for_end();
    // Static destructors of the reference's singletons are not safe: both processes leave without them.
    _exit(0);
  });
  const Listener listener = listen_on_loopback();
  peer.tell(std::to_string(listener.port));
  const Reference reference(start_agent(transports, 0, listener));
  const Rig rig("reference " + transports, peer.pid());
  const int code = rig.serve({
      {"sync",
       [&](const Request& request) {
         const auto tensor = make_tensor(request);
         return rig.sync(request, [&] { Reference::receive(reference.send_clone(tensor)); });
       }},
      {"pipelined",
       [&](const Request& request) {
         const auto tensor = make_tensor(request);
         std::vector<Future> open(request.window);
         return rig.pipelined(
             request, [&](std::size_t slot) { open[slot] = reference.send_clone(tensor); },
             [&](std::size_t slot) { Reference::receive(open[slot]); });
       }},
      {"remote",
       [&](const Request& request) {
         const auto tensor = make_tensor(request);
         return rig.sync(request, [&] { reference.remote_to_here(tensor); });
       }},
      {"hop",
       [&](const Request& request) {
         const auto leaf = make_tensor(request).requires_grad_(true);
         return rig.sync(request, [&] { reference.hop(leaf); });
       }},
      {"idle", [&](const Request& request) { return rig.idle(request); }},
  });
  std::fflush(stdout);
  peer.kill();
  _exit(code);
}

}  // namespace
}  // namespace caftan::bench

int main(int argc, char** argv) {
  const std::string transports = argc == 2 ? argv[1] : "";
  if (transports == "default" || transports == "shm") return caftan::bench::run(transports);
  std::fprintf(stderr, "usage: reference_agent default | shm\n");
  return 2;
}
