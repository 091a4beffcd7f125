// Checks what concerns hosts: [hosts.NAME], which workers are where, the secret, the cores.
#include <arpa/inet.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <thread>

#include "application_reader.hpp"
#include "caftan/app/internal/plan.hpp"
#include "caftan/app/internal/secret_file.hpp"
#include "host_keys.hpp"
#include "loopback.hpp"

namespace caftan::app {
namespace {

struct Address {
  std::string host;
  std::optional<std::uint16_t> port;
};

bool is_ipv6(const std::string& text) {
  in6_addr ignored{};
  return inet_pton(AF_INET6, text.c_str(), &ignored) == 1;
}

bool is_host(const std::string& text) {
  in_addr ignored{};
  if (inet_pton(AF_INET, text.c_str(), &ignored) == 1) return true;
  // A text of digits and dots alone is a broken IPv4 address, not a name.
  if (text.find_first_not_of("0123456789.") == std::string::npos) return false;
  constexpr std::size_t kMaxName = 253;  // RFC 1035
  return text.size() <= kMaxName && text.front() != '-' && text.front() != '.' && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
                  c == '_';
         });
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

/// Reads "host", "host:port", "[v6]", "[v6]:port" or a bare v6 address.
std::optional<Address> parse_address(const std::string& text) {
  if (is_ipv6(text)) return Address{text, {}};
  std::string host = text;
  std::optional<std::uint16_t> port;
  if (const std::size_t colon = text.rfind(':'); colon != std::string::npos && !text.ends_with(']')) {
    port = parse_port(std::string_view(text).substr(colon + 1));
    if (!port) return std::nullopt;
    host.resize(colon);
  }
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (!is_ipv6(host)) return std::nullopt;
  } else if (host.empty() || !is_host(host)) {
    return std::nullopt;
  }
  return Address{host, port};
}

/// The place of [hosts.NAME] address.
SettingsPlace address_place(const Reading& reading, const HostSpec& host) {
  const SettingsEntry* entry = reading.root.find("hosts")->value.find(host.name);
  const SettingsEntry* address = entry ? entry->value.find("address") : nullptr;
  return address ? address->value.place : host.place;
}

void read_host(const Reading& reading, const SettingsEntry& entry) {
  std::vector<HostSpec>& hosts = reading.application.hosts;
  if (entry.value.kind != SettingsNode::Kind::table) {
    return reading.diagnostics.error(entry.value.place,
                                     "hosts." + entry.key + " must be a table, is " + entry.value.describe());
  }
  HostKeys keys;
  std::vector<SettingField> fields = bind_settings(keys);
  ReadSettings options;
  options.table = "hosts." + entry.key;
  const std::size_t before = reading.diagnostics.errors();
  read_settings(entry.value, fields, options, reading.diagnostics);
  HostSpec host{.name = entry.key,
                .address = {},
                .port = 0,
                .interface = keys.interface.value_or(""),
                .place = entry.value.place};
  const SettingsEntry* node = entry.value.find("address");
  const LauncherChoice launcher = reading.application.run.launcher;
  if (launcher == LauncherChoice::ssh && keys.interface && !hosts.empty()) {
    reading.diagnostics.error(entry.value.find("interface")->value.place,
                              "interface of another host cannot be looked up with run.launcher = \"ssh\": write the "
                              "address of that network as address");
  }
  const bool is_found_there = keys.interface && !hosts.empty();
  if (!node && !gives_addresses(launcher) && !is_found_there) {
    reading.diagnostics.error(entry.value.place, "missing key 'address' in [hosts." + entry.key + "]");
  }
  if (node && reading.diagnostics.errors() == before) {
    const bool is_first = hosts.empty();
    const std::optional<Address> address = parse_address(*keys.address);
    const std::string is = ", is " + quote_toml(*keys.address);
    if (!address) {
      reading.diagnostics.error(node->value.place,
                                "address must be host:port for the first host, host for the others" + is);
    } else if (is_first && !address->port) {
      reading.diagnostics.error(node->value.place, "address of the first host must be host:port" + is);
    } else if (!is_first && address->port) {
      const HostSpec& first = hosts.front();
      const bool same = address->port == first.port && address->host == first.address;
      reading.diagnostics.error(
          node->value.place,
          same ? "address " + quote_toml(*keys.address) + " is taken by host '" + first.name + "'" +
                     line_text(first.place)
               : "address must be a host without a port: only the first host, '" + first.name + "', has one" + is);
    } else {
      host.address = address->host;
      host.port = address->port.value_or(0);
    }
  }
  hosts.push_back(std::move(host));
}

/// Gives each worker a host of its own, which the launcher starts as one process: the file has no [hosts].
void make_slots(const Reading& reading) {
  Application& application = reading.application;
  for (RoleSpec& role : application.roles) {
    for (int replica = 0; replica < role.keys.replicas; ++replica) {
      HostSpec host{.name = "slot-" + std::to_string(application.hosts.size()),
                    .address = {},
                    .port = 0,
                    .interface = {},
                    .place = {}};
      role.keys.hosts.push_back(host.name);
      application.hosts.push_back(std::move(host));
    }
  }
}

/// Each name in a role's `hosts` must be a host, and each host should have a worker.
void check_role_hosts(const Reading& reading) {
  const Application& application = reading.application;
  std::vector<std::string> names;
  for (const HostSpec& host : application.hosts) names.push_back(host.name);
  std::vector<std::string> busy;
  for (const RoleSpec& role : application.roles) {
    if (role.keys.hosts.empty()) {
      if (!names.empty()) busy.push_back(names.front());
      continue;
    }
    for (std::size_t i = 0; i < role.keys.hosts.size(); ++i) {
      const std::string& name = role.keys.hosts[i];
      if (i < static_cast<std::size_t>(role.keys.replicas)) busy.push_back(name);
      if (std::ranges::find(names, name) != names.end()) continue;
      const SettingsNode& list = reading.root.find("roles")->value.find(role.name)->value.find("hosts")->value;
      reading.diagnostics.error(list.items[i].place, "no host '" + name + "' in [hosts]" + did_you_mean(name, names));
    }
  }
  for (const HostSpec& host : application.hosts) {
    if (std::ranges::find(busy, host.name) != busy.end()) continue;
    if (application.run.placement == Placement::hosts && &host == &application.hosts.front()) {
      reading.diagnostics.error(host.place, "no role runs on host '" + host.name + "', which is the coordinator's");
    } else {
      reading.diagnostics.warning(host.place, "no role runs on host '" + host.name + "'");
    }
  }
}

constexpr const char* kMakeSecret =
    "; make one: (umask 077; openssl rand -hex 32 > cluster.secret), copy it to every host, and name it there";

void check_secret_file(const Reading& reading, const std::filesystem::path& file) {
  const SettingsNode& node = *reading.value("cluster", "secret_file");
  const std::string shown = std::get<std::string>(node.scalar);
  const std::string subject = "secret_file " + quote_toml(shown) + " ";
  // The path as commands here take it: that in a file is relative to the file.
  const std::string make_one =
      "; make one: (umask 077; openssl rand -hex 32 > " + file.string() + "), and copy it to every host";
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) {
    return reading.local_finding(node.place, subject + "does not exist" + make_one);
  }
  if (!S_ISREG(status.st_mode)) return reading.local_finding(node.place, subject + "is not a file");
  if ((status.st_mode & 066) != 0) {
    const bool readable = (status.st_mode & 044) != 0;
    const bool writable = (status.st_mode & 022) != 0;
    return reading.local_finding(node.place, subject + "can be " + (readable ? "read" : "") +
                                                 (readable && writable ? " and " : "") + (writable ? "written" : "") +
                                                 " by others; chmod 600 " + file.string());
  }
  const auto secret = read_secret_file(file);
  if (secret) return;
  const Error& error = secret.error();
  reading.local_finding(node.place, error.code() == Errc::invalid_config ? subject + error.text() + make_one
                                                                         : "secret_file " + error.text());
}

/// Checks a file of [tls], which is on this machine. @param is_secret  others must not read it
void check_tls_file(const Reading& reading, const char* key, const std::optional<std::filesystem::path>& file,
                    bool is_secret) {
  const SettingsNode& node = *reading.value("tls", key);
  const std::string subject = std::string(key) + " " + quote_toml(std::get<std::string>(node.scalar)) + " ";
  struct stat status {};
  if (::stat(file->c_str(), &status) != 0) {
    return reading.local_finding(node.place, subject + "does not exist");
  }
  if (!S_ISREG(status.st_mode)) return reading.local_finding(node.place, subject + "is not a file");
  if (is_secret && (status.st_mode & 066) != 0) {
    reading.local_finding(node.place, subject + "can be read or written by others; chmod 600 " + file->string());
  }
}

/// Checks [tls].
void check_tls(const Reading& reading) {
  const TlsSettings& tls = reading.application.tls;
  const SettingsNode* first = nullptr;
  std::string missing;
  for (const auto& [key, file] : {std::pair("certificate", &tls.certificate), std::pair("key", &tls.key),
                                  std::pair("authority", &tls.authority)}) {
    if (!*file) {
      missing += (missing.empty() ? "" : " and ") + std::string("tls.") + key;
    } else if (!first) {
      first = reading.value("tls", key);
    }
  }
  const TlsUse use = tls_use(reading.application);
  if (first && !missing.empty()) {
    reading.diagnostics.error(first->place, "certificates need certificate, key and authority: add " + missing);
  } else if (first && use != TlsUse::certificates) {
    reading.diagnostics.warning(first->place, tls.mode == TlsMode::off
                                                  ? "the files of [tls] are not read: tls.mode is \"off\""
                                                  : "the files of [tls] are not read: no worker talks over TCP");
  } else if (first && reading.options.requirements) {
    check_tls_file(reading, "certificate", tls.certificate, false);
    check_tls_file(reading, "key", tls.key, true);
    check_tls_file(reading, "authority", tls.authority, false);
  }
  if (use == TlsUse::off) {
    reading.diagnostics.warning(reading.value("tls", "mode")->place,
                                "mode = \"off\": others can read and change all that the hosts send");
  }
}

/// Warns of a key that is given and has no effect with this placement.
void warn_of_unread(const Reading& reading) {
  const Application& application = reading.application;
  const SettingsNode* const channel = reading.value("cluster", "channel");
  if (application.run.placement == Placement::one_process && application.cluster.channel != ChannelChoice::automatic) {
    reading.diagnostics.warning(
        channel->place, "channel = " + quote_toml(std::get<std::string>(channel->scalar)) +
                            " is not used: with run.placement = \"one_process\" workers talk within their process");
  }
  if (application.run.launcher != LauncherChoice::none) {
    reading.diagnostics.warning(reading.value("run", "launcher")->place,
                                "launcher is not read: only run.placement = \"hosts\" has a launcher");
  }
  if (const SettingsNode* const secret = reading.value("cluster", "secret_file")) {
    reading.diagnostics.warning(secret->place,
                                "secret_file is not read: only run.placement = \"hosts\" needs a secret of the file");
  }
}

/// Warns of a key about shared memory that is given while the workers of the run share none.
void warn_of_unshared(const Reading& reading) {
  const Application& application = reading.application;
  const bool shares =
      application.run.placement == Placement::processes && application.cluster.channel == ChannelChoice::shared_memory;
  if (shares) return;
  const auto warn = [&](std::string_view table, std::string_view key) {
    reading.diagnostics.warning(reading.value(table, key)->place,
                                std::string(key) +
                                    " is not read: workers share memory only with run.placement = \"processes\" and "
                                    "cluster.channel = \"shm\"");
  };
  if (application.cluster.shm_ring != ClusterSettings().shm_ring) warn("cluster", "shm_ring");
  if (application.cluster.spin != ClusterSettings().spin) warn("cluster", "spin");
  if (application.limits.shared_memory) warn("limits", "shared_memory");
}

}  // namespace

void read_hosts(const Reading& reading) {
  const SettingsNode* hosts = reading.table("hosts");
  if (hosts) {
    for (const SettingsEntry& entry : hosts->entries) read_host(reading, entry);
  }
  const RunSettings& run = reading.application.run;
  const bool placed =
      std::ranges::any_of(reading.application.roles, [](const RoleSpec& role) { return !role.keys.hosts.empty(); });
  if (!hosts && !placed && run.placement == Placement::hosts && gives_addresses(run.launcher)) make_slots(reading);
  check_role_hosts(reading);
}

void check_placement(const Reading& reading) {
  const Application& application = reading.application;
  warn_of_unshared(reading);
  check_tls(reading);
  if (application.run.placement != Placement::hosts) return warn_of_unread(reading);
  const SettingsPlace place = reading.value("run", "placement")->place;
  const bool secret = application.cluster.secret_file.has_value();
  const bool secret_given = reading.value("cluster", "secret_file") != nullptr;
  if (application.hosts.empty()) {
    reading.diagnostics.error(place, std::string("placement = \"hosts\" needs [hosts.NAME] with an address") +
                                         (secret_given ? "" : " and cluster.secret_file"));
  } else if (!secret_given) {
    const HostSpec& first = application.hosts.front();
    if (first.address.empty() || is_loopback(first.address)) {
      reading.diagnostics.error(place, "placement = \"hosts\" needs cluster.secret_file" + std::string(kMakeSecret));
    } else {
      reading.diagnostics.error(
          address_place(reading, first),
          "host '" + first.name + "' listens beyond loopback, that needs cluster.secret_file" + kMakeSecret);
    }
  }
  const ChannelFacts& chosen = channel_on_host(application.cluster.channel);
  if (application.cluster.channel != ChannelChoice::automatic && chosen.is_path) {
    reading.diagnostics.error(
        reading.value("cluster", "channel")->place,
        "channel = " + quote_toml(chosen.name) + " does not reach other hosts; use \"auto\", \"tcp\" or \"ucx\"");
  }
  if (secret && reading.options.requirements) check_secret_file(reading, *application.cluster.secret_file);
}

/// Reports roles that set different torch_threads although all workers are in one process and share torch's threads.
void check_torch_threads(const Reading& reading) {
  const Application& application = reading.application;
  if (application.run.placement != Placement::one_process || application.roles.empty()) return;
  const RoleSpec& first = application.roles.front();
  for (const RoleSpec& role : application.roles) {
    if (role.keys.torch_threads == first.keys.torch_threads) continue;
    reading.diagnostics.error(
        role.place,
        "torch_threads is " + std::to_string(role.keys.torch_threads) + " in [roles." + role.name + "] and " +
            std::to_string(first.keys.torch_threads) + " in [roles." + first.name +
            "], but with run.placement = \"one_process\" all workers compute with the same threads: set one "
            "number, or run.placement = \"processes\"");
  }
}

/// Reports roles whose `on_loss` changes nothing (RN-18, RN-19).
void check_on_loss(const Reading& reading) {
  const Application& application = reading.application;
  int driving = 0;
  for (const RoleSpec& role : application.roles) driving += role.drives ? role.keys.replicas : 0;
  for (const RoleSpec& role : application.roles) {
    if (role.keys.on_loss != OnLoss::go_on) continue;
    const SettingsPlace place = reading.root.find("roles")->value.find(role.name)->value.find("on_loss")->value.place;
    if (application.run.placement == Placement::one_process) {
      reading.diagnostics.warning(
          place, "on_loss = \"go_on\" is not used: with run.placement = \"one_process\" no worker is lost alone");
    } else if (role.drives && driving == 1) {
      reading.diagnostics.warning(place, "on_loss = \"go_on\" changes nothing: '" + role.worker_name(0) +
                                             "' is the only worker that drives the run, which fails without it");
    }
  }
}

/// Warns of torch threads that the file asks for and this machine has no cores for. Workers of one thread each share
/// cores in most applications, and fewer of them are another application: their logs say so (`shared_cores_text`).
void check_cores(const Reading& reading) {
  const Application& application = reading.application;
  if (application.run.placement == Placement::hosts) return;
  const int cores = reading.options.cores > 0 ? reading.options.cores
                                              : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  std::int64_t threads = 0;
  std::int64_t workers = 0;
  const auto wants = [](const RoleSpec& role) { return std::int64_t{role.keys.replicas} * role.keys.torch_threads; };
  // The role with the most threads among the roles with several torch threads a worker.
  const RoleSpec* largest = nullptr;
  for (const RoleSpec& role : application.roles) {
    threads += wants(role);
    workers += role.keys.replicas;
    if (role.keys.torch_threads > 1 && (!largest || wants(role) > wants(*largest))) largest = &role;
  }
  if (!largest || threads <= cores) return;
  reading.diagnostics.warning(largest->place, std::to_string(workers) + " workers x torch_threads are " +
                                                  std::to_string(threads) + " threads on " + std::to_string(cores) +
                                                  (cores == 1 ? " core" : " cores") +
                                                  "; set torch_threads = 1 in [roles." + largest->name + "]");
}

}  // namespace caftan::app
