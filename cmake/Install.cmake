# What `cmake --install` lays down: headers, static libraries, programs, and the package file that
# find_package(Evenkeel) reads.
include(CMakePackageConfigHelpers)

set(KEEL_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Evenkeel)
foreach(folder base store elastic ckpt)
  keel_install_headers(${folder})
endforeach()
if(KEEL_WITH_TORCH)
  keel_install_headers(trainer)
endif()
install(EXPORT EvenkeelTargets NAMESPACE Evenkeel:: DESTINATION ${KEEL_PACKAGE_DIR})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/EvenkeelConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/EvenkeelConfig.cmake
                              INSTALL_DESTINATION ${KEEL_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/EvenkeelConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/EvenkeelConfig.cmake
              ${PROJECT_BINARY_DIR}/EvenkeelConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/LibTorch.cmake
        DESTINATION ${KEEL_PACKAGE_DIR})
