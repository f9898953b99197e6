# Prints each option as CMake offers it: NAME|TYPE|DEFAULT|CHOICE;CHOICE|DESCRIPTION. Run with cmake -P,
# so that no configured value hides a default.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/Options.cmake)
keel_read_options(${CMAKE_CURRENT_LIST_DIR}/../../meson_options.txt)
foreach(name IN LISTS KEEL_OPTIONS)
  foreach(property TYPE STRINGS HELPSTRING)
    get_property(${property} CACHE ${name} PROPERTY ${property})
  endforeach()
  execute_process(COMMAND ${CMAKE_COMMAND} -E echo
                          "${name}|${TYPE}|${${name}}|${STRINGS}|${HELPSTRING}")
endforeach()
