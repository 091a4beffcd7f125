#include "launch/run_addresses.hpp"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "caftan/app/secret_file.hpp"

namespace caftan::actors {
namespace {

Result<std::string> random_secret() {
  std::array<char, 32> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return Error(Errc::io_error, std::string("getrandom: ") + std::strerror(errno));
  }
  return std::string(bytes.data(), bytes.size());
}

std::string bracketed(const std::string& host) { return host.find(':') == std::string::npos ? host : "[" + host + "]"; }

}  // namespace

Result<RunAddresses> RunAddresses::make(const app::Application& application, const app::Plan& plan) {
  switch (application.run.placement) {
    case app::Placement::one_process:
      return RunAddresses(Kind::local);
    case app::Placement::processes: {
      const bool tcp = application.cluster.channel == app::ChannelChoice::tcp;
      RunAddresses world(tcp ? Kind::tcp : Kind::unix_sockets);
      auto secret = random_secret();
      if (!secret) return secret.error();
      world.secret_ = *std::move(secret);
      if (!tcp) {
        auto folder = SocketFolder::make();
        if (!folder) return folder.error();
        world.folder_.emplace(*std::move(folder));
      }
      return world;
    }
    case app::Placement::hosts:
      break;
  }
  RunAddresses world(Kind::hosts);
  const std::filesystem::path file = application.cluster.secret_file.value_or("");
  auto secret = app::read_secret_file(file);
  if (!secret && secret.error().code() == Errc::invalid_config) {
    return Error(Errc::invalid_config, file.string() + " " + secret.error().text());
  }
  if (!secret) return secret.error();
  world.secret_ = *std::move(secret);
  const app::HostSpec& first = application.hosts.front();
  world.meeting_address_ = "tcp:" + bracketed(first.address) + ":" + std::to_string(first.port);
  const auto there = plan.on_host(first.name);
  if (!there) return there.error();
  world.meeting_ = there->front();
  return world;
}

const char* RunAddresses::channel() const noexcept {
  switch (kind_) {
    case Kind::local:
      return "loopback";
    case Kind::unix_sockets:
      return "unix";
    case Kind::tcp:
    case Kind::hosts:
      break;
  }
  return "tcp";
}

std::vector<WorkerAddress> RunAddresses::addresses_for(const app::Plan& plan, WorkerId self,
                                                       const std::vector<app::HostSpec>& hosts) const {
  const auto address_of = [&](const app::PlannedWorker& worker) -> std::string {
    if (kind_ == Kind::unix_sockets) return "unix:" + (folder_->path() / std::to_string(worker.id.value)).string();
    if (kind_ == Kind::local) return {};
    if (worker.id == meeting_) return meeting_address_.empty() ? "tcp:127.0.0.1:0" : meeting_address_;
    // The others learn the port from the meeting worker.
    if (worker.id != self || kind_ == Kind::tcp) return {};
    for (const app::HostSpec& host : hosts) {
      if (host.name == worker.host) return "tcp:" + bracketed(host.address) + ":0";
    }
    return {};
  };
  std::vector<WorkerAddress> world;
  const app::PlannedWorker& meeting = plan.workers[meeting_.value];
  world.push_back({meeting.name, address_of(meeting)});
  for (const app::PlannedWorker& worker : plan.workers) {
    if (worker.id != meeting_) world.push_back({worker.name, address_of(worker)});
  }
  return world;
}

bool RunAddresses::learn_meeting(WorkerId worker, const std::string& address) {
  if (worker != meeting_ || !must_learn_meeting()) return false;
  meeting_address_ = address;
  return true;
}

void RunAddresses::remove_sockets() {
  if (folder_ && folder_->remove()) folder_.reset();
}

}  // namespace caftan::actors
