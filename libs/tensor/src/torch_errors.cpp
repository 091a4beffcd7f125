#include "caftan/tensor/torch_errors.hpp"

#include <c10/util/Exception.h>

#include <exception>
#include <new>

#include "caftan/wire/archive_error.hpp"

namespace caftan::tensor {

Error torch_failure(Errc code) {
  try {
    throw;
  } catch (const wire::DecodeError& error) {
    return Error(error.code(), error.what());
  } catch (const c10::OutOfMemoryError& error) {
    return Error(Errc::limit_exceeded, error.what_without_backtrace());
  } catch (const c10::Error& error) {
    return Error(code, error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return Error(Errc::limit_exceeded, "no memory");
  } catch (const std::exception& error) {
    return Error(code, error.what());
  } catch (...) {
    return Error(code, "an exception of an unknown type");
  }
}

}  // namespace caftan::tensor
