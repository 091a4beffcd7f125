# Lets the installed command write a project, the README's program under another name; builds it outside the tree, checks
# its file, runs it, and expects its misuse to be found.
file(REMOVE_RECURSE ${PREFIX}/consumer)
execute_process(COMMAND ${PREFIX}/package/bin/caftan new consumer --into ${PREFIX} OUTPUT_VARIABLE steps
                COMMAND_ERROR_IS_FATAL ANY)
file(REAL_PATH ${PREFIX}/package package)
string(FIND "${steps}" "-DCMAKE_PREFIX_PATH=${package}\n" place)
if(place EQUAL -1)
  message(SEND_ERROR "caftan new names another package than ${package}:\n${steps}")
endif()
foreach(file doc/caftan/LICENSE doc/caftan/configuration.md caftan/guide/counting/CMakeLists.txt)
  if(NOT EXISTS ${PREFIX}/package/share/${file})
    message(SEND_ERROR "the package has no share/${file}")
  endif()
endforeach()
# Not of the project: a program that uses the libraries whose headers caftan/caftan.hpp does not bring.
file(APPEND ${PREFIX}/consumer/CMakeLists.txt "
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
  execute_process(COMMAND ${PREFIX}/consumer/build/consumer ${ARGN} WORKING_DIRECTORY ${PREFIX}/consumer
                  RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE said)
  string(FIND "${said}" "${output}" place)
  if(NOT code EQUAL result OR place EQUAL -1)
    message(SEND_ERROR "consumer ${ARGN}: exit ${code}, not ${result}, or no '${output}' in:\n${said}")
  endif()
endfunction()
execute_process(COMMAND ${PREFIX}/consumer/build/parts COMMAND_ERROR_IS_FATAL ANY)
expect(0 "" check consumer.toml)
expect(0 "" run consumer.toml)
expect(0 "" run consumer.toml run.placement=one_process)
expect(0 "counter-1" plan consumer.toml)
expect(0 "counter-7" plan consumer.toml roles.counter.replicas=8)
expect(0 "calls to each counter" help driver)
expect(2 "did you mean 'rounds'" check consumer.toml roles.driver.config.round=1)
expect(2 "" run missing.toml)
execute_process(COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${PREFIX}/consumer/build --no-tests=error
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${PREFIX}/package/bin/caftan new consumer --into ${PREFIX} RESULT_VARIABLE code
                ERROR_VARIABLE said)
if(NOT code EQUAL 2 OR NOT said MATCHES "exists, and nothing is overwritten")
  message(SEND_ERROR "caftan new of a folder that exists: exit ${code}, ${said}")
endif()
