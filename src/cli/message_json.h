// Messages as JSON objects, one a line: what `publish --messages` reads and `listen -o json`
// prints. Page: docs/formats/cli.md.
#pragma once

#include "cli/input.h"

#include <angelia/base/clock.h>
#include <angelia/base/result.h>
#include <angelia/messaging/message.h>

#include <string>
#include <string_view>

namespace angelia::cli {

/// {topic, value, msg, map_value, additional, exclusive, recipients, priority, ttl (ms),
/// timing_out, delete_after_processing, delete_after_processing_time (ms)}; `topic` is needed,
/// nulls count as absent. Errors: FailedToParse (not JSON: line and column), BadValue (unknown
/// field or wrong type: names the field and what is allowed).
Result<Message> message_from_json(std::string_view line);
Result<Message> message_from_document(bson::DocumentView document);

/// One line of relaxed extended JSON, fields as in the stored document; absent ones left out.
std::string message_to_json(const Message& message);

/// Reads NDJSON: next() gives line by line, skips empty lines, and puts "NAME line N: " before
/// errors.
class LineReader {
  public:
    /// As Input::open().
    static Result<LineReader> open(const std::string& name, const SignalWatch* signals = nullptr);
    /// False at the end. Errors: those of Input, InvalidLength (a line over Input::kBytesMax).
    Result<bool> next(std::string& line);
    std::size_t line_number() const { return number_; }
    std::uint64_t bytes_read() const { return bytes_; }
    std::uint64_t bytes_total() const { return input_.size_bytes(); }  ///< 0 when unknown
    const std::string& name() const { return input_.name(); }
    Error at_line(Error error) const;

  private:
    explicit LineReader(Input input) : input_(std::move(input)) {}
    Input input_;
    std::string buffer_;  ///< read, from `begin_` on not handed out
    std::size_t begin_ = 0;
    bool ended_ = false;
    std::size_t number_ = 0;
    std::uint64_t bytes_ = 0;
};

}  // namespace angelia::cli
