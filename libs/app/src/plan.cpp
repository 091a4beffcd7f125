#include "caftan/app/internal/plan.hpp"

#include <algorithm>
#include <array>

#include "caftan/base/internal/joined.hpp"
#include "caftan/base/settings_io.hpp"
#include "loopback.hpp"

namespace caftan::app {
namespace {

std::string host_port(const HostSpec& host) {
  const bool v6 = host.address.find(':') != std::string::npos;
  return (v6 ? "[" + host.address + "]" : host.address) + ":" + std::to_string(host.port);
}

/// Returns the channel by which a worker is reached. A worker listens at one address, so with placement "hosts" it is
/// that between hosts for workers of the same host, too.
std::string channel_of(const Application& application, bool meeting) {
  const TlsUse use = tls_use(application);
  const std::string tls = use == TlsUse::secret || use == TlsUse::certificates ? "+tls" : "";
  switch (application.run.placement) {
    case Placement::one_process:
      return "loopback";
    case Placement::processes: {
      const ChannelFacts& channel = channel_on_host(application.cluster.channel);
      return channel.name + (channel.is_path ? "" : tls);
    }
    case Placement::hosts:
      break;
  }
  const HostSpec& first = application.hosts.front();
  const std::string name = channel_between_hosts(application.cluster.channel).name + tls;
  return meeting && !first.address.empty() ? name + " " + host_port(first) : name;
}

void plan_uses(const Application& application, Plan& plan) {
  for (PlannedWorker& worker : plan.workers) {
    for (const RoleSpec::Use& use : application.find_role(worker.role)->uses) {
      PlannedUse planned{.name = use.name, .workers = {}};
      for (const std::string& role : use.roles) {
        for (const PlannedWorker& other : plan.workers) {
          if (other.role == role && other.id != worker.id) planned.workers.push_back(other.id);
        }
      }
      worker.uses.push_back(std::move(planned));
    }
  }
}

std::string list_names(const Plan& plan, const std::vector<WorkerId>& workers) {
  constexpr std::size_t kShown = 4;
  std::string text;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    if (i == kShown && workers.size() > kShown + 1) {
      return text + ", ... " + plan.workers[workers.back().value].name + " (" + std::to_string(workers.size()) + ")";
    }
    text += (i == 0 ? "" : ", ") + plan.workers[workers[i].value].name;
  }
  return text.empty() ? "none" : text;
}

/// Pads columns to their widest cell; the last one is left as it is.
std::string render_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = "  ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i] + std::string(i + 1 < row.size() ? widths[i] - row[i].size() + 2 : 0, ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string count(std::size_t number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : what.ends_with('s') ? "es" : "s");
}

/// Where all workers share a process none is lost alone (RN-19).
bool may_be_lost(const Application& application, const RoleSpec& role) {
  return role.keys.on_loss == OnLoss::go_on && application.run.placement != Placement::one_process;
}

/// Returns the names of the roles that `chosen` takes: "agent, observer".
template <class Chosen>
std::string names_of_roles(const Application& application, Chosen chosen) {
  std::string names;
  for (const RoleSpec& role : application.roles) {
    if (chosen(role)) names += (names.empty() ? "" : ", ") + role.name;
  }
  return names;
}

std::string policies_text(const Application& application) {
  const RunSettings& run = application.run;
  const ClusterSettings& cluster = application.cluster;
  std::string text = "start_timeout " + format_duration(run.start_timeout.count()) + ", stop_timeout " +
                     format_duration(run.stop_timeout.count()) + ", wall " +
                     (run.wall ? format_duration(run.wall->count()) : "none") + ", rpc_timeout " +
                     (cluster.rpc_timeout.count() > 0 ? format_duration(cluster.rpc_timeout.count()) : "none") +
                     ", heartbeat " + format_duration(cluster.heartbeat.count()) + "\n";
  text += "message " + format_bytes(application.limits.message.bytes) + ", tensors " +
          format_bytes(application.limits.tensors.bytes) + ", send_queue " +
          format_bytes(application.limits.send_queue.bytes) + ", pending_calls " +
          std::to_string(application.limits.pending_calls) + "\n";
  text += "ends when run() has returned in: " +
          names_of_roles(application, [](const RoleSpec& role) { return role.drives; }) + "\n";
  const std::string without =
      names_of_roles(application, [&](const RoleSpec& role) { return may_be_lost(application, role); });
  if (!without.empty()) text += "goes on without lost workers of: " + without + "\n";
  const std::string tls = tls_text(tls_use(application));
  if (!tls.empty()) text += tls + "\n";
  return text + "output in " + application.output.dir + "/" + run.name + "-<date>-<n>\n";
}

}  // namespace

const PlannedWorker* Plan::find(std::string_view name) const {
  const auto found = std::ranges::find(workers, name, &PlannedWorker::name);
  return found == workers.end() ? nullptr : &*found;
}

std::vector<WorkerId> Plan::all() const {
  std::vector<WorkerId> found;
  for (const PlannedWorker& worker : workers) found.push_back(worker.id);
  return found;
}

std::vector<WorkerId> Plan::in_process(int process) const {
  std::vector<WorkerId> found;
  for (const PlannedWorker& worker : workers) {
    if (worker.process == process) found.push_back(worker.id);
  }
  return found;
}

Result<std::vector<WorkerId>> Plan::on_host(std::string_view host) const {
  std::vector<WorkerId> found;
  std::vector<std::string> hosts;
  for (const PlannedWorker& worker : workers) {
    if (worker.host == host) found.push_back(worker.id);
    if (std::ranges::find(hosts, worker.host) == hosts.end()) hosts.push_back(worker.host);
  }
  if (!found.empty()) return found;
  const std::string list = base::joined(hosts);  // the list is empty, too, where the only host of the plan has no name
  return Error(Errc::invalid_config, "no worker runs on host '" + std::string(host) + "'" + did_you_mean(host, hosts) +
                                         " (hosts: " + (list.empty() ? "none" : list) + ")");
}

Result<std::vector<WorkerId>> Plan::select(std::string_view role, std::optional<int> replica) const {
  std::vector<WorkerId> found;
  std::vector<std::string> roles;
  int replicas = 0;
  for (const PlannedWorker& worker : workers) {
    if (std::ranges::find(roles, worker.role) == roles.end()) roles.push_back(worker.role);
    if (worker.role != role) continue;
    ++replicas;
    if (!replica || worker.replica == *replica) found.push_back(worker.id);
  }
  if (!found.empty()) return found;
  if (replicas > 0) {
    return Error(Errc::invalid_config, "role '" + std::string(role) + "' has replicas 0.." +
                                           std::to_string(replicas - 1) + ", not " + std::to_string(*replica));
  }
  return Error(Errc::invalid_config, "no role '" + std::string(role) + "'" + did_you_mean(role, roles) +
                                         " (roles: " + base::joined(roles) + ")");
}

Plan make_plan(const Application& application) {
  Plan plan;
  for (const RoleSpec& role : application.roles) {
    for (int replica = 0; replica < role.keys.replicas; ++replica) {
      PlannedWorker worker;
      worker.id = WorkerId{static_cast<std::uint32_t>(plan.workers.size())};
      worker.name = role.worker_name(replica);
      worker.role = role.name;
      worker.type = role.keys.type;
      worker.replica = replica;
      worker.torch_threads = role.keys.torch_threads;
      worker.drives = role.drives;
      worker.own_cores =
          role.own_cores && application.run.own_cores && application.run.placement != Placement::one_process;
      worker.may_be_lost = may_be_lost(application, role);
      if (application.run.placement != Placement::one_process) worker.process = static_cast<int>(worker.id.value);
      if (application.run.placement == Placement::hosts) {
        const std::vector<std::string>& hosts = role.keys.hosts;
        worker.host =
            hosts.empty() ? application.hosts.front().name : hosts[static_cast<std::size_t>(replica) % hosts.size()];
      }
      plan.workers.push_back(std::move(worker));
    }
  }
  bool met = false;
  for (PlannedWorker& worker : plan.workers) {
    const bool meeting = !met && !worker.host.empty() && worker.host == application.hosts.front().name;
    met = met || meeting;
    worker.channel = channel_of(application, meeting);
  }
  plan_uses(application, plan);
  plan.processes = application.run.placement == Placement::one_process ? 1 : static_cast<int>(plan.workers.size());
  return plan;
}

TlsUse tls_use(const Application& application) {
  const bool is_hosts = application.run.placement == Placement::hosts;
  const bool is_tcp = is_hosts || (application.run.placement == Placement::processes &&
                                   !channel_on_host(application.cluster.channel).is_path);
  if (!is_tcp) return TlsUse::none;
  // All hosts know the address of the first one, and maybe no other. Who reaches that one over loopback is on its
  // machine.
  const bool leaves = is_hosts && !application.hosts.empty() && !is_loopback(application.hosts.front().address);
  if (application.tls.mode == TlsMode::off) return leaves ? TlsUse::off : TlsUse::none;
  if (application.tls.certificate) return TlsUse::certificates;
  return application.tls.mode == TlsMode::on || leaves ? TlsUse::secret : TlsUse::none;
}

std::string tls_text(TlsUse use) {
  switch (use) {
    case TlsUse::none:
      return {};
    case TlsUse::off:
      return "not encrypted: tls.mode is off";
    case TlsUse::secret:
      return "encrypted with a key made of the secret";
    case TlsUse::certificates:
      return "encrypted with the certificates of [tls]";
  }
  return {};
}

std::string meeting_place(const Application& application) {
  if (application.run.placement != Placement::hosts) return {};
  const HostSpec& first = application.hosts.front();
  return (first.address.empty() ? "the address that the launcher gives" : host_port(first)) + " (host '" + first.name +
         "')";
}

std::string shared_cores_text(const Plan& plan, const PlannedWorker& worker, int cores) {
  std::int64_t threads = 0;
  std::size_t workers = 0;
  for (const PlannedWorker& other : plan.workers) {
    if (other.host != worker.host) continue;
    threads += other.torch_threads;
    ++workers;
  }
  if (threads <= cores) return {};
  return count(workers, "worker") + " with " + std::to_string(threads) + " torch threads share " +
         count(static_cast<std::size_t>(cores), "core");
}

std::string render_plan(const Application& application, const Plan& plan) {
  constexpr std::array<std::string_view, 3> kPlacements{"one_process", "processes", "hosts"};
  const std::string meeting = meeting_place(application);
  std::string text = application.run.name + ": seed " + std::to_string(application.run.seed) + ", placement " +
                     std::string(kPlacements[static_cast<std::size_t>(application.run.placement)]) +
                     (meeting.empty() ? "" : ", meeting at " + meeting) +
                     (application.run.deterministic ? ", deterministic, " : ", ") +
                     count(plan.workers.size(), "worker") + " in " +
                     count(static_cast<std::size_t>(plan.processes), "process") + "\n";
  std::vector<std::vector<std::string>> rows{{"id", "worker", "type", "process", "host", "channel", "threads", "uses"}};
  for (const PlannedWorker& worker : plan.workers) {
    std::string uses;
    for (const PlannedUse& use : worker.uses) {
      uses += (uses.empty() ? "" : "; ") + use.name + " = " + list_names(plan, use.workers);
    }
    rows.push_back({std::to_string(worker.id.value), worker.name, worker.type, std::to_string(worker.process),
                    worker.host.empty() ? "here" : worker.host, worker.channel, std::to_string(worker.torch_threads),
                    uses});
  }
  return text + render_table(rows) + policies_text(application);
}

}  // namespace caftan::app
