// What a command reads: a file, or stdin. By hand and not by a stream, because every error must be
// told apart from the end, and a signal must end the wait for a terminal or a pipe.
#pragma once

#include <angelia/base/result.h>

#include <cstdint>
#include <string>

namespace angelia::cli {

class SignalWatch;

/// Not thread-safe.
class Input {
  public:
    static constexpr std::size_t kBytesMax = 64 * 1024 * 1024;  ///< of one JSON text: a document
                                                                ///< has 16 MiB, JSON is wordier

    /// `name`: a path, or "-" for stdin. `signals`: what ends a read that waits; may be null, else
    /// it must outlive this. Errors: FileNotOpen (absent, a folder, closed stdin).
    static Result<Input> open(const std::string& name, const SignalWatch* signals = nullptr);
    Input(Input&& other) noexcept;
    Input& operator=(Input&&) = delete;
    ~Input();

    /// Appends what is there, waiting for the first byte; false at the end. Errors:
    /// FileStreamFailed, Interrupted (a signal came).
    Result<bool> read_some(std::string& into);
    /// Everything. Errors also: InvalidLength (more than kBytesMax).
    Result<std::string> read_all();
    const std::string& name() const { return name_; }
    std::uint64_t size_bytes() const { return size_; }  ///< 0 when unknown

  private:
    Input() = default;
    std::string name_;
    int fd_ = -1;
    bool owned_ = false;
    std::uint64_t size_ = 0;
    const SignalWatch* signals_ = nullptr;
};

}  // namespace angelia::cli
