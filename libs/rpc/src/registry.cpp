#include "caftan/rpc/registry.hpp"

#include <algorithm>
#include <utility>

#include "caftan/base/fnv1a.hpp"
#include "caftan/base/internal/name_pattern.hpp"
#include "caftan/rpc/internal/batches.hpp"
#include "caftan/rpc/internal/script.hpp"
#include "script_key.hpp"

namespace caftan {

namespace rpc {

std::string constructor_name(std::string_view class_name, std::string_view signature, std::string_view type) {
  return std::string(class_name) + std::string(signature.substr(type.size()));
}

}  // namespace rpc

void Registry::check_name(std::string_view name) {
  constexpr std::size_t kLongest = 128;
  const bool printable = std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 127; });
  if (name.empty() || name.size() > kLongest || !printable || name.find('(') != std::string_view::npos) {
    problems_.push_back("'" + std::string(name) + "' is no name: 1 to 128 printable characters without spaces or '('");
  }
}

void Registry::set_batch(rpc::FunctionEntry& entry, BatchLimits limits,
                         void (*invoke_batch)(rpc::Caller&, rpc::BatchedRequests&)) {
  entry.batch = limits;
  entry.invoke_batch = invoke_batch;
  for (std::string& problem : rpc::wrong_limits(entry.name, limits)) problems_.push_back(std::move(problem));
}

void Registry::set_tag(const char* tag, const rpc::FunctionEntry& entry) {
  if (!frozen_) by_tag_.try_emplace(tag, &entry);
}

void Registry::set_class(const char* tag, std::string_view name, bool is_role) {
  if (!frozen_) classes_.try_emplace(tag, ClassEntry{std::string(name), is_role});
}

rpc::FunctionEntry& Registry::insert(std::string name, std::string_view signature, std::uint64_t signature_hash,
                                     rpc::FunctionEntry::Kind kind) {
  if (kind == rpc::FunctionEntry::Kind::function) check_name(name);
  auto entry = std::make_shared<rpc::FunctionEntry>();
  entry->name = std::move(name);
  entry->kind = kind;
  entry->key = {entry->name, signature, base::fnv1a(entry->name), signature_hash};
  rpc::FunctionEntry& added = *entry;
  if (frozen_) {
    problems_.push_back("'" + added.name + "' was registered after the worker had started");
    refused_.push_back(std::move(entry));
    return added;
  }
  const auto [place, is_new] = by_name_.try_emplace(added.key.name_hash, std::move(entry));
  if (is_new) return added;
  problems_.push_back(
      "'" + added.name + "' is registered twice" +
      (place->second->name == added.name ? "" : " (its hash is that of '" + place->second->name + "')"));
  refused_.push_back(std::move(entry));
  return added;
}

void Registry::extend(std::string_view name, std::shared_ptr<const rpc::Extension> code) {
  check_name(name);
  if (!code) problems_.push_back("'" + std::string(name) + "' was registered without its code");
  if (frozen_) {
    problems_.push_back("'" + std::string(name) + "' was registered after the worker had started");
  } else if (!extensions_.emplace(name, std::move(code)).second) {
    problems_.push_back("'" + std::string(name) + "' is registered twice");
  }
}

void Registry::open(std::string_view name) {
  if (frozen_) {
    problems_.push_back("'" + std::string(name) + "' was opened after the worker had started");
  } else {
    open_.emplace_back(name);
  }
}

void Registry::permit(Permissions permissions) {
  if (frozen_) {
    problems_.emplace_back("permissions were set after the worker had started");
  } else {
    permissions_ = std::make_shared<const Permissions>(std::move(permissions));
  }
}

bool Registry::is_open(std::string_view name) const noexcept { return base::matches_any(open_, name); }

void Registry::add_script(std::string_view name, const std::filesystem::path& file) {
  check_name(name);
  const auto script = rpc::Script::load(file, rpc::ScriptUse::functions);
  if (!script) {
    problems_.push_back("script '" + std::string(name) + "', " + file.string() + ": " + script.error().text());
    return;
  }
  for (std::size_t i = 0; i < (*script)->methods().size(); ++i) {
    auto& entry =
        insert<rpc::ScriptTypes>(std::string(name) + "." + (*script)->methods()[i], rpc::FunctionEntry::Kind::function);
    entry.invoke = &rpc::invoke_script;
    entry.script = *script;
    entry.script_method = i;
  }
}

void Registry::add_script_module(std::string_view name, const std::filesystem::path& file) {
  check_name(name);
  const std::string text = "module '" + std::string(name) + "', " + file.string();
  const auto script = rpc::Script::load(file, rpc::ScriptUse::module);
  if (!script) {
    problems_.push_back(text + ": " + script.error().text());
  } else if (frozen_) {
    problems_.push_back(text + " was registered after the worker had started");
  } else if (!script_modules_.emplace(name, file).second) {
    problems_.push_back(text + " is registered twice");
  }
}

Result<void> Registry::freeze() {
  frozen_ = true;
  for (const std::string& open : open_) {
    const bool is_known =
        std::ranges::any_of(by_name_, [&open](const auto& at) { return base::matches(open, at.second->name); });
    if (!is_known) problems_.push_back("'" + open + "' is open, but nothing of that name is registered");
  }
  if (problems_.empty()) return {};
  std::string text;
  for (const std::string& problem : problems_) text += (text.empty() ? "" : "; ") + problem;
  return Error(Errc::invalid_config, text);
}

const rpc::FunctionEntry* Registry::find(std::uint64_t name_hash, std::string_view name) const noexcept {
  const auto found = by_name_.find(name_hash);
  return found != by_name_.end() && found->second->name == name ? found->second.get() : nullptr;
}

const rpc::FunctionEntry* Registry::find(const char* tag) const noexcept {
  const auto found = by_tag_.find(tag);
  return found != by_tag_.end() ? found->second : nullptr;
}

std::optional<std::string_view> Registry::class_name(const char* tag) const noexcept {
  const auto found = classes_.find(tag);
  if (found == classes_.end()) return std::nullopt;
  return found->second.name;
}

bool Registry::is_role(const char* tag) const noexcept {
  const auto found = classes_.find(tag);
  return found != classes_.end() && found->second.is_role;
}

std::shared_ptr<const rpc::Extension> Registry::extension(std::string_view name) const noexcept {
  const auto found = extensions_.find(name);
  return found != extensions_.end() ? found->second : nullptr;
}

const std::filesystem::path* Registry::script_module(std::string_view name) const noexcept {
  const auto found = script_modules_.find(name);
  return found != script_modules_.end() ? &found->second : nullptr;
}

std::vector<std::string_view> Registry::script_modules() const {
  std::vector<std::string_view> names;
  for (const auto& [name, file] : script_modules_) names.push_back(name);
  return names;
}

std::vector<std::string_view> Registry::extensions() const {
  std::vector<std::string_view> names;
  for (const auto& [name, code] : extensions_) names.push_back(name);
  return names;
}

std::vector<const rpc::FunctionEntry*> Registry::entries() const {
  std::vector<const rpc::FunctionEntry*> entries;
  for (const auto& [hash, entry] : by_name_) entries.push_back(entry.get());
  std::ranges::sort(entries, {}, [](const rpc::FunctionEntry* entry) -> std::string_view { return entry->name; });
  return entries;
}

std::vector<std::string_view> Registry::names() const {
  std::vector<std::string_view> names;
  for (const auto& [hash, entry] : by_name_) names.push_back(entry->name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace caftan
