#include "caftan/app/internal/settings_digest.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <sstream>

#include "caftan/base/fnv1a.hpp"
#include "caftan/base/settings_io.hpp"

namespace caftan::app {
namespace {

constexpr std::size_t kMostBytes = 255;

/// FNV-1a, folded to 32 bits: it has to notice mistakes, not to resist attacks.
std::string digest(std::string_view text) {
  const std::uint64_t hash = base::fnv1a(text);
  std::array<char, 9> hex{};
  std::snprintf(hex.data(), hex.size(), "%08x", static_cast<unsigned>(hash ^ (hash >> 32)));
  return hex.data();
}

/// Removes the fields that hold paths: the same file may lie elsewhere on another host.
void leave_out_paths(std::vector<SettingField>& fields) {  // NOLINT(misc-no-recursion)
  std::erase_if(fields, [](const SettingField& field) { return field.kind == SettingKind::path; });
  for (SettingField& field : fields) leave_out_paths(field.fields);
}

std::string shared_text(std::vector<SettingField> fields) {
  leave_out_paths(fields);
  return dump_settings(fields, "");
}

std::string shared_role_text(const RoleSpec& role, const RoleType& type) {
  RoleKeys keys = role.keys;
  std::any config = role.config;
  std::string text = shared_text(bind_settings(keys)) + (role.has_replicas ? "numbered\n" : "") +
                     shared_text(type.config.bind(config));
  for (const auto& [replica, own] : role.configs) {
    config = own;
    text += std::to_string(replica) + "\n" + shared_text(type.config.bind(config));
  }
  for (const RoleSpec::Script& script : role.scripts) text += "script " + script.name + "\n";
  for (const RoleSpec::Script& module : role.modules) text += "module " + module.name + "\n";
  for (const RoleSpec::Use& use : role.uses) {
    for (const std::string& used : use.roles) text += use.name + "=" + used + "\n";
  }
  return text;
}

/// Empty where the file has no permissions: [permissions] with nothing but the default means the same as no table.
std::string shared_permissions_text(const Application& application) {
  PermissionSettings otherwise = application.permissions;
  std::string text = otherwise.otherwise == PermissionDefault::uses ? "" : shared_text(bind_settings(otherwise));
  for (const RolePermissions& rules : application.role_permissions) {
    text += rules.role + "\n";
    for (const auto* rule : {&rules.functions, &rules.roles, &rules.operators, &rules.references}) {
      for (const std::string& name : *rule ? (*rule)->names : std::vector<std::string>()) text += name + " ";
      text += *rule ? "\n" : "-\n";
    }
  }
  return text;
}

std::map<std::string, std::string> words_of(std::string_view digests) {
  std::map<std::string, std::string> words;
  std::istringstream stream{std::string(digests)};
  for (std::string word; stream >> word;) {
    const std::size_t equals = word.find('=');
    words[word.substr(0, equals)] = equals == std::string::npos ? std::string() : word.substr(equals + 1);
  }
  return words;
}

}  // namespace

std::string settings_digest(const Application& application, const RoleTypes& types) {
  RunSettings run = application.run;
  std::vector<SettingField> run_fields = bind_settings(run);
  std::erase_if(run_fields, [](const SettingField& field) {
    return field.name == "own_cores" || field.name == "start_timeout" || field.name == "stop_timeout";
  });
  ClusterSettings cluster = application.cluster;
  LimitsSettings limits = application.limits;
  std::string hosts;
  for (const HostSpec& host : application.hosts) hosts += host.name + "\n";
  const std::string permissions = shared_permissions_text(application);
  const std::string common = "run=" + digest(shared_text(std::move(run_fields))) +
                             " cluster=" + digest(shared_text(bind_settings(cluster))) +
                             " limits=" + digest(shared_text(bind_settings(limits))) + " hosts=" + digest(hosts) +
                             (permissions.empty() ? "" : " permissions=" + digest(permissions));
  std::string each;
  std::string all;
  std::size_t position = 0;  // the workers are numbered in the order of the roles, so the digest covers that order
  for (const RoleSpec& role : application.roles) {
    const std::string text = std::to_string(position++) + "\n" + shared_role_text(role, *types.find(role.keys.type));
    each += " roles." + role.name + "=" + digest(text);
    all += role.name + "\n" + text;
  }
  if (common.size() + each.size() <= kMostBytes) return common + each;
  return common + " roles=" + digest(all);
}

std::vector<std::string> differing_tables(std::string_view one, std::string_view other) {
  const auto first = words_of(one);
  const auto second = words_of(other);
  std::vector<std::string> tables;
  const auto is_list = [](const auto& words) { return words.contains("roles"); };
  if (is_list(first) != is_list(second)) tables.emplace_back("roles");
  for (const auto& [table, value] : first) {
    const auto found = second.find(table);
    const bool elsewhere = found == second.end() && is_list(first) != is_list(second);
    if (!elsewhere && (found == second.end() || found->second != value)) tables.push_back(table);
  }
  for (const auto& [table, value] : second) {
    if (!first.contains(table) && is_list(first) == is_list(second)) tables.push_back(table);
  }
  return tables;
}

Result<void> check_same_settings(const WorkerSettings& self, const WorkerSettings& peer) {
  if (self.digest.empty() || peer.digest.empty() || self.digest == peer.digest) return {};
  std::string tables;
  for (const std::string& table : differing_tables(self.digest, peer.digest)) {
    tables += (tables.empty() ? "[" : ", [") + table + "]";
  }
  // The tables come first: only the beginning of the text is sent to the peer (HS-7).
  return Error(Errc::invalid_config,
               "other settings" + (tables.empty() ? "" : " in " + tables) + ": worker '" + std::string(peer.worker) +
                   "' was started from another file or with other overrides than '" + std::string(self.worker) + "'");
}

}  // namespace caftan::app
