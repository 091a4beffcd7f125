// Methods of scripts as functions that peers call: calling and serving them.
#include <algorithm>
#include <string>
#include <vector>

#include "caftan/rpc/call.hpp"
#include "caftan/rpc/internal/script.hpp"
#include "caftan/rpc/registry.hpp"
#include "script_key.hpp"

namespace caftan::rpc {

namespace {

/// Fills and packs a request. Errors: as fill_request; bad_arguments (this worker has a function of that name),
/// unsupported.
Result<void> fill_script_request(OutRequest& request, const CallTarget& target, wire::FrameKind kind,
                                 std::string_view function, const std::vector<OperatorArgument>& arguments) {
  request.what_owner = std::make_shared<const std::string>(function);
  const FunctionKey key = script_key(*request.what_owner);
  if (const auto known = check_key(target, key); !known) return known.error();
  if (Result<void> filled = fill_request(request, target, kind, &key, *request.what_owner); !filled) return filled;
  return pack_arguments(ScriptTypes::Wire{}, request, arguments);
}

}  // namespace

void invoke_script(Invocation& in) {
  using Arguments = ScriptTypes::Split;
  const FunctionEntry& entry = *in.entry;
  const auto run = [&entry](const std::vector<OperatorArgument>& arguments) {
    return entry.script->run(entry.script_method, entry.name, arguments);
  };
  if (!in.completion.creates()) return invoke<Arguments>(in, run);
  invoke<Arguments>(in, [&](const std::vector<OperatorArgument>& arguments) {
    return single_tensor(run(arguments), entry.name, "rpc_script_async");
  });
}

FunctionKey script_key(std::string_view name) {
  return {name, ScriptTypes::signature(), base::fnv1a(name), ScriptTypes::signature_hash()};
}

Error no_script(const Registry& registry, std::string_view name) {
  const std::string script(name.substr(0, name.find('.')));
  std::string known;
  for (const std::string_view other : registry.names()) {
    const FunctionEntry* const entry = registry.find(base::fnv1a(other), other);
    if (entry->script) known += (known.empty() ? "; it serves: " : ", ") + std::string(other);
  }
  return Error(Errc::unknown_function, "this worker serves no script with the method \"" + std::string(name) +
                                           "\": [roles.NAME.scripts] " + script +
                                           " = \"FILE.pt\" in the application file, or registry.add_script(\"" +
                                           script + "\", \"FILE.pt\") at the callee, would serve it" + known);
}

Future<OperatorValues> start_script(const CallTarget& target, std::string_view function,
                                    const std::vector<OperatorArgument>& arguments) {
  OutRequest request;
  const Result<void> done = fill_script_request(request, target, wire::FrameKind::call, function, arguments);
  if (!done) return make_ready_future<OperatorValues>(done.error());
  return start_call<OperatorValues>(target, std::move(request));
}

Result<std::shared_ptr<RRefHandle>> start_script_creation(const CallTarget& target, std::string_view function,
                                                          const std::vector<OperatorArgument>& arguments) {
  OutRequest request;
  const Result<void> done = fill_script_request(request, target, wire::FrameKind::create, function, arguments);
  if (!done) return done.error();
  return send_creation(target, std::move(request), type_key<at::Tensor>());
}

}  // namespace caftan::rpc
