// A folder of its own for one test, removed afterwards.
#pragma once

#include <filesystem>
#include <random>
#include <string>

namespace angelia::engine::storage::testing {

class TempFolder {
  public:
    TempFolder() {
        std::random_device random;
        path_ = std::filesystem::temp_directory_path() /
                ("angelia_storage_" + std::to_string(random()) + std::to_string(random()));
        std::filesystem::create_directory(path_);
    }
    ~TempFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;
    /// The data folder inside, not made yet.
    std::string data() const { return (path_ / "data").string(); }
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

}  // namespace angelia::engine::storage::testing
