// The $match behind a $changeStream, taken apart so that most events are refused before they are
// encoded.
#pragma once

#include "engine/changes/event.h"
#include "engine/query/matcher.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace angelia::engine::changes {

/// What can be said about an event from its operation and namespace alone.
enum class Verdict : std::uint8_t { No, Maybe, Yes };

/// Immutable after parse; copies share it. Threads: safe.
class EventFilter {
  public:
    /// Lets everything through.
    EventFilter();
    /// Errors: those of Matcher::parse.
    static Result<EventFilter> parse(bson::DocumentView match);

    /// Exact: No and Yes are what matches() would say of every event with this operation and
    /// namespace.
    Verdict judge(Operation operation, const EventNamespace& ns) const;
    /// The same when the namespace is not known: conditions on it say Maybe.
    Verdict judge(Operation operation) const;
    /// Every event that passes has one of `values` at `path` (contained in an array counts): the
    /// filter's condition that names the fewest values, of those with a path that `allowed` takes.
    struct Pin {
        std::string path;
        std::vector<bson::ValueView> values;  ///< views into the filter; never null
    };
    std::optional<Pin> pin(const std::function<bool(std::string_view path)>& allowed) const;
    bool matches(bson::DocumentView event) const { return matcher_.matches(event); }
    /// False when no document before or after the change can change the answer.
    bool reads_images() const { return reads_images_; }

  private:
    struct Node;
    static Result<Node> compile(bson::DocumentView filter, bool& reads_images);
    static Verdict evaluate(const Node& node, bson::DocumentView probe, bool knows_namespace);

    query::Matcher matcher_;
    std::shared_ptr<const Node> root_;  ///< shared by copies; never changes
    bool reads_images_ = false;
};

}  // namespace angelia::engine::changes
