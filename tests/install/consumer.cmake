# Builds the README's program outside the tree, checks its file, runs it, and expects its misuse to be found.
file(COPY ${SOURCE_DIR}/consumer DESTINATION ${PREFIX})
file(READ ${SOURCE_DIR}/consumer/CMakeLists.txt lists)
file(WRITE ${PREFIX}/consumer/CMakeLists.txt "${lists}
# Not the README's: a program that uses the libraries whose headers caftan/caftan.hpp does not bring.
add_executable(parts ${SOURCE_DIR}/parts.cpp)
target_link_libraries(parts PRIVATE caftan::caftan)
")
execute_process(
  COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S ${PREFIX}/consumer -B ${PREFIX}/consumer/build
          -DCMAKE_PREFIX_PATH=${PREFIX}/package -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${CXX_FLAGS}
          -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${PREFIX}/consumer/build COMMAND_ERROR_IS_FATAL ANY)

function(expect result output)  # arguments...: runs the program, compares its exit code and a piece of what it says
  execute_process(COMMAND ${PREFIX}/consumer/build/counting ${ARGN} WORKING_DIRECTORY ${PREFIX}/consumer
                  RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE said)
  string(FIND "${said}" "${output}" place)
  if(NOT code EQUAL result OR place EQUAL -1)
    message(SEND_ERROR "counting ${ARGN}: exit ${code}, not ${result}, or no '${output}' in:\n${said}")
  endif()
endfunction()
execute_process(COMMAND ${PREFIX}/consumer/build/parts COMMAND_ERROR_IS_FATAL ANY)
expect(0 "" check counting.toml)
expect(0 "" run counting.toml)
expect(0 "" run counting.toml run.placement=one_process)
expect(0 "counter-1" plan counting.toml)
expect(2 "did you mean 'rounds'" check counting.toml roles.driver.config.round=1)
expect(2 "" run missing.toml)
