#include "caftan/nn/served_module.hpp"

#include <algorithm>
#include <iterator>

#include "caftan/autograd/internal/context_record.hpp"

namespace caftan::nn {

bool ServedModule::has_open_context() {
  if (gate_) return gate_->is_in_use();
  std::erase_if(contexts_, [](const std::weak_ptr<void>& context) {
    const auto record = std::static_pointer_cast<autograd::ContextRecord>(context.lock());
    return !record || record->is_over();
  });
  return !contexts_.empty();
}

void ServedModule::begin_call(const CallInfo& info, bool training) {
  const auto same = [&info](const std::weak_ptr<void>& context) {
    return !context.owner_before(info.autograd_context) && !info.autograd_context.owner_before(context);
  };
  if (!gate_ && !info.autograd_context.expired() && std::none_of(contexts_.begin(), contexts_.end(), same)) {
    has_open_context();  // forgets those that are over
    contexts_.push_back(info.autograd_context);
  }
  type_->set_mode(module_.get(), training, training_);
  training_ = training;
}

void ServedModule::run_hooks(const char* method, bool after, void* values) const {
  for (const Hook& hook : hooks_) {
    if (hook.method == method && hook.after == after) hook.call(module_.get(), values);
  }
}

void ServedModule::set_hook(const Hook& hook, bool on) {
  const auto same = [&hook](const Hook& other) {
    return other.method == hook.method && other.function == hook.function && other.after == hook.after;
  };
  if (!on) {
    std::erase_if(hooks_, same);
  } else if (std::none_of(hooks_.begin(), hooks_.end(), same)) {
    hooks_.push_back(hook);
  }
}

Error ServedModule::wrong_type(rpc::TypeKey wanted) const {
  return Error(Errc::wrong_type,
               "the module is a " + std::string(type_->key.name) + ", not a " + std::string(wanted.name));
}

Result<ServedModule> ServedModule::make_another() const {
  if (!another_) {
    return Error(Errc::unsupported, "this " + std::string(type_->key.name) +
                                        " was made as a module of its own: nn::SharedModule makes one that is shared");
  }
  ServedModule other(*type_, another_());
  return other;
}

std::string detail::module_constructor_name(std::string_view name, std::string_view signature, std::string_view verb) {
  std::string text = std::string(name) + "." + std::string(verb) + ":";
  signature.remove_prefix(signature.find('(') + 1);
  signature.remove_suffix(1);
  std::copy_if(signature.begin(), signature.end(), std::back_inserter(text), [](char c) { return c != ' '; });
  return text;
}

}  // namespace caftan::nn
