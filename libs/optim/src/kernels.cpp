// Compiled for AVX2 with FMA, without fusing a product and a sum that the source keeps apart: see CMakeLists.txt.
#include "kernels.hpp"

#include "algorithms/adagrad_kernel.hpp"
#include "algorithms/adam_kernel.hpp"
#include "algorithms/sgd_kernel.hpp"

namespace caftan::optim {

template <class Kernel, class T>
void run_average(const Kernel& kernel, const Row<T>& row, T* squares) {
  kernel.average(row, squares);
}

template <class Kernel, class T>
void run_step(const Kernel& kernel, const Row<T>& row, const T* roots) {
  kernel.step(row, roots);
}

template void run_step(const SgdKernel&, const Row<float>&, const float*);
template void run_step(const SgdKernel&, const Row<double>&, const double*);

template void run_average(const AdamKernel<false>&, const Row<float>&, float*);
template void run_average(const AdamKernel<false>&, const Row<double>&, double*);
template void run_step(const AdamKernel<false>&, const Row<float>&, const float*);
template void run_step(const AdamKernel<false>&, const Row<double>&, const double*);

template void run_average(const AdamKernel<true>&, const Row<float>&, float*);
template void run_average(const AdamKernel<true>&, const Row<double>&, double*);
template void run_step(const AdamKernel<true>&, const Row<float>&, const float*);
template void run_step(const AdamKernel<true>&, const Row<double>&, const double*);

template void run_average(const AdagradKernel&, const Row<float>&, float*);
template void run_average(const AdagradKernel&, const Row<double>&, double*);
template void run_step(const AdagradKernel&, const Row<float>&, const float*);
template void run_step(const AdagradKernel&, const Row<double>&, const double*);

}  // namespace caftan::optim
