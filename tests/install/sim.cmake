# Builds a sequential simulation against the component `sim` of the package, where neither libtorch nor CAF may be found, and
# runs it.
file(REMOVE_RECURSE ${PREFIX}/bank)
file(REAL_PATH ${PREFIX}/package package)
file(WRITE ${PREFIX}/bank/CMakeLists.txt "
cmake_minimum_required(VERSION 3.25)
project(bank LANGUAGES CXX)
find_package(caftan 0.1 REQUIRED COMPONENTS sim)
add_executable(bank ${SOURCE_DIR}/bank.cpp)
target_link_libraries(bank PRIVATE caftan::sim)
")
execute_process(
  COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S ${PREFIX}/bank -B ${PREFIX}/bank/build -DCMAKE_PREFIX_PATH=${package}
          -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${CXX_FLAGS} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}
          -DCMAKE_DISABLE_FIND_PACKAGE_Libtorch=TRUE -DCMAKE_DISABLE_FIND_PACKAGE_CAF=TRUE
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${PREFIX}/bank/build COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${PREFIX}/bank/build/bank OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
if(NOT said MATCHES "statistic,unit,measure,value" OR NOT said MATCHES "time,lp,name,value" OR NOT said MATCHES "fingerprint [0-9a-f]+")
  message(SEND_ERROR "the simulation says:\n${said}")
endif()
file(READ ${PREFIX}/bank/build/bank program HEX)
string(FIND "${program}" "6c6962746f7263682e736f" place)  # libtorch.so
if(NOT place EQUAL -1)
  message(SEND_ERROR "the simulation links libtorch")
endif()
