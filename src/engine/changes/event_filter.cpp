#include "engine/changes/event_filter.h"

#include <angelia/bson/builder.h>

#include <algorithm>

namespace angelia::engine::changes {

struct EventFilter::Node {
    enum class Kind : std::uint8_t {
        Known,    ///< a condition on fields that the probe has as the event will have them
        Unknown,  ///< a condition on anything else
        And,
        Or,
        Nor,
    };
    Kind kind = Kind::And;
    bool on_namespace = false;  ///< Known, of `ns`
    query::Matcher condition;
    std::vector<Node> children;
};

namespace {

bool starts_path(std::string_view path, std::string_view first) {
    return path.substr(0, path.find('.')) == first;
}

constexpr std::size_t kPinnedValuesMax = 64;

/// An equality with it can be answered by looking the value up. Not null: it equals what is absent.
bool can_be_pinned(bson::ValueView value) {
    switch (value.type()) {
        case bson::Type::String:
        case bson::Type::Bool:
        case bson::Type::Int32:
        case bson::Type::Int64:
        case bson::Type::Double:
        case bson::Type::Date:
        case bson::Type::ObjectId:
        case bson::Type::Binary:
        case bson::Type::Timestamp:
            return true;
        default:
            return false;
    }
}

/// The values a condition allows, or none when it does not say so.
std::vector<bson::ValueView> pinned_by(bson::ValueView condition) {
    std::vector<bson::ValueView> values;
    const auto operators = condition.get_document();
    if (!operators) {
        if (can_be_pinned(condition)) values.push_back(condition);
        return values;
    }
    for (const bson::Element& e : *operators) {
        if (e.key == "$eq" && can_be_pinned(e.value)) return {e.value};
        const auto list = e.value.get_array();
        if (e.key != "$in" || !list || list->count() > kPinnedValuesMax) continue;
        for (const bson::Element& one : *list) {
            if (!can_be_pinned(one.value)) return {};
            values.push_back(one.value);
        }
    }
    return values;
}

void find_pins(bson::DocumentView filter, const std::function<bool(std::string_view)>& allowed,
               std::optional<EventFilter::Pin>& best) {
    for (const bson::Element& e : filter) {
        if (e.key == "$and") {
            for (const bson::Element& part : e.value.as_document())
                find_pins(part.value.as_document(), allowed, best);
            continue;
        }
        if (e.key.starts_with('$') || !allowed(e.key)) continue;
        auto values = pinned_by(e.value);
        if (values.empty() || (best && best->values.size() <= values.size())) continue;
        best = EventFilter::Pin{std::string(e.key), std::move(values)};
    }
}

Verdict negated(Verdict verdict) {
    if (verdict == Verdict::Yes) return Verdict::No;
    return verdict == Verdict::No ? Verdict::Yes : Verdict::Maybe;
}

}  // namespace

EventFilter::EventFilter() : root_(std::make_shared<Node>()) {}

Result<EventFilter> EventFilter::parse(bson::DocumentView match) {
    EventFilter filter;
    ANGELIA_TRY_ASSIGN(filter.matcher_, query::Matcher::parse(match));
    // The matcher's own copy outlives `match`.
    ANGELIA_TRY_ASSIGN(Node root, compile(filter.matcher_.source(), filter.reads_images_));
    filter.root_ = std::make_shared<Node>(std::move(root));
    return filter;
}

Result<EventFilter::Node> EventFilter::compile(bson::DocumentView filter, bool& reads_images) {
    Node all;
    for (const bson::Element& element : filter) {
        const bool logical = element.key == "$and" || element.key == "$or" || element.key == "$nor";
        Node node;
        if (element.key == "$comment") continue;
        if (logical) {
            node.kind = element.key == "$and"  ? Node::Kind::And
                        : element.key == "$or" ? Node::Kind::Or
                                               : Node::Kind::Nor;
            for (const bson::Element& branch :
                 element.value
                     .as_document()) {  // an array of documents: the matcher has checked it
                ANGELIA_TRY_ASSIGN(Node child, compile(branch.value.as_document(), reads_images));
                node.children.push_back(std::move(child));
            }
        } else if (starts_path(element.key, "operationType") || starts_path(element.key, "ns")) {
            node.kind = Node::Kind::Known;
            node.on_namespace = starts_path(element.key, "ns");
            ANGELIA_TRY_ASSIGN(node.condition,
                               query::Matcher::parse(bson::make(element.key, element.value)));
        } else {
            node.kind = Node::Kind::Unknown;
            // An operator at the top ($expr, ...) may look anywhere.
            if (element.key.substr(0, 1) == "$" || starts_path(element.key, "fullDocument") ||
                starts_path(element.key, "fullDocumentBeforeChange"))
                reads_images = true;
        }
        all.children.push_back(std::move(node));
    }
    return all;
}

Verdict EventFilter::evaluate(const Node& node, bson::DocumentView probe, bool knows_namespace) {
    switch (node.kind) {
        case Node::Kind::Known:
            if (node.on_namespace && !knows_namespace) return Verdict::Maybe;
            return node.condition.matches(probe) ? Verdict::Yes : Verdict::No;
        case Node::Kind::Unknown:
            return Verdict::Maybe;
        case Node::Kind::And: {
            Verdict all = Verdict::Yes;
            for (const Node& child : node.children)
                all = std::min(all, evaluate(child, probe, knows_namespace));
            return all;
        }
        case Node::Kind::Or:
        case Node::Kind::Nor: {
            Verdict any = Verdict::No;
            for (const Node& child : node.children)
                any = std::max(any, evaluate(child, probe, knows_namespace));
            return node.kind == Node::Kind::Or ? any : negated(any);
        }
    }
    return Verdict::Maybe;
}

Verdict EventFilter::judge(Operation operation, const EventNamespace& ns) const {
    const bson::Document probe = encode_probe(operation, ns);
    return evaluate(*root_, probe.view(), true);
}

Verdict EventFilter::judge(Operation operation) const {
    const bson::Document probe = encode_probe(operation, {});
    return evaluate(*root_, probe.view(), false);
}

std::optional<EventFilter::Pin> EventFilter::pin(
    const std::function<bool(std::string_view path)>& allowed) const {
    std::optional<Pin> best;
    find_pins(matcher_.source(), allowed, best);
    return best;
}

}  // namespace angelia::engine::changes
