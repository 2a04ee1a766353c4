// Messages as JSON objects, one a line: what `publish --messages` reads and `listen -o json`
// prints. Page: docs/formats/cli.md.
#pragma once

#include <angelia/base/clock.h>
#include <angelia/base/result.h>
#include <angelia/messaging/message.h>

#include <istream>
#include <memory>
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
    /// `name`: a path, or "-" for stdin. Error: FileNotOpen.
    static Result<LineReader> open(const std::string& name);
    LineReader(LineReader&&) = default;
    ~LineReader();
    /// False at the end.
    Result<bool> next(std::string& line);
    std::size_t line_number() const { return number_; }
    std::uint64_t bytes_read() const { return bytes_; }
    std::uint64_t bytes_total() const { return total_; }  ///< 0 when unknown
    Error at_line(Error error) const;

  private:
    LineReader() = default;
    std::string name_;
    std::unique_ptr<std::istream> file_;  ///< null: stdin
    std::size_t number_ = 0;
    std::uint64_t bytes_ = 0, total_ = 0;
};

}  // namespace angelia::cli
