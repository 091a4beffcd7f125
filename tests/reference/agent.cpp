#include <netinet/in.h>
#include <sys/socket.h>
#include <torch/csrc/distributed/autograd/context/container.h>
#include <torch/csrc/distributed/rpc/request_callback_no_python.h>
#include <torch/csrc/distributed/rpc/tensorpipe_agent.h>
#include <torch/csrc/jit/mobile/type_parser.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "reference.hpp"

namespace caftan::reference {

namespace rpc = torch::distributed::rpc;

namespace {

constexpr int kWorkerThreads = 16;  // the reference's default
constexpr float kRpcTimeoutSeconds = 60.0F;

}  // namespace

Listener listen_on_loopback() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (fd < 0 || bind(fd, generic, length) != 0 || listen(fd, 8) != 0 || getsockname(fd, generic, &length) != 0) {
    std::perror("reference: listen");
    std::exit(1);
  }
  return {fd, ntohs(address.sin_port)};
}

void start(const Member& member) {
  // Otherwise TensorPipe's uv transport would take the address of the first interface that is not loopback.
  setenv("TP_SOCKET_IFNAME", "lo", 1);
  c10d::TCPStoreOptions store_options;
  store_options.port = member.store.port;
  store_options.isServer = member.rank == 0;
  store_options.waitWorkers = false;
  if (member.rank == 0) store_options.masterListenFd = member.store.fd;
  auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", store_options);

  std::optional<std::vector<std::string>> transport;
  std::optional<std::vector<std::string>> channel;
  if (member.transports != "default") {
    transport = std::vector<std::string>{member.transports};
    channel = std::vector<std::string>{"basic"};
  }
  rpc::TensorPipeRpcBackendOptions options(kWorkerThreads, transport, channel, kRpcTimeoutSeconds, "env://");
  auto agent = std::make_shared<rpc::TensorPipeAgent>(
      store, "worker" + std::to_string(member.rank), member.rank, member.world, options,
      std::unordered_map<std::string, rpc::DeviceMap>{}, std::vector<c10::Device>{},
      std::make_unique<rpc::RequestCallbackNoPython>());
  rpc::RpcAgent::setCurrentRpcAgent(agent);
  agent->setTypeResolver(std::make_shared<rpc::TypeResolver>([](const c10::QualifiedName& name) {
    return c10::StrongTypePtr(nullptr, c10::parseType(name.qualifiedName()));
  }));
  torch::distributed::autograd::DistAutogradContainer::init(member.rank);
  agent->start();
}

}  // namespace caftan::reference
