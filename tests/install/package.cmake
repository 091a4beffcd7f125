# Installs the build into PREFIX, which was empty.
file(REMOVE_RECURSE ${PREFIX})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${PREFIX}/package
                COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
# The installed command works from where it lies now.
execute_process(COMMAND ${PREFIX}/package/bin/caftan help COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
