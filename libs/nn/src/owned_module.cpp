#include "caftan/nn/internal/owned_module.hpp"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/Device.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "caftan/tensor/internal/torch_errors.hpp"

namespace caftan::nn {
namespace {

/// Runs the module's own code and work on its tensors.
template <class Work>
auto guarded(Work&& work) -> decltype(work()) {
  return tensor::catch_torch(Errc::remote_exception, std::forward<Work>(work));
}

Result<void> check_writable(const StateDict& state) {
  for (const NamedTensor& named : state) {
    const bool shared = at::has_internal_overlap(named.tensor) == at::MemOverlap::Yes;
    if (!shared && !named.tensor.is_inference()) continue;
    return Error(Errc::unsupported,
                 "the tensor '" + named.name + "' cannot be written: " +
                     (shared ? "one element of memory stands for several of it" : "it was made in inference mode"));
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<OwnedModule>> OwnedModule::make(std::shared_ptr<rpc::HostedObject> object, CallSite site) {
  ServedModule* const served = object->as<ServedModule>();
  if (!served) {
    return Error(Errc::wrong_type, "the value is a " + std::string(object->type().key.name) + ", not a module");
  }
  if (!served->claim()) return Error(Errc::bad_arguments, "this module has its actor already");
  return std::shared_ptr<OwnedModule>(new OwnedModule(std::move(object), std::move(site)));
}

ModuleAttempt::ModuleAttempt(std::shared_ptr<ModuleRequest> request, base::TimePoint now)
    : request_(std::move(request)) {
  const base::Duration wait = std::max(request_->wait().value_or(base::Duration::zero()), base::Duration::zero());
  until_ = wait >= base::kNever - now ? base::kNever : now + wait;
}

void ModuleAttempt::run(OwnedModule& module, bool has_open_context, base::TimePoint now) {
  if (!request_->wait() || !has_open_context) {
    request_->run(module);
  } else if (now < until_) {
    return;
  } else {
    request_->fail(Error(Errc::module_busy,
                         "an autograd context in which a method of this module was called is still open; end the "
                         "context, or wait longer for it (StateOptions::wait)"));
  }
  is_over_ = true;
}

void OwnedModule::run(std::shared_ptr<ModuleAttempt> attempt, const base::Clock& clock, std::function<void()> done) {
  object_->strand().run([self = shared_from_this(), attempt = std::move(attempt), &clock, done = std::move(done)] {
    attempt->run(*self, self->served().has_open_context(), clock.now());
    done();
  });
}

StateDict OwnedModule::state() const {
  StateDict all = served().tensors(TensorKind::parameter);
  for (NamedTensor& buffer : served().tensors(TensorKind::buffer)) all.push_back(std::move(buffer));
  std::erase_if(all, [](const NamedTensor& named) { return !named.tensor.defined(); });
  return all;
}

Result<std::vector<NamedReference>> OwnedModule::list(TensorKind kind) {
  return guarded([&]() -> Result<std::vector<NamedReference>> {
    References& known = references_[kind == TensorKind::buffer ? 1 : 0];
    References listed;
    std::vector<NamedReference> references;
    for (const NamedTensor& named : served().tensors(kind)) {
      if (!named.tensor.defined()) continue;
      const void* const key = named.tensor.unsafeGetTensorImpl();
      const auto [place, is_new] = listed.try_emplace(key);
      if (!is_new) continue;
      const auto before = known.find(key);
      place->second = before != known.end() ? before->second : site_.make_rref(named.tensor);
      references.push_back({named.name, place->second});
    }
    known = std::move(listed);
    return references;
  });
}

Result<SavedModule> OwnedModule::save() {
  return guarded([&]() -> Result<SavedModule> {
    const at::NoGradGuard no_grad;
    StateDict copy = state();
    Result<std::vector<TensorInfo>> tensors = describe(copy);
    if (!tensors) return tensors.error();
    if (const Result<void> unique = check_fits(*tensors, *tensors); !unique) return unique.error();
    for (NamedTensor& named : copy) {
      named.tensor = named.tensor.detach().resolve_conj().resolve_neg().clone(at::MemoryFormat::Contiguous);
    }
    return SavedModule{*std::move(tensors), site_.make_rref(StateSource(std::move(copy)))};
  });
}

Result<RRef<StagedState>> OwnedModule::stage(const std::vector<TensorInfo>& given) {
  return guarded([&]() -> Result<RRef<StagedState>> {
    const Result<std::vector<TensorInfo>> own = describe(state());
    if (!own) return own.error();
    if (const Result<void> fits = check_fits(given, *own); !fits) return fits.error();
    Result<StateDict> blank = make_blank(given);
    if (!blank) return blank.error();
    return site_.make_rref(StagedState(*std::move(blank)));
  });
}

Result<void> OwnedModule::take(const RRef<StagedState>& staged) {
  return guarded([&]() -> Result<void> {
    const auto place = staged.try_local_value();
    if (!place) return place.error();
    Result<StateDict> values = (*place)->release();
    if (!values) return values.error();
    const StateDict own = state();
    const Result<std::vector<TensorInfo>> given = describe(*values);
    const Result<std::vector<TensorInfo>> expected = describe(own);
    if (!given) return given.error();
    if (!expected) return expected.error();
    if (const Result<void> fits = check_fits(*given, *expected); !fits) return fits;
    if (const Result<void> writable = check_writable(own); !writable) return writable;
    std::map<std::string_view, const at::Tensor*> by_name;
    for (const NamedTensor& named : *values) by_name.emplace(named.name, &named.tensor);
    const at::NoGradGuard no_grad;
    for (const NamedTensor& named : own) named.tensor.copy_(*by_name.at(named.name));
    return {};
  });
}

Result<void> OwnedModule::move_to(const std::string& device) {
  return tensor::catch_torch(Errc::bad_arguments, [&]() -> Result<void> {
    if (c10::Device(device).is_cpu()) return {};
    return Error(Errc::unsupported, "the device '" + device + "' is not known here; modules are on the device 'cpu'");
  });
}

}  // namespace caftan::nn
