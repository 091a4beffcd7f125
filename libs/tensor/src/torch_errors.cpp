#include "caftan/tensor/internal/torch_errors.hpp"

#include <c10/util/Exception.h>

#include <exception>
#include <new>
#include <string_view>

#include "caftan/base/internal/what_of.hpp"
#include "caftan/wire/archive_error.hpp"

namespace caftan::tensor {

bool is_out_of_memory(const c10::Error& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error)) return true;
  // Of c10/core/impl/alloc_cpu.cpp.
  return std::string_view(error.what_without_backtrace()).find("DefaultCPUAllocator: ") != std::string_view::npos;
}

Error torch_failure(Errc code) {
  try {
    throw;
  } catch (const wire::DecodeError& error) {
    return Error(error.code(), error.what());
  } catch (const c10::Error& error) {
    return Error(is_out_of_memory(error) ? Errc::limit_exceeded : code, error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return Error(Errc::limit_exceeded, "no memory");
  } catch (const std::exception& error) {
    return Error(code, base::what_of(error));
  } catch (...) {
    return Error(code, "an exception of an unknown type");
  }
}

}  // namespace caftan::tensor
