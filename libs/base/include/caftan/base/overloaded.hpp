/// `Overloaded`: several lambdas as one visitor of a variant: `std::visit(Overloaded{[](A&) {}, [](B&) {}}, variant)`.
#pragma once

namespace caftan {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>  // clang 14, which builds the fuzzers, does not deduce aggregates
Overloaded(Functions...)->Overloaded<Functions...>;

}  // namespace caftan
