// The measures of benchmark caftan_bench with ZeroMQ, a C++ messaging library: two processes, REQ/REP one call at a
// time and DEALER/ROUTER with many in flight. A message is one frame: the tensor's bytes, at least 64.
//
//   zeromq_floor ipc | tcp
#include <zmq.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "measure.hpp"
#include "peer_process.hpp"

namespace caftan::bench {
namespace {

constexpr std::size_t kSmallestMessage = 64;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "zeromq_floor: %s: %s\n", what, zmq_strerror(zmq_errno()));
  std::exit(1);
}

void* open_socket(void* context, int type) {
  void* socket = zmq_socket(context, type);
  const int no_linger = 0;
  if (socket == nullptr || zmq_setsockopt(socket, ZMQ_LINGER, &no_linger, sizeof no_linger) != 0) fail("socket");
  return socket;
}

std::string bind_socket(void* socket, const std::string& kind, const std::string& name) {
  // An abstract address leaves no file behind.
  const std::string address = kind == "tcp" ? "tcp://127.0.0.1:*" : "ipc://@caftan-bench-" + name;
  if (zmq_bind(socket, address.c_str()) != 0) fail("bind");
  char bound[256];
  std::size_t size = sizeof bound;
  if (zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, bound, &size) != 0) fail("endpoint");
  return bound;
}

/// Sends every part of a message back as it came, until the context ends.
void echo(void* socket) {
  zmq_msg_t part;
  zmq_msg_init(&part);
  while (zmq_msg_recv(&part, socket, 0) >= 0) {
    const int more = zmq_msg_more(&part);
    if (zmq_msg_send(&part, socket, more != 0 ? ZMQ_SNDMORE : 0) < 0) break;
  }
  zmq_msg_close(&part);
  zmq_close(socket);
}

int run_peer(const std::string& kind, const ParentLink& parent) {
  const std::string name = parent.hear();
  void* context = zmq_ctx_new();
  void* reply = open_socket(context, ZMQ_REP);
  void* router = open_socket(context, ZMQ_ROUTER);
  parent.write_line(bind_socket(reply, kind, name + "-reply"));
  parent.write_line(bind_socket(router, kind, name + "-router"));
  std::thread one(echo, reply);
  std::thread many(echo, router);
  parent.wait_for_end();
  zmq_ctx_term(context);  // ends both receives
  one.join();
  many.join();
  return 0;
}

void keep_buffer(void*, void*) {}

void send_message(void* socket, std::vector<char>& bytes) {
  zmq_msg_t message;
  // The bytes outlive the call, so they are sent without a copy.
  if (bytes.size() > kSmallestMessage) {
    zmq_msg_init_data(&message, bytes.data(), bytes.size(), keep_buffer, nullptr);
  } else {
    zmq_msg_init_size(&message, bytes.size());
    std::memcpy(zmq_msg_data(&message), bytes.data(), bytes.size());
  }
  if (zmq_msg_send(&message, socket, 0) < 0) fail("send");
}

void receive_message(void* socket, std::size_t size) {
  zmq_msg_t message;
  zmq_msg_init(&message);
  if (zmq_msg_recv(&message, socket, 0) < 0 || zmq_msg_size(&message) != size) fail("receive");
  zmq_msg_close(&message);
}

int run(const std::string& kind) {
  PeerProcess peer([&](const ParentLink& parent) { return run_peer(kind, parent); });
  peer.write_line(std::to_string(peer.pid()));
  const std::string reply_address = peer.hear();
  const std::string router_address = peer.hear();
  void* context = zmq_ctx_new();
  void* request_socket = open_socket(context, ZMQ_REQ);
  void* dealer = open_socket(context, ZMQ_DEALER);
  if (zmq_connect(request_socket, reply_address.c_str()) != 0) fail("connect");
  if (zmq_connect(dealer, router_address.c_str()) != 0) fail("connect");
  const Rig rig("zeromq " + kind, {peer.pid()});
  const auto payload = [](const Request& request) {
    return std::vector<char>(std::max(kSmallestMessage, request.floats * sizeof(float)));
  };
  const int code = rig.serve({
      {"sync",
       [&](const Request& request) {
         auto bytes = payload(request);
         return rig.sync(request, [&] {
           send_message(request_socket, bytes);
           receive_message(request_socket, bytes.size());
         });
       }},
      {"pipelined",
       [&](const Request& request) {
         auto bytes = payload(request);
         return rig.pipelined(
             request, [&](std::size_t) { send_message(dealer, bytes); },
             [&](std::size_t) { receive_message(dealer, bytes.size()); });
       }},
      {"idle", [&](const Request& request) { return rig.idle(request); }},
  });
  zmq_close(request_socket);
  zmq_close(dealer);
  zmq_ctx_term(context);
  return code;
}

}  // namespace
}  // namespace caftan::bench

int main(int argc, char** argv) {
  const std::string kind = argc == 2 ? argv[1] : "";
  if (kind == "ipc" || kind == "tcp") return caftan::bench::run(kind);
  std::fprintf(stderr, "usage: zeromq_floor ipc | tcp\n");
  return 2;
}
