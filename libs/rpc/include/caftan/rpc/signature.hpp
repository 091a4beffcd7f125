/// What the types of a function say about its call: which parameters travel, which the callee supplies, what comes
/// back; and its signature as text and hash, by which caller and callee find out that they disagree.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "caftan/base/fnv1a.hpp"
#include "caftan/rpc/batch.hpp"
#include "caftan/rpc/future.hpp"
#include "caftan/rpc/request.hpp"
#include "caftan/wire/codec.hpp"
#include "caftan/wire/type_name.hpp"

namespace caftan {
class Worker;
}

namespace caftan::rpc {

/// A list of types.
template <class... T>
struct TypeList {};

/// Result, Class (void for functions) and Parameters of a function or member function pointer type.
template <class F>
struct FunctionTraits {
  static_assert(!std::is_class_v<F>,
                "a lambda or function object cannot be registered or called remotely: write a function");
  static_assert(std::is_class_v<F>, "only functions and methods can be registered or called remotely");
};
template <class R, class... P>
struct FunctionTraits<R (*)(P...)> {
  using Result = R;
  using Class = void;
  using Parameters = TypeList<P...>;
};
template <class R, class... P>
struct FunctionTraits<R (*)(P...) noexcept> : FunctionTraits<R (*)(P...)> {};
template <class R, class C, class... P>
struct FunctionTraits<R (C::*)(P...)> {
  using Result = R;
  using Class = C;
  using Parameters = TypeList<P...>;
};
template <class R, class C, class... P>
struct FunctionTraits<R (C::*)(P...) const> : FunctionTraits<R (C::*)(P...)> {};
template <class R, class C, class... P>
struct FunctionTraits<R (C::*)(P...) noexcept> : FunctionTraits<R (C::*)(P...)> {};
template <class R, class C, class... P>
struct FunctionTraits<R (C::*)(P...) const noexcept> : FunctionTraits<R (C::*)(P...)> {};

/// Whether a pointer of type F means a function, not a method.
template <class F>
inline constexpr bool kIsFunction = !std::is_member_pointer_v<F>;

/// Whether the callee supplies a parameter of type P. Such parameters come first and do not travel.
template <class P>
inline constexpr bool kIsSupplied =
    std::is_same_v<P, Worker&> || std::is_same_v<P, CallInfo&> || std::is_same_v<P, const CallInfo&>;

/// Whether a parameter of type P cannot travel; `check_parameter` says why.
template <class P>
inline constexpr bool kStays = wire::detail::is_view<std::remove_cvref_t<P>> ||
                               std::is_pointer_v<std::remove_reference_t<P>> ||
                               (std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>>);
/// Whether a result of type R cannot travel; `check_result` says why.
template <class R>
inline constexpr bool kResultStays = std::is_pointer_v<ValueOf<R>> || wire::detail::is_view<ValueOf<R>>;

/// Stands for a parameter that cannot travel, so that the compiler says only why not: travels, and is made from and
/// becomes what it must. Never defined.
template <class P>
struct RefusedParameter {
  RefusedParameter();
  /// Takes the argument of a call.
  template <class A>
  RefusedParameter(const A& argument);  // NOLINT(google-explicit-constructor)
  operator P() const;                   // NOLINT(google-explicit-constructor)
  template <class Archive>
  void serialize(Archive& archive, unsigned version);
};

/// Stands for a result that cannot travel, so that the compiler says only why not: travels, and becomes an R. Never
/// defined.
template <class R>
struct RefusedResult {
  operator R() const;  // NOLINT(google-explicit-constructor)
  template <class Archive>
  void serialize(Archive& archive, unsigned version);
};

/// The type as which a parameter of type P travels.
template <class P>
using WireType = std::conditional_t<kStays<P>, RefusedParameter<P>, std::remove_cvref_t<P>>;
/// The type as which a result of type R travels.
template <class R>
using WireResult = std::conditional_t<kResultStays<R>, RefusedResult<ValueOf<R>>, ValueOf<R>>;

/// Refuses parameter types that cannot mean the same on another worker.
template <class P>
constexpr bool check_parameter() {
  static_assert(!wire::detail::is_view<std::remove_cvref_t<P>>,
                "a parameter of a remote function is a view of memory that stays with the caller: take a const "
                "reference to a std::string or a std::vector");
  static_assert(!std::is_pointer_v<std::remove_reference_t<P>>,
                "a parameter of a remote function is a pointer, and pointers do not travel: pass the value, or an RRef "
                "to it");
  static_assert(!std::is_lvalue_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>,
                "a parameter of a remote function is a reference: pass a value or a const reference (only Worker& and "
                "CallInfo& may come first)");
  static_assert(!kIsBatch<std::remove_cvref_t<P>>,
                "a batched function has one parameter that travels, its Batch: write Batch<int, at::Tensor> for calls "
                "with an int and a tensor");
  return true;
}
/// Refuses result types that cannot mean the same on another worker.
template <class R>
constexpr bool check_result() {
  static_assert(!std::is_pointer_v<ValueOf<R>>,
                "a remote function returns a pointer, and pointers do not travel: return the value, or an RRef to it");
  static_assert(!wire::detail::is_view<ValueOf<R>>,
                "a remote function returns a view of memory that stays with the callee: return a std::string or a "
                "std::vector");
  return true;
}

/// The parameters of a function: Supplied, which the callee fills in, and P..., which travel.
template <class Supplied, class... P>
struct SplitTypes {
  static_assert((check_parameter<P>() && ...));
  /// Whether the function answers a batch of calls.
  static constexpr bool kBatched = false;
  /// The parameters that the callee fills in.
  using SuppliedTypes = Supplied;
  /// The types that travel, without const and references.
  using Wire = TypeList<WireType<P>...>;
  /// The arguments as the callee decodes them.
  using WireTuple = std::tuple<WireType<P>...>;
};
/// The parameters of a batched function: each call sends one request of the batch.
template <class Supplied, class B>
struct BatchSplit;
template <class... S, class... P>
struct BatchSplit<TypeList<S...>, Batch<P...>> {
  static_assert((check_parameter<P>() && ...));
  static_assert(!(std::is_same_v<std::remove_cvref_t<S>, CallInfo> || ...),
                "a batched function runs for several calls at once: it cannot take CallInfo");
  static constexpr bool kBatched = true;
  using SuppliedTypes = TypeList<S...>;
  using Wire = TypeList<P...>;
  using WireTuple = std::tuple<P...>;
};
template <class Supplied, class P>
requires kIsBatch<std::remove_cvref_t<P>>
struct SplitTypes<Supplied, P> : BatchSplit<Supplied, std::remove_cvref_t<P>> {
};

/// Splits the parameters of a function; Supplied... are those found so far that the callee fills in.
template <class... Supplied>
struct SuppliedFirst {
  /// The parameters P... that are left.
  template <class... P>
  struct Split : SplitTypes<TypeList<Supplied...>, P...> {};
  template <class First, class... P>
  requires kIsSupplied<First>
  struct Split<First, P...> : SuppliedFirst<Supplied..., First>::template Split<P...> {
  };
};
template <class List>
struct SplitParameters;
template <class... P>
struct SplitParameters<TypeList<P...>> : SuppliedFirst<>::Split<P...> {};

namespace detail {

template <std::size_t N>
struct Text {
  std::array<char, N> chars{};
  std::size_t size = 0;
  constexpr void add(std::string_view text) {
    for (const char c : text) chars[size++] = c;
  }
  constexpr operator std::string_view() const { return {chars.data(), size}; }
};

template <class Value, class... P>
constexpr auto make_signature(TypeList<P...>) {
  Text<((wire::type_name<Value>().size() + 4) + ... + (wire::type_name<P>().size() + 2))> text;
  text.add(wire::type_name<Value>());
  text.add("(");
  bool first = true;
  ((text.add(first ? "" : ", "), first = false, text.add(wire::type_name<P>())), ...);
  text.add(")");
  return text;
}
template <class Value, class List>
inline constexpr auto kSignatureText = make_signature<Value>(List{});

}  // namespace detail

/// Returns "int(int, std::string)".
template <class Value, class List>
constexpr std::string_view signature_of() noexcept {
  return detail::kSignatureText<Value, List>;
}

/// The name and signature by which a request names a function. Both views live as long as the registry or the program.
struct FunctionKey {
  std::string_view name;
  std::string_view signature;
  std::uint64_t name_hash = 0;
  std::uint64_t signature_hash = 0;
};

/// What each caller gets of a batched function that returns R.
template <class R>
struct EachOf {
  static_assert(std::is_void_v<R>,
                "a batched function returns a std::vector with one result for each request, or nothing");
  /// The value.
  using type = void;
};
template <class T, class Allocator>
struct EachOf<std::vector<T, Allocator>> {
  static_assert(check_result<T>());
  using type = WireResult<T>;
};
/// What the caller gets of a function that returns R, and answers one call or, batched, several.
template <class R, bool Batched>
struct ValueFor {
  /// The value.
  using type = WireResult<R>;
};
template <class R>
struct ValueFor<R, true> : EachOf<ValueOf<R>> {
  static_assert(!kIsFuture<std::remove_cvref_t<R>>,
                "a batched function that answers later returns a future for each request: std::vector<Future<int>>");
};

/// All types of a call to a function of pointer type F.
template <class F>
struct CallTypes {
  /// Result, class and parameters.
  using Traits = FunctionTraits<F>;
  static_assert(check_result<typename Traits::Result>());
  /// The parameters, split into those that the callee supplies and those that travel.
  using Split = SplitParameters<typename Traits::Parameters>;
  /// The types that travel.
  using Wire = typename Split::Wire;
  /// What the caller gets.
  using Value = typename ValueFor<typename Traits::Result, Split::kBatched>::type;
  /// Returns for example "int(int, std::string)".
  static constexpr std::string_view signature() noexcept { return signature_of<Value, Wire>(); }
  /// Returns the hash of `signature()`.
  static constexpr std::uint64_t signature_hash() noexcept { return base::fnv1a(signature()); }
};

/// A tag for each function, and each method as used on a class: its address is the key by which `rpc_sync<&f>` finds
/// the registered name.
template <class Class, auto F>
inline constexpr char kFunctionTag = 0;

/// Whether a Given becomes an Expected by the rules of list-initialisation: no number loses a part of its value.
template <class Given, class Expected>
concept KeepsValue = !(std::is_arithmetic_v<Expected> || std::is_enum_v<Expected>) || requires {
  std::type_identity_t<Expected[]>{std::declval<Given>()};
};

/// Fails to compile, with a text that names the argument: Argument<position, expected, given>.
template <std::size_t Position, class Expected, class Given>
struct Argument {
  static_assert(std::is_convertible_v<Given, Expected>,
                "an argument of a remote call has the wrong type; it is shown as Argument<position, expected, given>");
  static_assert(!std::is_convertible_v<Given, Expected> || KeepsValue<Given, Expected>,
                "an argument of a remote call might lose a part of its value (as int{3.9} would); it is shown as "
                "Argument<position, expected, given>: give the expected type, or convert it yourself");
  /// True wherever the check compiles.
  static constexpr bool ok = true;
};

template <class List>
struct Arguments;
template <class... P>
struct Arguments<TypeList<P...>> {
  /// Checks the types A of the arguments at one call.
  template <class... A>
  static constexpr bool check() {
    static_assert(sizeof...(A) == sizeof...(P), "a remote call has the wrong number of arguments");
    if constexpr (sizeof...(A) == sizeof...(P)) return check_each<A...>(std::index_sequence_for<P...>{});
    return false;
  }

 private:
  template <class... A, std::size_t... I>
  static constexpr bool check_each(std::index_sequence<I...>) {
    return (Argument<I + 1, P, A>::ok && ...);
  }
};

}  // namespace caftan::rpc
