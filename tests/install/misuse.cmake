# Compiles each file of misuse/ as the consumer's main.cpp is compiled; its first line says what the compiler must say.
file(READ ${PREFIX}/consumer/build/compile_commands.json commands)
string(JSON command GET "${commands}" 0 command)
string(REGEX REPLACE " -o .*" "" command "${command}")
separate_arguments(command UNIX_COMMAND "${command}")
set(ENV{LC_ALL} C)  # the compiler's own words, with plain quotes
file(GLOB cases ${SOURCE_DIR}/misuse/*.cpp)
if(NOT cases)
  message(FATAL_ERROR "no case in ${SOURCE_DIR}/misuse")
endif()
# Each case begins with the header of the whole API: read once.
file(WRITE ${PREFIX}/misuse/caftan_headers.hpp "#include <caftan/caftan.hpp>\n")
execute_process(COMMAND ${command} -x c++-header ${PREFIX}/misuse/caftan_headers.hpp
                -o ${PREFIX}/misuse/caftan_headers.hpp.gch COMMAND_ERROR_IS_FATAL ANY)
foreach(case IN LISTS cases)
  file(STRINGS ${case} expected LIMIT_COUNT 1)
  string(REGEX REPLACE "^// expect: " "" expected "${expected}")
  execute_process(COMMAND ${command} -include ${PREFIX}/misuse/caftan_headers.hpp -fsyntax-only ${case}
                  RESULT_VARIABLE code ERROR_VARIABLE said)
  get_filename_component(name ${case} NAME_WE)
  if(name STREQUAL "correct")  # shows that the others fail for their own reason
    if(NOT code EQUAL 0)
      message(SEND_ERROR "correct.cpp does not compile:\n${said}")
    endif()
    continue()
  endif()
  string(FIND "${said}" "${expected}" place)
  if(code EQUAL 0)
    message(SEND_ERROR "${name}: compiles, although it must not")
  elseif(place EQUAL -1)
    message(SEND_ERROR "${name}: the compiler does not say '${expected}':\n${said}")
  endif()
endforeach()
