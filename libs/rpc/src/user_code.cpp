#include "caftan/rpc/user_code.hpp"

#include <c10/util/Exception.h>

#include <memory>

namespace caftan::rpc {

Error user_code_failure(std::string_view worker, std::string_view what) {
  const auto error = [&](std::string_view text, std::shared_ptr<const Error> cause = nullptr) {
    return Error(Errc::remote_exception, std::string(worker), std::string(what) + ": " + std::string(text),
                 std::move(cause));
  };
  try {
    throw;
  } catch (const RpcException& failure) {
    return error("a call in it failed", std::make_shared<const Error>(failure.error()));
  } catch (const c10::Error& failure) {
    return error(failure.what_without_backtrace());
  } catch (const std::exception& failure) {
    return error(failure.what());
  } catch (...) {
    return error("threw something that is not a std::exception");
  }
}

}  // namespace caftan::rpc
