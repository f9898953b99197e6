# What `cpack` in the build folder makes: evenkeel_VERSION_ARCH.deb and a .tar.gz of the same, which need
# nothing but what every Debian has, and a PyTorch for jobs: packaging/self_contained.sh puts the rest in.
set(CPACK_GENERATOR "DEB;TGZ")
set(CPACK_PACKAGE_NAME evenkeel)
set(CPACK_PACKAGE_VENDOR "The Evenkeel authors")
set(CPACK_PACKAGE_CONTACT "The Evenkeel authors <evenkeel@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Trains PyTorch models on machines that may vanish")
set(CPACK_PACKAGE_DESCRIPTION "A launcher of training jobs whose workers may come, go and be
killed, the libraries for Python and C++ with which training ends with the
same bits all the same, and a tool that looks after its checkpoints. PyTorch
is not in it: it takes that of the Python that runs the job.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
# All that is of no component: not the link to the LibTorch of this machine.
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};${PROJECT_NAME};Unspecified;/")

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
if(KEEL_WITH_TORCH)
  install(CODE "
    execute_process(COMMAND \"${PROJECT_SOURCE_DIR}/packaging/self_contained.sh\"
                            \"${PROJECT_BINARY_DIR}\" \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\"
                    COMMAND_ERROR_IS_FATAL ANY)
  " COMPONENT self_contained EXCLUDE_FROM_ALL)
  list(APPEND CPACK_INSTALL_CMAKE_PROJECTS
       "${PROJECT_BINARY_DIR}" "${PROJECT_NAME}" self_contained "/")
  # No more than this is needed of Debian 12, whatever the build machine has: tests/packaging looks.
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.36), libstdc++6 (>= 12), libgcc-s1")
  # For paths in buckets and for tokens, which load them.
  set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libcurl4 | libcurl4t64, libssl3 | libssl3t64, python3")
else()
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
# To build programs against it.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, g++, libboost-dev, libboost-filesystem-dev, \
libboost-program-options-dev, libgloo-dev, libspdlog-dev, libxxhash-dev, libzstd-dev, \
nlohmann-json3-dev")
include(CPack)
