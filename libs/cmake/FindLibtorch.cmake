# Finds the libtorch of the pinned wheel. CAFTAN_TORCH_ROOT holds lib/ and include/.
# Never find_package(Torch): its config asks for the CUDA toolkit, and libtorch.so drags in libtorch_cuda.so.
find_path(CAFTAN_TORCH_ROOT NAMES lib/libtorch_cpu.so PATH_SUFFIXES torch libtorch
          PATHS ENV CAFTAN_TORCH_ROOT ENV CAFTAN_DEPS_DIR ${PROJECT_SOURCE_DIR}/.deps ${CAFTAN_TORCH_ROOT_HINT}
          NO_DEFAULT_PATH)
if(EXISTS ${CAFTAN_TORCH_ROOT}/include/torch/headeronly/version.h)
  file(STRINGS ${CAFTAN_TORCH_ROOT}/include/torch/headeronly/version.h libtorch_version_lines
       REGEX "^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
  list(TRANSFORM libtorch_version_lines REPLACE "^.* " "")
  list(JOIN libtorch_version_lines "." Libtorch_VERSION)
endif()
if(NOT CAFTAN_TORCH_SOURCE)  # the installed package has words of its own
  set(CAFTAN_TORCH_SOURCE "In a checkout run ./caftan help once, which fetches it into .deps/torch")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libtorch REQUIRED_VARS CAFTAN_TORCH_ROOT VERSION_VAR Libtorch_VERSION
  REASON_FAILURE_MESSAGE "set CAFTAN_TORCH_ROOT (-D or environment) to a folder with lib/libtorch_cpu.so and include/. ${CAFTAN_TORCH_SOURCE}")
if(Libtorch_FOUND AND NOT TARGET torch::torch_cpu)
  foreach(name c10 torch_cpu)
    add_library(torch::${name} SHARED IMPORTED)
    set_target_properties(torch::${name} PROPERTIES
      IMPORTED_LOCATION ${CAFTAN_TORCH_ROOT}/lib/lib${name}.so IMPORTED_SONAME lib${name}.so
      INTERFACE_INCLUDE_DIRECTORIES "${CAFTAN_TORCH_ROOT}/include;${CAFTAN_TORCH_ROOT}/include/torch/csrc/api/include"
      INTERFACE_COMPILE_DEFINITIONS AT_PER_OPERATOR_HEADERS)
  endforeach()
  target_link_libraries(torch::torch_cpu INTERFACE torch::c10)
endif()
