#include "caftan/app/internal/reference.hpp"

#include <any>

#include "caftan/app/internal/application.hpp"
#include "caftan/base/settings_io.hpp"
#include "host_keys.hpp"
#include "use_text.hpp"

namespace caftan::app {
namespace {

template <class Settings>
std::string section(const std::string& heading, const std::string& text) {
  Settings settings;
  return "\n## " + heading + "\n\n" + text + (text.empty() ? "" : "\n\n") +
         markdown_settings(bind_settings(settings), "");
}

std::string role_type_section(const RoleType& type) {
  std::string text = "\n### " + type.name + "\n\n";
  if (!type.doc.empty()) text += type.doc + ".\n\n";
  if (type.drives) text += "Drives the run: it ends when all roles that drive have returned.\n\n";
  std::any config = type.config.make();
  const std::vector<SettingField> fields = type.config.bind(config);
  text += fields.empty() ? "No config.\n" : "`[roles.NAME.config]`\n\n" + markdown_settings(fields, "");
  if (!type.uses.empty()) text += "\n`[roles.NAME.uses]`\n\n| key | replicas of | number |\n|---|---|---|\n";
  for (const RoleUse& use : type.uses) {
    text += "| `" + use.name + "` | `" + use.role_type + "` | " + count_text(use.min, use.max) + " |\n";
  }
  return text;
}

}  // namespace

std::string reference_page(const RoleTypes& types) {
  std::string page =
      "# The application file\n\n"
      "<!-- Generated from the declarations in libs/app and in the role types. A test compares this page with them. "
      "-->\n\n"
      "One TOML file describes a whole application. `caftan check FILE` finds every error in it without starting\n"
      "anything, `caftan plan FILE` shows who runs where, `key=value` after the file overrides a key\n"
      "(`roles.observer.replicas=4`). A table after `=` sets the keys that it names and leaves the others of the file\n"
      "(`roles.observer={replicas=4}` is the same); a list replaces the whole list. An unknown key is an error at "
      "every level.\n\n"
      "Durations are strings such as `\"250ms\"`, `\"2s\"`, `\"10min\"`, `\"1h\"` (ns, us, ms, s, min, h); sizes such "
      "as\n"
      "`\"64MiB\"` (B, KiB, MiB, GiB, TiB). Paths are relative to the file, except `output.dir`; in those of a\n"
      "role links are followed when the file is read. Ranges include their ends unless `<` or `>` says otherwise.\n\n"
      "`caftan = " +
      std::to_string(kSchemaVersion) + "` is required: the version of this schema.\n";
  page += section<RunSettings>("[run]", "");
  page +=
      section<RoleKeys>("[roles.NAME]",
                        "One table per role; its name is the worker's name, or with `replicas` its beginning. Beside "
                        "these keys there are\nthe tables `config` (owned by the role type, below), `per_replica`, "
                        "`scripts`, `modules` and `uses` (the type's name for\nothers = a role's name, or a list of "
                        "names: all their replicas, in that order). `[roles.NAME.per_replica.2]` has keys\nof `config` "
                        "that replace those of all for replica 2.\n\n"
                        "`[roles.NAME.scripts]` and `[roles.NAME.modules]` have a TorchScript file for each name "
                        "(`policy = \"policy.pt\"`),\nrelative to the file. The role's workers let peers call each "
                        "method of a script (`policy.METHOD`), or make modules\nof the file. `check` finds files that "
                        "are none, or that call what they may not.");
  page += section<ClusterSettings>("[cluster]", "");
  page += section<HostKeys>(
      "[hosts.NAME]",
      "Read with `placement = \"hosts\"`, checked always. The first host in the file is that of the coordinator.");
  page += section<PermissionSettings>(
      "[permissions]",
      "What the workers of a role may do at those of other roles; everything at themselves. The rules that decide, and "
      "what\n`check` finds: docs/protocols/permissions.md.");
  page += section<RolePermissionKeys>("[permissions.NAME]",
                                      "One table per role that has rules of its own, by the role's name. A key that is "
                                      "there replaces the default: what "
                                      "it does\nnot name is refused with `not_permitted`, and `[]` names nothing.");
  page += section<TlsSettings>("[tls]",
                               "How TCP connections are encrypted: with certificates, or else with a key that is made "
                               "of `cluster.secret_file`.");
  page += section<LimitsSettings>("[limits]", "");
  page += section<OutputSettings>("[output]", "");
  if (!types.all().empty()) page += "\n## Role types\n";
  for (const std::string& name : types.names()) page += role_type_section(*types.find(name));
  return page;
}

}  // namespace caftan::app
