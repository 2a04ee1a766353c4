# What is installed: libangelia_core, libangelia_mongo, libangelia_embedded (modules put together), the facade libangelia, public
# headers, the program, a CMake package and pkg-config files.
include(GNUInstallDirs)

get_property(modules GLOBAL PROPERTY ANGELIA_MODULES)
set(core_modules base bson store delivery messaging outbox)
set(mongo_modules store_mongo)
set(embedded_modules wire store_embedded)
foreach(module ${modules})
    if(module MATCHES "^engine")
        list(APPEND embedded_modules ${module})
    endif()
endforeach()
set(facade_modules angelia)

function(angelia_installed_library library)
    set(objects)
    foreach(module ${ARGN})
        get_target_property(type angelia_${module} TYPE)
        if(type STREQUAL "STATIC_LIBRARY")
            list(APPEND objects $<TARGET_OBJECTS:angelia_${module}>)
        endif()
    endforeach()
    if(NOT objects)  # a library whose modules have no source yet
        file(WRITE ${CMAKE_BINARY_DIR}/${library}.cpp "")
        set(objects ${CMAKE_BINARY_DIR}/${library}.cpp)
    endif()
    add_library(${library} STATIC EXCLUDE_FROM_ALL ${objects})
    set_target_properties(${library} PROPERTIES LINKER_LANGUAGE CXX UNITY_BUILD OFF ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
    install(TARGETS ${library} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

angelia_installed_library(installed_core ${core_modules})
angelia_installed_library(installed_mongo ${mongo_modules})
angelia_installed_library(installed_embedded ${embedded_modules})
angelia_installed_library(installed_facade ${facade_modules})
set_target_properties(installed_core PROPERTIES OUTPUT_NAME angelia_core)
set_target_properties(installed_mongo PROPERTIES OUTPUT_NAME angelia_mongo)
set_target_properties(installed_embedded PROPERTIES OUTPUT_NAME angelia_embedded)
set_target_properties(installed_facade PROPERTIES OUTPUT_NAME angelia)
add_custom_target(angelia_installed DEPENDS installed_core installed_mongo installed_embedded installed_facade)

install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/angelia DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

include(CMakePackageConfigHelpers)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/angeliaConfig.cmake.in ${CMAKE_BINARY_DIR}/angeliaConfig.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/angelia PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/angeliaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/angeliaConfig.cmake ${CMAKE_BINARY_DIR}/angeliaConfigVersion.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/angelia)

foreach(part angelia angelia-core angelia-mongo angelia-embedded)
    configure_file(${CMAKE_SOURCE_DIR}/cmake/pkgconfig/${part}.pc.in ${CMAKE_BINARY_DIR}/pkgconfig/${part}.pc @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/pkgconfig/${part}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
