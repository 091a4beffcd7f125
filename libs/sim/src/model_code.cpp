#include "model_code.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <typeinfo>

#include "caftan/base/internal/what_of.hpp"
#include "caftan/wire/archive_error.hpp"

namespace caftan::sim {
namespace {

/// Returns the type of the exception in flight, for example "std::out_of_range".
std::string type_of_exception() {
  const std::type_info* const type = abi::__cxa_current_exception_type();
  if (!type) return "unknown";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(type->name(), nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 ? name.get() : type->name();
}

}  // namespace

std::optional<Error> run_model_code(const std::function<void()>& run, const std::function<std::string()>& where) {
  try {
    run();
    return std::nullopt;
  } catch (const RpcException& failure) {
    return failure.error();
  } catch (const wire::DecodeError& failure) {
    return Error(Errc::malformed_payload, where() + ": its bytes do not decode: " + failure.what());
  } catch (const wire::EncodeError& failure) {
    return Error(failure.error().code(), where() + ": a value cannot be written: " + failure.error().text());
  } catch (const std::bad_alloc&) {
    return Error(Errc::limit_exceeded, where() + ": no memory");
  } catch (const std::exception& failure) {
    return Error(Errc::user_error, where() + ": " + type_of_exception() + ": " + base::what_of(failure));
  } catch (...) {
    return Error(Errc::user_error, where() + ": threw a value of type " + type_of_exception());
  }
}

}  // namespace caftan::sim
