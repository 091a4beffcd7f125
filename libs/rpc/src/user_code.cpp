#include "caftan/rpc/user_code.hpp"

#include <c10/util/Exception.h>

#include <memory>
#include <new>

#include "caftan/base/what_of.hpp"
#include "caftan/tensor/torch_errors.hpp"

namespace caftan::rpc {

Error user_code_failure(std::string_view worker, std::string_view what) {
  const auto failed = [&](Errc code, std::string_view text, std::shared_ptr<const Error> cause = nullptr) {
    return Error(code, std::string(worker), std::string(what) + ": " + std::string(text), std::move(cause));
  };
  try {
    throw;
  } catch (const RpcException& failure) {
    return failed(Errc::remote_exception, "a call in it failed", std::make_shared<const Error>(failure.error()));
  } catch (const c10::Error& failure) {
    const std::string_view text = failure.what_without_backtrace();
    if (!tensor::is_out_of_memory(failure)) return failed(Errc::remote_exception, text);
    return failed(Errc::limit_exceeded, "no memory: " + std::string(text));
  } catch (const std::bad_alloc&) {
    return failed(Errc::limit_exceeded, "no memory");
  } catch (const std::exception& failure) {
    return failed(Errc::remote_exception, what_of(failure));
  } catch (...) {
    return failed(Errc::remote_exception, "threw something that is not a std::exception");
  }
}

}  // namespace caftan::rpc
