// The private changes of a transaction on its snapshot. Internal to this folder.
#pragma once

#include "engine/storage/database.h"
#include "engine/storage/storage.h"

namespace angelia::engine::storage {

std::unique_ptr<Workspace> make_workspace(DatabasePtr database, SnapshotPtr snapshot);

}  // namespace angelia::engine::storage
