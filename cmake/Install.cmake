# What `cmake --install` lays down: headers, static libraries, programs, the package file that
# find_package(Evenkeel) reads, and what a machine that runs jobs wants.
include(CMakePackageConfigHelpers)

set(KEEL_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Evenkeel)
foreach(folder base ckpt elastic elastic/protocol store)
  keel_install_headers(${folder})
endforeach()
if(KEEL_WITH_TORCH)
  foreach(folder trainer trainer/numerics)
    keel_install_headers(${folder})
  endforeach()
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

# Where the installed modules and find_package(Evenkeel) look for LibTorch: behind a link beside the
# modules. A part of its own, since packages are unpacked where LibTorch lies elsewhere.
if(KEEL_WITH_TORCH)
  install(CODE "
    set(link \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/evenkeel/torch\")
    message(STATUS \"Installing: \${link} -> ${KEEL_TORCH_FOUND_DIR}\")
    file(CREATE_LINK \"${KEEL_TORCH_FOUND_DIR}\" \"\${link}\" SYMBOLIC)
  " COMPONENT torch_link)
  set_target_properties(keel_store_module PROPERTIES INSTALL_RPATH $ORIGIN/torch/lib)
endif()
