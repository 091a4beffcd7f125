#include "launch/run_addresses.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "caftan/app/internal/plan.hpp"
#include "caftan/app/internal/secret_file.hpp"
#include "caftan/net/internal/tls_engine.hpp"
#include "caftan/transport/internal/endpoint.hpp"

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

Result<std::string> random_hex() {
  const auto bytes = random_secret();
  if (!bytes) return bytes.error();
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  for (const char byte : *bytes) {
    digits += kDigits[static_cast<unsigned char>(byte) >> 4U];
    digits += kDigits[static_cast<unsigned char>(byte) & 15U];
  }
  return digits;
}

HostChannel channel_of_host(const app::Application& application) {
  HostChannel channel{&app::channel_on_host(application.cluster.channel), {}, {}};
  for (; channel.facts != &app::kChannels.back(); ++channel.facts) {
    const auto there = transport::check_machine(channel.facts->name);
    if (there) break;
    channel.why_not +=
        (channel.why_not.empty() ? "no " : ", no ") + std::string(channel.facts->name) + ": " + there.error().text();
  }
  channel.lacking = transport::machine_note(channel.facts->name);
  return channel;
}

HostChannel channel_between_hosts(const app::Application& application) {
  HostChannel channel{&app::channel_between_hosts(application.cluster.channel), {}, {}};
  if (const auto there = transport::check_machine(channel.facts->name); !there) {
    channel.why_not = "no " + std::string(channel.facts->name) + ": " + there.error().text();
    channel.facts = &app::kChannels.back();
  }
  return channel;
}

std::string about_channel(const app::Application& application, const app::Plan& plan) {
  switch (application.run.placement) {
    case app::Placement::one_process:
      return {};
    case app::Placement::processes:
      return channel_of_host(application).about();
    case app::Placement::hosts:
      break;
  }
  const bool neighbours = std::ranges::any_of(plan.workers, [&](const app::PlannedWorker& worker) {
    return std::ranges::count(plan.workers, worker.host, &app::PlannedWorker::host) > 1;
  });
  std::string about = channel_between_hosts(application).why_not;
  if (neighbours) {
    about += (about.empty() ? "" : "; ") +
             std::string("also between workers of one host: no shm, no unix with placement hosts");
  }
  return about;
}

std::string loopback_warning(const app::Application& application) {
  if (application.run.placement != app::Placement::hosts) return {};
  const app::HostSpec& first = application.hosts.front();
  const auto is_meant = [](const std::string& address) {
    return address.empty() || address.starts_with("127.") || address == "::1" || address == "localhost";
  };
  const bool all_here = std::ranges::all_of(application.hosts, [&](const app::HostSpec& host) {
    return is_meant(host.address) || host.address == first.address;
  });
  if (is_meant(first.address) || all_here || transport::is_beyond_loopback("tcp:" + bracketed(first.address) + ":0"))
    return {};
  return "warning: hosts." + first.name + ".address, '" + first.address +
         "', is an address of this machine alone (127.0.0.0/8, see /etc/hosts): workers of other hosts cannot reach "
         "it; write its number there, or hosts." +
         first.name + ".interface";
}

Result<void> check_certificates(const app::Application& application) {
  if (app::tls_use(application) != app::TlsUse::certificates) return {};
  const app::TlsSettings& tls = application.tls;
  net::TlsKeys keys;
  keys.files = {tls.certificate.value_or(""), tls.key.value_or(""), tls.authority.value_or("")};
  const auto engine = net::TlsEngine::server(keys);
  return engine ? Result<void>() : Result<void>(engine.error());
}

Result<RunAddresses> RunAddresses::make(const app::Application& application, const app::Plan& plan) {
  if (auto fits = check_certificates(application); !fits) return fits.error();
  switch (application.run.placement) {
    case app::Placement::one_process:
      return RunAddresses(Kind::local, "loopback");
    case app::Placement::processes: {
      const app::ChannelFacts& channel = *channel_of_host(application).facts;
      RunAddresses addresses(channel.is_path ? Kind::paths : Kind::ports, channel.name);
      auto secret = random_secret();
      if (!secret) return secret.error();
      addresses.secret_ = *std::move(secret);
      if (channel.is_path) {
        auto folder = SocketFolder::make();
        if (!folder) return folder.error();
        addresses.folder_.emplace(*std::move(folder));
      }
      return addresses;
    }
    case app::Placement::hosts:
      break;
  }
  RunAddresses addresses(Kind::hosts, channel_between_hosts(application).facts->name);
  const std::filesystem::path file = application.cluster.secret_file.value_or("");
  auto secret = app::read_secret_file(file);
  if (!secret) {
    const Error& error = secret.error();
    const std::string subject = error.code() == Errc::io_error ? std::string() : file.string() + " ";
    return Error(error.code(), "cluster.secret_file " + subject + error.text());
  }
  addresses.secret_ = *std::move(secret);
  const app::HostSpec& first = application.hosts.front();
  addresses.coordinator_address_ =
      std::string(addresses.channel_) + ":" + bracketed(first.address) + ":" + std::to_string(first.port);
  const auto there = plan.on_host(first.name);
  if (!there) return there.error();
  addresses.coordinator_ = there->front();
  return addresses;
}

std::vector<WorkerAddress> RunAddresses::addresses_for(const app::Plan& plan, WorkerId self,
                                                       const std::vector<app::HostSpec>& hosts) const {
  const auto address_of = [&](const app::PlannedWorker& worker) -> std::string {
    const std::string scheme = std::string(channel_) + ":";
    if (kind_ == Kind::paths) return scheme + (folder_->path() / std::to_string(worker.id.value)).string();
    if (kind_ == Kind::local) return {};
    if (worker.id == coordinator_) return coordinator_address_.empty() ? scheme + "127.0.0.1:0" : coordinator_address_;
    // The others learn the port from the coordinator.
    if (worker.id != self) return {};
    if (kind_ == Kind::ports) return scheme + "127.0.0.1:0";
    for (const app::HostSpec& host : hosts) {
      if (host.name == worker.host) return scheme + bracketed(host.address) + ":0";
    }
    return {};
  };
  std::vector<WorkerAddress> members;
  const app::PlannedWorker& coordinator = plan.workers[coordinator_.value];
  members.push_back({coordinator.name, address_of(coordinator)});
  for (const app::PlannedWorker& worker : plan.workers) {
    if (worker.id != coordinator_) members.push_back({worker.name, address_of(worker)});
  }
  return members;
}

bool RunAddresses::learn_coordinator(WorkerId worker, const std::string& address) {
  if (worker != coordinator_ || !must_learn_coordinator()) return false;
  coordinator_address_ = address;
  return true;
}

void RunAddresses::remove_sockets() {
  if (folder_ && folder_->remove()) folder_.reset();
}

}  // namespace caftan::actors
