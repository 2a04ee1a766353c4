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
    query::Matcher condition;
    std::vector<Node> children;
};

namespace {

bool starts_path(std::string_view path, std::string_view first) {
    return path.substr(0, path.find('.')) == first;
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

Verdict EventFilter::evaluate(const Node& node, bson::DocumentView probe) {
    switch (node.kind) {
        case Node::Kind::Known:
            return node.condition.matches(probe) ? Verdict::Yes : Verdict::No;
        case Node::Kind::Unknown:
            return Verdict::Maybe;
        case Node::Kind::And: {
            Verdict all = Verdict::Yes;
            for (const Node& child : node.children) all = std::min(all, evaluate(child, probe));
            return all;
        }
        case Node::Kind::Or:
        case Node::Kind::Nor: {
            Verdict any = Verdict::No;
            for (const Node& child : node.children) any = std::max(any, evaluate(child, probe));
            return node.kind == Node::Kind::Or ? any : negated(any);
        }
    }
    return Verdict::Maybe;
}

Verdict EventFilter::judge(Operation operation, const EventNamespace& ns) const {
    const bson::Document probe = encode_probe(operation, ns);
    return evaluate(*root_, probe.view());
}

}  // namespace angelia::engine::changes
