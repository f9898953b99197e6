# Writes keel_targets.txt into the build folder: what this build makes, one target a line, as
# NAME|TYPE. tests/house/compare_builds.py compares it with what Meson makes. The precompiled headers
# of tests, and those of sanitized builds, are no product: Meson goes without them.
function(keel_list_targets directory out)
  set(lines "")
  get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    get_target_property(sources ${target} SOURCES)
    if(type MATCHES "INTERFACE_LIBRARY|UTILITY" OR NOT sources OR target MATCHES "^keel_(test|plain)_pch$")
      continue()
    endif()
    string(APPEND lines "${target}|${type}\n")
  endforeach()
  get_property(below DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  foreach(subdirectory IN LISTS below)
    keel_list_targets(${subdirectory} more)
    string(APPEND lines "${more}")
  endforeach()
  set(${out} "${lines}" PARENT_SCOPE)
endfunction()

keel_list_targets(${PROJECT_SOURCE_DIR} keel_targets)
file(WRITE ${PROJECT_BINARY_DIR}/keel_targets.txt "${keel_targets}")
