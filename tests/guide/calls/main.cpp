// The first call by hand: `calls` has two workers in one process; `calls server` and `calls client` are two processes,
// which meet at a socket in the current folder.
#include <caftan/caftan.hpp>
#include <cstdio>
#include <filesystem>
#include <latch>
#include <memory>
#include <string>
#include <utility>

int add(int a, int b) { return a + b; }

caftan::Registry functions() {
  caftan::Registry registry;
  registry.add<&add>("math.add");  // what is not registered cannot be called
  return registry;
}

caftan::WorkerOptions member(const std::string& name, const std::string& server) {
  caftan::WorkerOptions options;
  options.name = name;
  options.world = {{"server", server}, {"client", ""}};  // all members in the same order everywhere
  return options;
}

int in_one_process() {
  const auto server = caftan::Worker::launch(member("server", "tcp:127.0.0.1:0"), functions()).value();
  const auto client = caftan::Worker::launch(member("client", server->address()), functions()).value();
  server->wait_until_ready().value();
  client->wait_until_ready().value();
  return client->rpc_sync<&add>("server", 20, 22);
}

constexpr const char* kSocket = "calls.sock";

void serve() {
  std::filesystem::remove(kSocket);  // left by a server that was killed
  std::latch client_has_left(1);
  caftan::WorkerOptions options = member("server", std::string("unix:") + kSocket);
  options.on_peer_down = [&](const std::string&, const caftan::Error&) { client_has_left.count_down(); };
  const auto server = caftan::Worker::start(std::move(options), functions()).value();
  client_has_left.wait();
}

int call() {
  const auto client = caftan::Worker::start(member("client", std::string("unix:") + kSocket), functions()).value();
  return client->rpc_sync<&add>("server", 20, 22);
}

int main(int argc, char** argv) {
  const std::string part = argc > 1 ? argv[1] : "both";
  if (part == "server") {
    serve();
    return 0;
  }
  const int sum = part == "client" ? call() : in_one_process();
  std::printf("20 + 22 = %d\n", sum);
  return sum == 42 ? 0 : 1;
}
