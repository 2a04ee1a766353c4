// Typed access to the fields of a command, with MongoDB's errors for what is missing, of the wrong
// type, or unknown.
#pragma once

#include <angelia/base/result.h>
#include <angelia/bson/document.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace angelia::engine::command {

struct CommandEntry;
class Call;

/// 14 TypeMismatch: "BSON field 'find.limit' is the wrong type 'string', expected type 'number'".
Error wrong_type(std::string_view field, bson::ValueView value, std::string_view expected);
/// 40414: "BSON field 'find.filter' is missing but a required field".
Error missing_field(std::string_view field);
/// 40415: "BSON field 'find.x' is an unknown field."
Error unknown_field(std::string_view field);

/// Reads fields of one document; `where` is its name in messages, e.g. "find" or "update.updates".
/// Null counts as absent, as in MongoDB.
class Arguments {
  public:
    Arguments(std::string_view where, bson::DocumentView document)
        : where_(where), document_(document) {}

    bson::ValueView value(std::string_view field) const;  ///< missing when absent or null
    Result<bson::ValueView> required(std::string_view field) const;
    Result<bool> boolean(std::string_view field, bool otherwise) const;  ///< also numbers
    Result<std::optional<std::int64_t>> integer(std::string_view field) const;
    /// Location51024 when negative.
    Result<std::int64_t> non_negative(std::string_view field, std::int64_t otherwise) const;
    Result<bson::DocumentView> document(std::string_view field) const;  ///< {} when absent
    Result<std::optional<bson::DocumentView>> array(std::string_view field) const;
    Result<std::optional<std::string_view>> string(std::string_view field) const;
    /// For options that change the result and do not exist here: an error when one of them is
    /// given, unless it says nothing (null, false, {}). Errors: NotImplemented.
    Result<void> none_of(std::span<const std::string_view> fields) const;
    /// Collations change comparisons: only {locale: "simple"}, which means none, is accepted.
    /// Errors: NotImplemented, TypeMismatch.
    Result<void> no_collation() const;
    Result<void> only(
        std::span<const std::string_view> allowed) const;  ///< Location40415 for any other field

  private:
    std::string path(std::string_view field) const;
    std::string where_;
    bson::DocumentView document_;
};

/// Checks the top-level fields of a command and reads its generic arguments into call.generic().
/// Errors: those of the pieces; OperationNotSupportedInTransaction for transactions, which come
/// later; InvalidOptions for a concern that the command does not take; APIVersionError,
/// APIStrictError.
Result<void> read_generic_arguments(Call& call);

}  // namespace angelia::engine::command
