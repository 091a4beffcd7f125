# Runs a program with a process for each worker and with all in one: the curves must be the same, byte for byte.
# Variables: PROGRAM, FILE, and LAST, how the row of the last episode begins. The runs are below the current folder.
foreach(placement processes one_process)
  file(MAKE_DIRECTORY ${placement})
  execute_process(COMMAND ${PROGRAM} run ${FILE} run.placement=${placement} WORKING_DIRECTORY ${placement}
                  COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${placement}/runs/latest/curve.csv ${placement})
endforeach()
if(NOT processes MATCHES "\n${LAST}" OR NOT processes STREQUAL one_process)
  message(FATAL_ERROR "the curves of */runs/latest differ, or have no row ${LAST}")
endif()
