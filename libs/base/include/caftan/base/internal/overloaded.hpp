/// `Overloaded`: several lambdas as one visitor of a variant: `std::visit(Overloaded{[](A&) {}, [](B&) {}}, variant)`.
#pragma once

namespace caftan::base {

/// A visitor made of several functions, which calls the function that takes the argument.
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
/// clang 14, which builds the fuzzers, does not deduce the arguments of an aggregate without this guide.
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace caftan::base
