/// What an application file says, after it was checked: every key of the schema with its value. Each struct declares
/// its keys once; docs/configuration.md is made from that. Read one with `load_application` (load.hpp).
#pragma once

#include <any>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "caftan/app/internal/channel_choice.hpp"
#include "caftan/base/clock.hpp"
#include "caftan/base/settings.hpp"
#include "caftan/base/settings_diagnostics.hpp"

namespace caftan::app {

/// The version of the schema that this library reads: the key `caftan`.
inline constexpr int kSchemaVersion = 1;

/// Which workers share a process: all, none, or as [hosts] says.
enum class Placement { one_process, processes, hosts };
/// What starts the processes of `placement = "hosts"`; `automatic` is the one of variables, mpi and slurm that has
/// started this process.
enum class LauncherChoice { none, automatic, variables, mpi, slurm, ssh };
/// Returns whether processes that the launcher has started learn from it where the first host is.
constexpr bool gives_addresses(LauncherChoice launcher) {
  return launcher != LauncherChoice::none && launcher != LauncherChoice::ssh;
}
/// What a run does when a worker of a role is lost.
enum class OnLoss { fail, go_on };
/// What a run shows while it lasts; `automatic` is a live line on a terminal, else plain lines.
enum class Progress { automatic, live, plain, none };

/// Where connections over TCP are encrypted: `automatic` between hosts, and everywhere with a certificate.
enum class TlsMode { automatic, on, off };

/// [run]
struct RunSettings {
  std::string name;
  std::int64_t seed = 1;
  Placement placement = Placement::processes;
  LauncherChoice launcher = LauncherChoice::none;
  bool deterministic = false;
  bool own_cores = true;
  base::Duration start_timeout = std::chrono::seconds(30);
  base::Duration stop_timeout = std::chrono::seconds(2);
  std::optional<base::Duration> wall;
  std::optional<std::string> fingerprint;

  static void settings(auto& s, RunSettings& c) {
    using namespace std::chrono_literals;
    s("name", c.name, "a-z 0-9 -, 1..64 characters, no - in front").default_text("the file's name");
    s("seed", c.seed, "each (role, replica, purpose) draws its own stream from it")
        .range(0, std::numeric_limits<std::int64_t>::max());
    s("placement", c.placement, "who shares a process")
        .one_of({{"one_process"}, {"processes", "one per replica"}, {"hosts", "see [hosts]"}});
    s("launcher", c.launcher, "with placement = \"hosts\": what starts the processes")
        .one_of({{"none", "a command for each host"},
                 {"auto", "mpi, slurm or variables, as found"},
                 {"variables", "RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT"},
                 {"mpi"},
                 {"slurm"},
                 {"ssh", "this command, on the first host"}});
    s("deterministic", c.deterministic, "the same fingerprint in any placement, slower");
    s("own_cores", c.own_cores,
      "the cores of a host are divided between the partitions of a simulation, if there are enough; false: the system "
      "moves them");
    s("start_timeout", c.start_timeout,
      "time for all workers to connect, and again for their constructors; a late one fails the run by name")
        .range(1s, 1h);
    s("stop_timeout", c.stop_timeout, "after Ctrl-C, before the rest is killed").range(100ms, 10min);
    s("wall", c.wall, "a run that takes longer fails").at_least(1s);
    s("fingerprint", c.fingerprint, "a run with another fingerprint, or without one, fails").default_text("none");
  }
};

/// [cluster]
struct ClusterSettings {
  ChannelChoice channel = ChannelChoice::automatic;
  ByteSize shm_ring = ByteSize::kib(64);
  std::string spin = "auto";                              ///< see `spin_choice`
  base::Duration rpc_timeout = std::chrono::seconds(60);  ///< 0 = none
  base::Duration heartbeat = std::chrono::seconds(1);
  std::optional<std::filesystem::path> secret_file;  ///< absolute

  static void settings(auto& s, ClusterSettings& c) {
    using namespace std::chrono_literals;
    s("channel", c.channel, "how workers talk; the choice is in the log").one_of(channel_choices());
    s("shm_ring", c.shm_ring, "of channel shm: memory of each direction between two workers; whole pages are taken")
        .range(ByteSize::kib(4), ByteSize::mib(16));
    s("spin", c.spin,
      "of channel shm: how long a thread that waits looks for bytes before it sleeps: auto (as long as it paid lately, "
      "at "
      "most 50us), off, or a duration of 1us..1ms; off where workers have less than a core each");
    s("rpc_timeout", c.rpc_timeout, "of a call that names none; 0s = none").at_least(0s);
    s("heartbeat", c.heartbeat, "a peer or process that shows no life for 5 of them is lost").range(100ms, 1min);
    s("secret_file", c.secret_file,
      "relative to the file, mode 0600, 16..4096 bytes; required with placement = \"hosts\"")
        .default_text("a random secret per run");
  }
};

/// [tls]
struct TlsSettings {
  TlsMode mode = TlsMode::automatic;
  std::optional<std::filesystem::path> certificate;  ///< this and the next two: absolute
  std::optional<std::filesystem::path> key;
  std::optional<std::filesystem::path> authority;

  static void settings(auto& s, TlsSettings& c) {
    s("mode", c.mode, "encryption of connections over TCP; off between hosts lets others read and change all")
        .one_of({{"auto", "between hosts, and with a certificate within one host, too"}, {"on"}, {"off"}});
    s("certificate", c.certificate,
      "PEM, relative to the file: of this host, for its name or address in [hosts], or of one worker")
        .default_text("none: the key is made of the secret");
    s("key", c.key, "of the certificate: PEM without a password, mode 0600").default_text("none");
    s("authority", c.authority, "PEM: what has signed the certificates of all; `caftan certs` makes one")
        .default_text("none");
  }
};

/// [limits]
struct LimitsSettings {
  ByteSize message = ByteSize::mib(64);
  ByteSize tensors = ByteSize::gib(16);
  ByteSize send_queue = ByteSize::mib(256);
  std::int64_t pending_calls = 10000;
  std::optional<ByteSize> shared_memory;  ///< none: an eighth of the machine's memory over its workers

  static void settings(auto& s, LimitsSettings& c) {
    s("message", c.message, "bytes of one message without its tensors; a larger one is not sent, but `limit_exceeded`")
        .range(ByteSize::kib(1), ByteSize::mib(4095));  // a frame holds the number of these bytes in 32 bits
    s("tensors", c.tensors, "bytes of all tensors of one message").at_least(ByteSize::kib(1));
    s("send_queue", c.send_queue, "bytes of requests outstanding per peer; then callers wait")
        .at_least(ByteSize::kib(1));
    s("pending_calls", c.pending_calls, "requests outstanding per peer; then callers wait").at_least(1);
    s("shared_memory", c.shared_memory,
      "of channel shm: memory of a worker that others of its host map, too; rings take a quarter of it, and sessions "
      "beyond that stay on sockets")
        .at_least(ByteSize::kib(0))
        .default_text("an eighth of the memory over the workers of the host, at most 1GiB");
  }
};

/// [output]
struct OutputSettings {
  std::string dir = "runs";
  Progress progress = Progress::automatic;
  base::Duration every = std::chrono::seconds(1);

  static void settings(auto& s, OutputSettings& c) {
    using namespace std::chrono_literals;
    s("dir", c.dir, "relative to where the command is started; run = DIR/NAME-DATE-N");
    s("progress", c.progress, "what is shown while it runs")
        .one_of({{"auto", "live line on a terminal, else plain lines"}, {"live"}, {"plain"}, {"none"}});
    s("every", c.every, "a metrics row and, if plain, a line").at_least(100ms);
  }
};

/// What the workers of a role may do at those of others where no rule of [permissions.NAME] says it.
enum class PermissionDefault { uses, open };

/// The keys of [permissions] beside its tables, one for each role that has rules of its own.
struct PermissionSettings {
  PermissionDefault otherwise = PermissionDefault::uses;

  static void settings(auto& s, PermissionSettings& c) {
    s("default", c.otherwise, "what a role may do where no rule of its own says it")
        .one_of({{"uses", "what it uses, open functions, and objects to which it was handed a reference"},
                 {"open", "everything"}});
  }
};

/// The keys of [permissions.NAME]. A key that is left out leaves the default in place.
struct RolePermissionKeys {
  std::vector<std::string> functions;
  std::vector<std::string> roles;
  std::vector<std::string> operators;
  std::vector<std::string> references;

  static void settings(auto& s, RolePermissionKeys& c) {
    s("functions", c.functions,
      "functions, constructors and methods that the role may call, by their registered names, or the beginning of "
      "several and a *")
        .default_text("`default`");
    s("roles", c.roles, "roles whose workers it may look up, and whose methods it may call").default_text("`default`");
    s("operators", c.operators, "roles at whose workers it may have operators run").default_text("`default`");
    s("references", c.references, "roles to whose objects it may refer").default_text("all");
  }
};

/// [permissions.NAME]: what the workers of the role NAME may do at those of others.
struct RolePermissions {
  /// One rule: a key that the file gives.
  struct Rule {
    std::vector<std::string> names;
    SettingsPlace place;
  };
  std::string role{};
  std::optional<Rule> functions{};
  std::optional<Rule> roles{};
  std::optional<Rule> operators{};
  std::optional<Rule> references{};
  SettingsPlace place{};
};

/// The keys of [roles.NAME] beside its tables `config`, `modules`, `per_replica`, `scripts` and `uses`.
struct RoleKeys {
  std::string type;
  int replicas = 1;
  int torch_threads = 1;
  OnLoss on_loss = OnLoss::fail;
  std::vector<std::string> hosts;

  static void settings(auto& s, RoleKeys& c) {
    s("type", c.type, "a registered role type; `caftan help` lists them").required();
    s("replicas", c.replicas, "workers NAME-0, NAME-1, ...; without this key one worker NAME").range(1, 1024);
    s("torch_threads", c.torch_threads,
      "intra-op threads of each worker; with `run.placement = \"one_process\"` all roles have the same number")
        .range(1, 1024);
    s("on_loss", c.on_loss, "what the run does when a worker of the role dies, freezes or is cut off")
        .one_of({{"fail", "it ends"}, {"go_on", "without that worker, as long as one drives"}});
    s("hosts", c.hosts, "only read with placement = \"hosts\"; replicas go round the list")
        .default_text("the first host");
  }
};

/// [roles.NAME]
struct RoleSpec {
  /// One entry of [roles.NAME.uses].
  struct Use {
    std::string name;                ///< the type's name for it
    std::vector<std::string> roles;  ///< names of existing roles, one at least, each once
    SettingsPlace place;
  };
  /// One entry of [roles.NAME.scripts], a TorchScript file whose methods the role's workers let peers call, or of
  /// [roles.NAME.modules], one of which peers make modules there.
  struct Script {
    std::string name;            ///< peers call "NAME.METHOD", or make a module of NAME
    std::filesystem::path file;  ///< absolute
    SettingsPlace place;
  };
  std::string name;
  RoleKeys keys;
  bool has_replicas = false;  ///< the file gives `replicas`: workers are numbered, also a single one
  bool drives = false;
  bool own_cores = false;           ///< by its type, not by `run.own_cores`
  std::any config;                  ///< the type's Config
  std::map<int, std::any> configs;  ///< by replica: the config of each that has one of its own
  std::vector<Script> scripts;      ///< in the order of the file
  std::vector<Script> modules;      ///< in the order of the file
  std::vector<Use> uses;            ///< in the order the type declares them
  std::vector<std::string> notes;   ///< what the role type says about the config, for people who read the resolved file
  SettingsPlace place;

  /// Returns the config of a replica: its own where it has one, else that of the role.
  const std::any& config_of(int replica) const {
    const auto own = configs.find(replica);
    return own == configs.end() ? config : own->second;
  }
  /// Returns "observer-2", or "agent" for a role without `replicas`.
  std::string worker_name(int replica) const { return has_replicas ? name + "-" + std::to_string(replica) : name; }
};

/// [hosts.NAME]
struct HostSpec {
  std::string name;
  std::string address;     ///< a host name or IP address, without brackets; empty: the launcher gives it
  std::uint16_t port = 0;  ///< only of the first host, that of the coordinator
  std::string interface;   ///< whose address the workers of the host listen at; empty: at `address`
  SettingsPlace place;
};

/// An application file that was read and checked, with all defaults and overrides applied.
struct Application {
  std::filesystem::path file;  ///< absolute
  RunSettings run;
  std::vector<RoleSpec> roles;  ///< in the order of the file: worker numbers follow it
  ClusterSettings cluster;
  std::vector<HostSpec> hosts;  ///< in the order of the file
  PermissionSettings permissions;
  std::vector<RolePermissions> role_permissions;  ///< in the order of the file
  TlsSettings tls;
  LimitsSettings limits;
  OutputSettings output;

  /// Returns the role of that name, or null.
  const RoleSpec* find_role(std::string_view name) const {
    for (const RoleSpec& role : roles) {
      if (role.name == name) return &role;
    }
    return nullptr;
  }
  /// Returns the rules of the role of that name, or null if it has none.
  const RolePermissions* find_permissions(std::string_view role) const {
    for (const RolePermissions& rules : role_permissions) {
      if (rules.role == role) return &rules;
    }
    return nullptr;
  }
};

}  // namespace caftan::app
