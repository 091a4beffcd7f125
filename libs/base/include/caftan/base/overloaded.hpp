/// `Overloaded`: several lambdas as one visitor of a variant: `std::visit(Overloaded{[](A&) {}, [](B&) {}}, variant)`.
#pragma once

namespace caftan {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

}  // namespace caftan
