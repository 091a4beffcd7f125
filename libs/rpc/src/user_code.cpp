#include "caftan/rpc/user_code.hpp"

#include <c10/util/Exception.h>
#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <typeinfo>

#include "caftan/base/internal/what_of.hpp"
#include "caftan/tensor/internal/torch_errors.hpp"

namespace caftan::rpc {
namespace {

/// Returns the type of the exception in flight, for example "std::out_of_range".
std::string type_in_flight() {
  const std::type_info* const type = abi::__cxa_current_exception_type();
  if (!type) return "unknown";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(type->name(), nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 ? name.get() : type->name();
}

}  // namespace

Error user_code_failure(std::string_view worker, std::string_view what, Errc thrown) {
  const auto failed = [&](Errc code, std::string_view text, std::shared_ptr<const Error> cause = nullptr) {
    return Error(code, std::string(worker), std::string(what) + ": " + std::string(text), std::move(cause));
  };
  try {
    throw;
  } catch (const RpcException& failure) {
    const Error& error = failure.error();
    const bool is_own = error.code() == Errc::user_error && !error.kind().empty() && error.worker().empty();
    if (is_own) return error.at(std::string(worker));
    return failed(thrown, "a call in it failed", std::make_shared<const Error>(error));
  } catch (const c10::Error& failure) {
    const std::string_view text = failure.what_without_backtrace();
    if (!tensor::is_out_of_memory(failure)) return failed(thrown, type_in_flight() + ": " + std::string(text));
    return failed(Errc::limit_exceeded, "no memory: " + std::string(text));
  } catch (const std::bad_alloc&) {
    return failed(Errc::limit_exceeded, "no memory");
  } catch (const std::exception& failure) {
    return failed(thrown, type_in_flight() + ": " + std::string(base::what_of(failure)));
  } catch (...) {
    return failed(thrown, "threw a value of type " + type_in_flight());
  }
}

}  // namespace caftan::rpc
