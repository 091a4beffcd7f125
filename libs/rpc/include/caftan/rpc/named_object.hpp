/// The caller's side of `get_or_create`: how the request for an object with a name is written and its reply read. Users
/// start with call_site.hpp. Rules CALL-20 to CALL-22: docs/protocols/call.md.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "caftan/rpc/call.hpp"
#include "caftan/rpc/rref.hpp"

namespace caftan::rpc {

/// A reference to a value of any type, as a reply carries it.
struct AnyRRef {
  std::shared_ptr<RRefHandle> handle{};
};

/// Fills a request for the object `name`, up to the arguments of its constructor. Errors: as fill_request.
Result<void> fill_named_request(OutRequest& request, const CallTarget& target, std::string_view name,
                                const FunctionKey& constructor);
/// Returns the reference of a reply. Errors: wrong_type.
Result<std::shared_ptr<RRefHandle>> reference_to(TypeKey type, Result<AnyRRef> reply);

}  // namespace caftan::rpc

namespace caftan::wire {
template <>
struct Codec<rpc::AnyRRef> {
  static void save(OutArchive& to, const rpc::AnyRRef& rref) { rpc::save_rref(to, rref.handle); }
  static void load(InArchive& from, rpc::AnyRRef& rref) { rpc::load_rref(from, rref.handle); }
};
}  // namespace caftan::wire

namespace caftan::rpc {

/// Asks for the object `name`, of class C, and waits for it.
/// @param constructor  of C, for P...
template <class C, class... P, class... A>
Result<std::shared_ptr<RRefHandle>> get_or_create(const CallTarget& target, std::string_view name,
                                                  const Result<const FunctionKey*>& constructor, TypeList<P...> types,
                                                  const A&... arguments) {
  if (!constructor) return constructor.error();
  OutRequest request;
  Result<void> done = fill_named_request(request, target, name, **constructor);
  if (done) done = pack_arguments(types, request, arguments...);
  if (!done) return done.error();
  return reference_to(type_key<C>(), start_call<AnyRRef>(target, std::move(request)).result());
}

}  // namespace caftan::rpc
