#include "cli/demo_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace angelia::cli::demo {
namespace {

constexpr std::size_t kSpelledOutMax = 20;

class Checker {
  public:
    explicit Checker(const Records& records) : records_(records) {
        for (const auto& e : records.effects) effects_[e.message].push_back(&e);
        for (const auto& k : records.kills) kills_.emplace(k.node, k.at_ms);
        answered_.insert(records.answered.begin(), records.answered.end());
    }

    Proof run() {
        std::unordered_set<bson::ObjectId> published;
        for (const auto& p : records_.published) {
            published.insert(p.message);
            switch (p.kind) {
                case Kind::Broadcast:
                    check_broadcast(p);
                    break;
                case Kind::Work:
                    check_work(p);
                    break;
                case Kind::Request:
                    check_request(p);
                    break;
            }
        }
        for (const auto& e : records_.effects) {
            if (published.count(e.message) == 0)
                violation(e.message, fmt::format("was executed by {} and never published", e.node));
        }
        proof_.effects = records_.effects.size();
        return std::move(proof_);
    }

  private:
    const std::vector<const EffectRecord*>& effects_of(const bson::ObjectId& message) const {
        static const std::vector<const EffectRecord*> none;
        const auto found = effects_.find(message);
        return found == effects_.end() ? none : found->second;
    }

    void violation(const bson::ObjectId& message, const std::string& what) {
        ++proof_.violation_count;
        if (proof_.violations.size() < kSpelledOutMax)
            proof_.violations.push_back(fmt::format("message {} {}", message.to_hex(), what));
    }

    void check_broadcast(const PublishedRecord& p) {
        ++proof_.broadcasts;
        std::map<std::string, int> by_node;
        for (const auto* e : effects_of(p.message)) ++by_node[e->node];
        for (const auto& listener : records_.broadcast_listeners) {
            const int n = by_node[listener];
            by_node.erase(listener);
            if (n == 0) ++proof_.missing;
            if (n != 1)
                violation(p.message,
                          fmt::format("(broadcast) has {} effects of {}, not 1", n, listener));
        }
        for (const auto& [node, n] : by_node)
            violation(
                p.message,
                fmt::format("(broadcast) has {} effects of {}, which is no listener", n, node));
    }

    void check_work(const PublishedRecord& p) {
        ++proof_.work;
        std::map<std::int32_t, const EffectRecord*> by_attempt;
        for (const auto* e : effects_of(p.message)) {
            if (!by_attempt.emplace(e->attempt, e).second)
                violation(p.message,
                          fmt::format("(work) has two effects of attempt {}", e->attempt));
        }
        if (by_attempt.empty()) {
            ++proof_.missing;
            violation(p.message, "(work) has no effect");
        }
        for (const auto& [attempt, effect] : by_attempt) {
            if (attempt <= 1) continue;
            ++proof_.later_attempts;
            const auto before = by_attempt.find(attempt - 1);
            if (!may_follow(before == by_attempt.end() ? nullptr : before->second, *effect)) {
                violation(p.message, fmt::format("(work) has attempt {} though the holder before "
                                                 "it was alive and held its lease",
                                                 attempt));
            }
        }
    }

    /// The holder before `next` was killed before `next` began, or its lease had run out by then.
    bool may_follow(const EffectRecord* before, const EffectRecord& next) const {
        if (before ==
            nullptr) {  // claimed, then died before it executed: somebody must have been killed
            return std::any_of(kills_.begin(), kills_.end(),
                               [&](const auto& k) { return k.second <= next.at_ms; });
        }
        const auto kill = kills_.find(before->node);
        return (kill != kills_.end() && kill->second <= next.at_ms) ||
               next.at_ms >= before->leased_until_ms;
    }

    void check_request(const PublishedRecord& p) {
        ++proof_.requests;
        const std::size_t n = effects_of(p.message).size();
        if (n == 0) ++proof_.missing;
        if (n != 1) violation(p.message, fmt::format("(request) has {} effects, not 1", n));
        if (answered_.count(p.message) == 0) {
            ++proof_.missing;
            violation(p.message, "(request) was not answered");
        }
    }

    const Records& records_;
    std::unordered_map<bson::ObjectId, std::vector<const EffectRecord*>> effects_;
    std::unordered_map<std::string, std::int64_t> kills_;
    std::unordered_set<bson::ObjectId> answered_;
    Proof proof_;
};

}  // namespace

Proof check(const Records& records) { return Checker(records).run(); }

}  // namespace angelia::cli::demo
