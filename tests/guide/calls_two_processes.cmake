# Runs `calls server` and `calls client` side by side. Variables: PROGRAM, FOLDER (for the socket).
execute_process(COMMAND ${PROGRAM} server COMMAND ${PROGRAM} client WORKING_DIRECTORY ${FOLDER}
                RESULTS_VARIABLE codes OUTPUT_VARIABLE said)
if(NOT codes STREQUAL "0;0" OR NOT said STREQUAL "20 + 22 = 42\n")
  message(FATAL_ERROR "exit codes ${codes}; the client said: ${said}")
endif()
