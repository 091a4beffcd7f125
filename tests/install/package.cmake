# Installs the build into PREFIX, which was empty.
file(REMOVE_RECURSE ${PREFIX})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${PREFIX}/package
                COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
# What a machine needs, and where that is said.
foreach(file packages.txt libtorch.py wheels.lock)
  if(NOT EXISTS ${PREFIX}/package/share/caftan/${file})
    message(SEND_ERROR "the package has no share/caftan/${file}")
  endif()
endforeach()
file(GLOB_RECURSE config ${PREFIX}/package/*caftanConfig.cmake)
file(STRINGS ${config} advice REGEX "PACKAGE_PREFIX_DIR.*/share/caftan/libtorch.py .*/share/caftan/wheels.lock")
if(NOT advice)
  message(SEND_ERROR "${config} does not say what fetches libtorch")
endif()
# The installed command works from where it lies now.
execute_process(COMMAND ${PREFIX}/package/bin/caftan help COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
