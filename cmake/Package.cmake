# What `cpack` in the build folder makes: evenkeel_VERSION_ARCH.deb and a .tar.gz of the same. Neither
# holds LibTorch, nor says where it is: whoever unpacks one links lib/evenkeel/torch to it.
set(CPACK_GENERATOR "DEB;TGZ")
set(CPACK_PACKAGE_NAME evenkeel)
set(CPACK_PACKAGE_VENDOR "The Evenkeel authors")
set(CPACK_PACKAGE_CONTACT "The Evenkeel authors <evenkeel@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Trains PyTorch models in C++ on machines that may vanish")
set(CPACK_PACKAGE_DESCRIPTION "A launcher of training jobs whose workers may come, go and be
killed, the library with which a training program ends with the same bits all
the same, and a tool that looks after its checkpoints. LibTorch is not in it:
link /usr/lib/evenkeel/torch to one.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
# All that is of no component: not the link to the LibTorch of this machine.
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};${PROJECT_NAME};Unspecified;/")

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Libraries that no package has, but dpkg-shlibdeps wants to see.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "")
if(KEEL_WITH_TORCH)
  list(APPEND CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${KEEL_TORCH_FOUND_DIR}/lib)
endif()
# To build programs against it.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, g++, libboost-dev, libboost-filesystem-dev, \
libboost-program-options-dev, libgloo-dev, libspdlog-dev, libxxhash-dev, libzstd-dev, \
nlohmann-json3-dev")
include(CPack)
