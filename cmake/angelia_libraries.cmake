# Third-party libraries: one imported target each, named after what it is for. Which module may use which:
# docs/decisions/dependencies.md.
find_package(PkgConfig REQUIRED)
pkg_check_modules(LIBBSON REQUIRED IMPORTED_TARGET libbson-1.0)
pkg_check_modules(LIBMONGOC REQUIRED IMPORTED_TARGET libmongoc-1.0)
find_library(ROCKSDB_LIBRARY rocksdb REQUIRED)
add_library(angelia_dep_rocksdb INTERFACE)
target_link_libraries(angelia_dep_rocksdb INTERFACE ${ROCKSDB_LIBRARY} Threads::Threads)
find_library(BID_LIBRARY bidgcc000 REQUIRED)  # the variant with values, rounding and flags as arguments
add_library(angelia_dep_decimal INTERFACE)
target_link_libraries(angelia_dep_decimal INTERFACE ${BID_LIBRARY})
pkg_check_modules(COMPRESSION REQUIRED IMPORTED_TARGET snappy zlib libzstd)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)  # header only
if(ANGELIA_TESTS OR ANGELIA_FUZZ)
    find_package(GTest REQUIRED)
endif()
