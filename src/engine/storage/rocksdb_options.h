// How we ask RocksDB to behave. The reasons stand beside the settings in the .cpp.
#pragma once

#include "engine/storage/database.h"

#include <rocksdb/options.h>

#include <vector>

namespace angelia::engine::storage {

/// Keys of records and index entries begin with the number of their collection or index; a range
/// deletion of these families begins with that alone (rocksdb_options.cpp says why).
inline constexpr std::size_t kPlacePrefixBytes = 4;

/// Version of everything in the data folder. A newer major is refused; a newer minor may be read.
inline constexpr std::uint32_t kFormatMajor = 1;
inline constexpr std::uint32_t kFormatMinor = 0;

struct RocksdbSettings {
    rocksdb::DBOptions database;
    std::vector<rocksdb::ColumnFamilyDescriptor> families;  ///< in the order of `Family`
};

RocksdbSettings rocksdb_settings(const Options& options, rocksdb::Env& environment,
                                 const std::shared_ptr<BackgroundErrors>& errors);

}  // namespace angelia::engine::storage
