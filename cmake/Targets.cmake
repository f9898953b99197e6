# How this project declares libraries, programs and tests. Which files a target is made of stands beside
# them, in a sources.txt that Meson reads as well. TORCH on a target means: it includes LibTorch's
# headers, and shares the precompiled form of
# its tensors and groups; TORCH_API: it includes torch/torch.h, which makes many more templates in each
# file, needed or not, and shares the precompiled form of all that.
include(GNUInstallDirs)

set(KEEL_HEADER_DIR ${CMAKE_INSTALL_INCLUDEDIR}/evenkeel)

# Flags of every target of ours. -fPIC everywhere (not CMake's per-kind choice), since a precompiled
# header only serves files compiled with the very same flags.
add_library(keel_flags INTERFACE)
target_compile_features(keel_flags INTERFACE cxx_std_20)
target_compile_options(keel_flags INTERFACE -fPIC -Wall -Wextra)
target_include_directories(keel_flags INTERFACE ${PROJECT_SOURCE_DIR})
# What a program does not call is left out of it: files that are compiled as one come as one.
target_compile_options(keel_flags INTERFACE $<$<CONFIG:Release>:-ffunction-sections -fdata-sections>)
target_link_options(keel_flags INTERFACE $<$<CONFIG:Release>:LINKER:--gc-sections>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12's false alarms: -Wrestrict on "text" + std::string, and, with sanitizers on, a moved-from
  # variant that it takes for an uninitialised one, or for the larger of its two types. The last two
  # are those of the system's headers, which are not taken for the system's once they are precompiled.
  target_compile_options(keel_flags INTERFACE -Wno-restrict)
  if(NOT KEEL_SANITIZE STREQUAL "none")
    target_compile_options(keel_flags INTERFACE -Wno-maybe-uninitialized -Wno-array-bounds
                                                -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endif()
if(KEEL_SANITIZE_ALL)
  target_compile_definitions(keel_flags INTERFACE KEEL_ALL_ROUNDS)   # tests/harness/sanitizers.h
endif()
if(KEEL_SANITIZE STREQUAL "address")
  target_compile_definitions(keel_flags INTERFACE KEEL_UNDER_ADDRESS_SANITIZER)
  # Checks of memory are calls: written out each time, they take a tenth of GCC's compile time.
  target_compile_options(keel_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all
                                              -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(keel_flags INTERFACE --param=asan-instrumentation-with-call-threshold=0)
  endif()
  if(NOT KEEL_SANITIZE_ALL)
    # The first two are what AddressSanitizer finds by itself.
    target_compile_options(keel_flags INTERFACE -fno-sanitize=null,object-size,alignment,vptr)
  endif()
  target_link_options(keel_flags INTERFACE -fsanitize=address,undefined)
elseif(KEEL_SANITIZE STREQUAL "thread")
  # ThreadSanitizer does not know fences. Asio's stand beside locks that it does know.
  target_compile_definitions(keel_flags INTERFACE BOOST_ASIO_DISABLE_FENCED_BLOCK
                                                  KEEL_UNDER_THREAD_SANITIZER)
  target_compile_options(keel_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(keel_flags INTERFACE -fsanitize=thread)
endif()
if(NOT KEEL_SANITIZE STREQUAL "none" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # GNU's linker takes four times as long for what the sanitizers make of our programs.
  find_program(KEEL_LLD ld.lld DOC "LLVM's linker, for the sanitizers' builds")
  mark_as_advanced(KEEL_LLD)
  if(KEEL_LLD)
    target_link_options(keel_flags INTERFACE -fuse-ld=lld)
  endif()
endif()

set(KEEL_TORCH_FLAGS)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # A method of ours overrides one that not all versions of LibTorch have.
  set(KEEL_TORCH_FLAGS -Wno-inconsistent-missing-override)
endif()

# The precompiled LibTorch headers, made once and reused by every TORCH and TORCH_API target.
function(keel_make_torch_pch)
  foreach(name torch torch_api)
    add_library(keel_${name}_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/torch_pch.cc)
    target_link_libraries(keel_${name}_pch PRIVATE keel_flags keel_torch)
    target_compile_options(keel_${name}_pch PRIVATE ${KEEL_TORCH_FLAGS})
    target_precompile_headers(keel_${name}_pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/${name}_pch.h)
  endforeach()
endfunction()

# Files are compiled several at once, since most of the time goes into what their headers bring, and each
# file with LibTorch makes its inline templates anew, which takes 4 s, and 7.5 s for those of
# torch/torch.h. The debug preset, in which one develops, compiles each by itself: it shows that a file
# includes what it uses, which tests/run.sh --nightly looks at. In sanitized builds and in the fuzzers',
# files without LibTorch share the standard library's headers, precompiled.
set(KEEL_FILES_AT_ONCE 7 CACHE STRING "How many files of a target are compiled as one (1: each by itself)")
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/compiled_alone.txt KEEL_COMPILED_ALONE)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
             ${CMAKE_CURRENT_LIST_DIR}/compiled_alone.txt)
function(keel_make_plain_pch)
  if(KEEL_PCH AND (KEEL_FUZZERS OR NOT KEEL_SANITIZE STREQUAL "none"))
    add_library(keel_plain_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/plain_pch.cc)
    target_link_libraries(keel_plain_pch PRIVATE keel_flags)
    target_precompile_headers(keel_plain_pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/plain_pch.h)
  endif()
endfunction()

# Of keel_common_settings() alone. Files whose local names would meet those of another, which
# cmake/compiled_alone.txt names, stay by themselves.
function(keel_compile_several_at_once target)
  if(KEEL_FILES_AT_ONCE LESS 2)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${KEEL_FILES_AT_ONCE})
  # GCC takes a local type in a class of the same file for one of a header.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${source})
    if(name IN_LIST KEEL_COMPILED_ALONE)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()

# keel_common_settings(target TORCH SMALL): which of LibTorch's headers it includes, or nothing.
function(keel_common_settings target)
  cmake_parse_arguments(ARG "TORCH;TORCH_API;OF_A_TEST;SMALL" "" "" ${ARGN})
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:keel_flags>)
  if(ARG_TORCH OR ARG_TORCH_API)
    target_link_libraries(${target} PRIVATE keel_torch)
    target_compile_options(${target} PRIVATE ${KEEL_TORCH_FLAGS})
  endif()
  if(ARG_SMALL AND (ARG_TORCH OR ARG_TORCH_API))
    target_compile_options(${target} PRIVATE ${KEEL_SMALL_TORCH_FLAGS})
  elseif(ARG_SMALL)
    target_compile_options(${target} PRIVATE ${KEEL_SMALL_FLAGS})
  endif()
  if(ARG_TORCH AND TARGET keel_torch_pch)
    target_precompile_headers(${target} REUSE_FROM keel_torch_pch)
  elseif(ARG_TORCH_API AND TARGET keel_torch_api_pch)
    target_precompile_headers(${target} REUSE_FROM keel_torch_api_pch)
  elseif(TARGET keel_plain_pch AND NOT ARG_OF_A_TEST)
    target_precompile_headers(${target} REUSE_FROM keel_plain_pch)
  endif()
  keel_compile_several_at_once(${target})
endfunction()

# Sets `torch` to what of LibTorch the caller was asked for, and `small` to SMALL if it was.
macro(keel_torch_of_arguments)
  set(torch)
  set(small)
  if(ARG_SMALL)
    set(small SMALL)
  endif()
  foreach(option TORCH TORCH_API)
    if(ARG_${option})
      list(APPEND torch ${option})
    endif()
  endforeach()
endmacro()

# keel_sources(out base [FOLDER wing]): the files that sources.txt names for that target. A line that
# ends with a colon names targets, and those below it are the files of each of them.
function(keel_sources out name)
  cmake_parse_arguments(ARG "" "FOLDER" "" ${ARGN})
  set(folder ${CMAKE_CURRENT_SOURCE_DIR})
  if(ARG_FOLDER)
    string(APPEND folder /${ARG_FOLDER})
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/sources.txt)
  file(STRINGS ${folder}/sources.txt lines)
  set(sources)
  set(is_ours FALSE)
  foreach(line IN LISTS lines)
    string(STRIP "${line}" line)
    if(line MATCHES "^(.+):$")
      string(REPLACE " " ";" names "${CMAKE_MATCH_1}")
      set(is_ours FALSE)
      if(name IN_LIST names)
        set(is_ours TRUE)
      endif()
    elseif(is_ours AND NOT line STREQUAL "" AND NOT line MATCHES "^#")
      list(APPEND sources ${folder}/${line})
    endif()
  endforeach()
  if(NOT sources)
    message(FATAL_ERROR "${folder}/sources.txt has no files of ${name}")
  endif()
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

# What decides and waits, and goes over no model's bytes, is made small: packed it takes a quarter less
# than what -O3 makes of it, and a quarter less time to compile. With LibTorch -O1 comes close, and takes
# the precompiled header, which GCC refuses under -Os.
set(KEEL_SMALL_FLAGS $<$<CONFIG:Release>:-Os>)
set(KEEL_SMALL_TORCH_FLAGS $<$<CONFIG:Release>:-O1>)
if(KEEL_FUZZERS OR NOT KEEL_SANITIZE STREQUAL "none")   # they share a precompiled header, too
  set(KEEL_SMALL_FLAGS ${KEEL_SMALL_TORCH_FLAGS})
endif()

# keel_library(base LINK PUBLIC other PRIVATE third [FOLDER wing] [INTERNAL] [SMALL] [TORCH | TORCH_API])
# INTERNAL: a part of programs that is not installed.
function(keel_library name)
  cmake_parse_arguments(ARG "TORCH;TORCH_API;INTERNAL;SMALL" "FOLDER" "LINK" ${ARGN})
  set(target keel_${name})
  keel_sources(sources ${name} FOLDER ${ARG_FOLDER})
  add_library(${target} STATIC ${sources})
  add_library(Evenkeel::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                 $<INSTALL_INTERFACE:${KEEL_HEADER_DIR}>)
  target_link_libraries(${target} ${ARG_LINK})
  keel_torch_of_arguments()
  keel_common_settings(${target} ${torch} ${small})
  if(NOT ARG_INTERNAL)
    install(TARGETS ${target} EXPORT EvenkeelTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endfunction()

# keel_program(keelrun LINK ... [TORCH | TORCH_API] [SMALL] [INSTALL])
function(keel_program name)
  cmake_parse_arguments(ARG "TORCH;TORCH_API;INSTALL;SMALL" "" "LINK" ${ARGN})
  keel_sources(sources ${name})
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  keel_torch_of_arguments()
  keel_common_settings(${name} ${torch} ${small})
  if(ARG_INSTALL)
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endfunction()

# keel_module(keel_s3 LINK ... [FOLDER wing]): what programs load once they need it. It shows nothing
# of the libraries that it is made of, so what it does not call is left out.
function(keel_module name)
  cmake_parse_arguments(ARG "" "FOLDER" "LINK" ${ARGN})
  keel_sources(sources ${name} FOLDER ${ARG_FOLDER})
  add_library(${name} MODULE ${sources})
  target_link_libraries(${name} PRIVATE keel_flags ${ARG_LINK})
  target_link_options(${name} PRIVATE LINKER:--exclude-libs,ALL)
  install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/evenkeel)
endfunction()

# What tests/run.sh builds and runs under a sanitizer: the programs, and the tests of these labels.
add_custom_target(asan_tests)
add_custom_target(tsan_tests)

# The precompiled form of what every test includes, for those that do not include LibTorch.
function(keel_make_test_pch)
  if(KEEL_PCH AND KEEL_TESTS)
    add_library(keel_test_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/test_pch.cc)
    target_link_libraries(keel_test_pch PRIVATE keel_flags GTest::gmock)
    target_compile_options(keel_test_pch PRIVATE ${KEEL_TEST_FLAGS})
    target_precompile_headers(keel_test_pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/test_pch.h)
  endif()
endfunction()

# A test's own code runs once: half of its compile time was spent on making that fast. With LibTorch it
# shares a precompiled header, which GCC takes only where both are optimised, or neither.
set(KEEL_TEST_FLAGS $<$<CONFIG:Release,RelWithDebInfo>:-O0>)
set(KEEL_TORCH_TEST_FLAGS $<$<CONFIG:Release>:-O1>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Once precompiled, the system's headers are not taken for the system's any more, and GCC 12 gives
  # its false alarms on "text" + std::string.
  set(false_alarms -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  list(APPEND KEEL_TEST_FLAGS ${false_alarms})
  list(APPEND KEEL_TORCH_TEST_FLAGS ${false_alarms})
endif()

# keel_test(base_test LINK ... [LABELS unit] [TIMEOUT 300] [OWN_MAIN] [ALONE Suite Other.Test ... | "*"]
#           [SANITIZERS asan tsan] [TORCH | TORCH_API])
# Every suite becomes a test of CTest, run in one process within TIMEOUT; under ThreadSanitizer only
# those with the label unit.
# ALONE: what needs a process of its own or takes seconds, so that each TEST() is a test of CTest
# (DiscoverTests.cmake knows more).
# OWN_MAIN: the sources bring main(); each TEST() is alone, since what guards processes looks for those
# left over when a program ends. Suites whose names begin with "Nightly" are for tests/run.sh --nightly.
# SANITIZERS: under which tests/run.sh runs it, too; each is one more of its labels. With LibTorch, it
# computes with one thread unless it says otherwise: several spin while they wait for one that the test
# beside it keeps from running.
function(keel_test name)
  cmake_parse_arguments(ARG "TORCH;TORCH_API;OWN_MAIN" "TIMEOUT" "LINK;LABELS;SANITIZERS;ALONE"
                        ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  # It tells a test that hangs, not a slow one.
  if(NOT KEEL_SANITIZE STREQUAL "none")
    math(EXPR ARG_TIMEOUT "5 * ${ARG_TIMEOUT}")
  endif()
  # What a suite leaks is told, with who allocated it, when its process ends. ThreadSanitizer does not
  # take every fork where threads once were: under it, only the suites of unit tests share a process.
  if(KEEL_SANITIZE STREQUAL "thread" AND NOT "unit" IN_LIST ARG_LABELS)
    set(ARG_ALONE "*")
  endif()
  keel_sources(sources ${name})
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  if(ARG_OWN_MAIN)
    target_link_libraries(${name} PRIVATE GTest::gmock)
    set(ARG_ALONE "*")
  else()
    target_link_libraries(${name} PRIVATE GTest::gmock_main)
  endif()
  keel_torch_of_arguments()
  keel_common_settings(${name} ${torch} OF_A_TEST)
  target_compile_definitions(${name} PRIVATE KEEL_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}"
                                             KEEL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(torch)
    target_compile_options(${name} PRIVATE ${KEEL_TORCH_TEST_FLAGS})
  else()
    target_compile_options(${name} PRIVATE ${KEEL_TEST_FLAGS})
  endif()
  if(TARGET keel_test_pch AND NOT torch)
    target_precompile_headers(${name} REUSE_FROM keel_test_pch)
  endif()
  foreach(sanitizer IN LISTS ARG_SANITIZERS)
    add_dependencies(${sanitizer}_tests ${name})
  endforeach()
  set(environment)
  if(torch)
    set(environment OMP_NUM_THREADS=1)
  endif()
  keel_discover_tests()
endfunction()

# Of keel_test() alone, whose variables it takes: has DiscoverTests.cmake write what CTest reads, which
# says so where the program has not been built.
function(keel_discover_tests)
  set(script ${PROJECT_SOURCE_DIR}/cmake/DiscoverTests.cmake)
  set(tests ${CMAKE_CURRENT_BINARY_DIR}/${name}_tests.cmake)
  set(labels ${ARG_LABELS} ${ARG_SANITIZERS})
  set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS ${script})
  add_custom_command(TARGET ${name} POST_BUILD BYPRODUCTS ${tests} VERBATIM
    COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:${name}> -D FOLDER=${CMAKE_CURRENT_BINARY_DIR}
            -D OUTPUT=${tests} -D "SOURCES=${sources}" -D "ALONE=${ARG_ALONE}" -D "LABELS=${labels}"
            -D TIMEOUT=${ARG_TIMEOUT} -D ENVIRONMENT=${environment} -P ${script})
  set(included ${CMAKE_CURRENT_BINARY_DIR}/${name}_include.cmake)
  file(WRITE ${included}
       "include([==[${tests}]==] OPTIONAL RESULT_VARIABLE found)\n"
       "if(NOT found)\n  add_test(${name}_NOT_BUILT ${name}_NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${included})
endfunction()

# keel_install_headers(base): what its sources.txt names as headers, which strangers may include.
function(keel_install_headers folder)
  keel_sources(headers headers FOLDER ${folder})
  foreach(header IN LISTS headers)
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${header})
    cmake_path(GET path PARENT_PATH below)
    install(FILES ${header} DESTINATION ${KEEL_HEADER_DIR}/${below})
  endforeach()
endfunction()
