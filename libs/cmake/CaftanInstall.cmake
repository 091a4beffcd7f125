# The installed package: find_package(caftan) gives caftan::caftan and every library by its own name; with COMPONENTS sim only
# caftan::sim and what is below it, without libtorch. `cmake --install BUILD --component sim` installs that alone.
include(CMakePackageConfigHelpers)
set(caftan_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/caftan)
install(EXPORT caftanTargets NAMESPACE caftan:: DESTINATION ${caftan_package_dir})
install(EXPORT caftanSimTargets NAMESPACE caftan:: DESTINATION ${caftan_package_dir} COMPONENT sim)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/caftanConfig.cmake.in ${PROJECT_BINARY_DIR}/caftanConfig.cmake
  INSTALL_DESTINATION ${caftan_package_dir} PATH_VARS CMAKE_INSTALL_DATADIR NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/caftanConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/caftanConfig.cmake ${PROJECT_BINARY_DIR}/caftanConfigVersion.cmake
  DESTINATION ${caftan_package_dir} COMPONENT sim)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/FindCAF.cmake ${CMAKE_CURRENT_LIST_DIR}/FindLibtorch.cmake
  DESTINATION ${caftan_package_dir})
if(TARGET caftan)
  install(TARGETS caftan RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
# What a machine needs before it can use the package: docs/guide/installing.md.
install(FILES ${CMAKE_CURRENT_LIST_DIR}/packages.txt ${CMAKE_CURRENT_LIST_DIR}/libtorch.py
        ${CMAKE_CURRENT_LIST_DIR}/wheels.lock DESTINATION ${CMAKE_INSTALL_DATADIR}/caftan)
# The programs of the guide, which `caftan new` copies, and the documents that need no checkout.
file(GLOB guide_mains CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/guide/*/main.cpp)
foreach(main IN LISTS guide_mains)
  get_filename_component(program ${main} DIRECTORY)
  install(DIRECTORY ${program} DESTINATION ${CMAKE_INSTALL_DATADIR}/caftan/guide)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${PROJECT_SOURCE_DIR}/docs/installed.md DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME README.md)
foreach(page commands configuration errors glossary results)
  install(FILES ${PROJECT_SOURCE_DIR}/docs/${page}.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/guide ${PROJECT_SOURCE_DIR}/docs/images ${PROJECT_SOURCE_DIR}/docs/protocols
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
