/// Owners of OpenSSL's objects.
#pragma once

namespace caftan::net::tls {

template <auto kFree>
struct Free {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};

}  // namespace caftan::net::tls
