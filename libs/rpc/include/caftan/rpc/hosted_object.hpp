/// `HostedObject`: a value of any type that a worker hosts for others: behind an owner's RRef, a role or a module. It
/// knows its type, how to send its value, and has the strand on which its methods take turns.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "caftan/base/ids.hpp"
#include "caftan/rpc/packing.hpp"
#include "caftan/rpc/strand.hpp"

namespace caftan {
template <class T>
class RRef;
}

namespace caftan::rpc {

class HostedObject;

/// What the library knows of a hosted type; one constant per type.
struct TypeDescriptor {
  TypeKey key;
  /// Encodes the value for a fetch; null when the type cannot be serialized. Called on the strand.
  Result<OutReply> (*encode)(const HostedObject&) = nullptr;
};

/// Owned by shared_ptr: by its owner actor and by every running job on it.
class HostedObject {
 public:
  virtual ~HostedObject() = default;
  HostedObject(const HostedObject&) = delete;
  HostedObject& operator=(const HostedObject&) = delete;

  RRefId id() const noexcept { return id_; }
  const TypeDescriptor& type() const noexcept { return type_; }
  /// Returns the strand on which this object's methods take turns; valid as long as this object.
  Strand& strand() noexcept { return *strand_; }
  /// Returns the strand as a shared pointer, for users that need it longer than this object lives.
  const std::shared_ptr<Strand>& shared_strand() const noexcept { return strand_; }
  /// Returns "Net (0.5)", for texts.
  std::string name() const { return std::string(type_.key.name) + " (" + to_string(id_) + ")"; }

  /// Returns the value, null when it is of another type.
  template <class T>
  T* as() noexcept {
    return type_.key.hash == wire::type_hash<T>() ? static_cast<T*>(value_) : nullptr;
  }
  template <class T>
  const T* as() const noexcept {
    return type_.key.hash == wire::type_hash<T>() ? static_cast<const T*>(value_) : nullptr;
  }

 protected:
  HostedObject(const TypeDescriptor& type, RRefId id, base::Executor& executor)
      : HostedObject(type, id, std::make_shared<Strand>(executor, id)) {}
  /// Makes an object that is a part of another one and shares its strand.
  HostedObject(const TypeDescriptor& type, RRefId id, std::shared_ptr<Strand> strand)
      : type_(type), id_(id), strand_(std::move(strand)) {}
  void* value_ = nullptr;

 private:
  const TypeDescriptor& type_;
  const RRefId id_;
  const std::shared_ptr<Strand> strand_;
};

namespace detail {

template <class T>
Result<OutReply> encode_hosted(const HostedObject& object) {
  return encode_reply(*object.as<T>());
}
template <class T>
constexpr TypeDescriptor make_type_descriptor() noexcept {
  if constexpr (enable_sending<T>) {
    return {type_key<T>(), &encode_hosted<T>};
  } else {
    return {type_key<T>(), nullptr};
  }
}
template <class T>
inline constexpr TypeDescriptor kTypeDescriptor = make_type_descriptor<T>();

template <class T>
class Hosted final : public HostedObject {
 public:
  /// @param turns  an executor, for an object with a strand of its own; or the strand of another object if the new
  /// object is a part of that one
  template <class Turns, class... Args>
  Hosted(RRefId id, Turns&& turns, Args&&... args)
      : HostedObject(kTypeDescriptor<T>, id, std::forward<Turns>(turns)), object_(std::forward<Args>(args)...) {
    value_ = &object_;
  }

 private:
  T object_;
};

}  // namespace detail

/// Constructs a T in place and returns it as a hosted object. What T's constructor throws comes out.
/// @param id  the RRef whose value it is
template <class T, class... Args>
std::shared_ptr<HostedObject> make_hosted(RRefId id, base::Executor& executor, Args&&... args) {
  return std::make_shared<detail::Hosted<T>>(id, executor, std::forward<Args>(args)...);
}

/// As make_hosted, holding the turn of the new object while its constructor runs.
template <class T, class... Args>
std::shared_ptr<HostedObject> construct_hosted(RRefId id, base::Executor& executor, Args&&... args) {
  auto strand = std::make_shared<Strand>(executor, id);
  const FirstTurn turn(*strand);
  return std::make_shared<detail::Hosted<T>>(id, strand, std::forward<Args>(args)...);
}

/// Whether a T is a tensor, or a standard container, tuple, optional or variant of them. A class is not looked into.
template <class T>
inline constexpr bool kHoldsTensors = std::is_same_v<T, at::Tensor>;
template <template <class...> class C, class... A>
inline constexpr bool kHoldsTensors<C<A...>> = (kHoldsTensors<A> || ...);
template <class T, std::size_t N>
inline constexpr bool kHoldsTensors<std::array<T, N>> = kHoldsTensors<T>;
template <class T>
inline constexpr bool kHoldsTensors<RRef<T>> = false;

/// Returns `value`, which came out of an object, as a hosted object. Tensors take their turns with that object: fetches
/// and steps of a parameter never overlap with the methods that read it.
/// @param of  the strand of the object; null = there is none
template <class T, class V>
std::shared_ptr<HostedObject> make_hosted_part(RRefId id, base::Executor& executor, std::shared_ptr<Strand> of,
                                               V&& value) {
  if constexpr (kHoldsTensors<T>) {
    if (of) return std::make_shared<detail::Hosted<T>>(id, std::move(of), std::forward<V>(value));
  }
  return make_hosted<T>(id, executor, std::forward<V>(value));
}

/// As construct_hosted; the tensors that are made take their turns with the object of the strand `of`, as those of
/// make_hosted_part do.
template <class T, class... Args>
std::shared_ptr<HostedObject> construct_hosted_part(RRefId id, base::Executor& executor, std::shared_ptr<Strand> of,
                                                    Args&&... args) {
  if constexpr (kHoldsTensors<T>) {
    if (of) return std::make_shared<detail::Hosted<T>>(id, std::move(of), std::forward<Args>(args)...);
  }
  return construct_hosted<T>(id, executor, std::forward<Args>(args)...);
}

}  // namespace caftan::rpc
