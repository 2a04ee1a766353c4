#include "world.h"

#include <algorithm>

namespace angelia::simulation {
namespace {

using messaging::Message;
using messaging::Reply;
using namespace std::chrono_literals;

/// Passes every call on; a mutant breaks one of them.
class MutantStore final : public store::StoreAdapter {
  public:
    MutantStore(std::shared_ptr<store::StoreAdapter> real, Mutant mutant, std::uint64_t seed)
        : real_(std::move(real)), mutant_(mutant), random_(seed) {}

    Result<store::InsertResult> insert(const store::CollectionName& c,
                                       std::span<const bson::DocumentView> d, bool ordered,
                                       const store::CallOptions& o) override {
        return real_->insert(c, d, ordered, o);
    }
    Result<std::vector<bson::Document>> find(const store::FindRequest& r,
                                             const store::CallOptions& o) override {
        return real_->find(r, o);
    }
    Result<store::UpdateResult> update(const store::CollectionName& c,
                                       std::vector<store::UpdateOp> ops, bool ordered,
                                       const store::CallOptions& o) override {
        if (mutant_ == Mutant::EventsAndPollsRepeat && c.collection == "msg") {
            // The mark looks written and is not.
            ops.erase(std::remove_if(
                          ops.begin(), ops.end(),
                          [](const store::UpdateOp& op) { return op.update.has("$addToSet"); }),
                      ops.end());
            if (ops.empty()) return store::UpdateResult{};
        }
        return real_->update(c, std::move(ops), ordered, o);
    }
    Result<std::optional<bson::Document>> find_and_modify(store::FindAndModifyRequest r,
                                                          const store::CallOptions& o) override {
        return real_->find_and_modify(std::move(r), o);
    }
    Result<store::DeleteResult> remove(const store::CollectionName& c,
                                       std::vector<store::DeleteOp> ops, bool ordered,
                                       const store::CallOptions& o) override {
        return real_->remove(c, std::move(ops), ordered, o);
    }
    Result<store::BulkResult> bulk_write(std::vector<store::BulkOp> ops, bool ordered,
                                         const store::CallOptions& o) override {
        if (mutant_ == Mutant::EventsAndPollsRepeat) {
            ops.erase(std::remove_if(ops.begin(), ops.end(),
                                     [](const store::BulkOp& op) {
                                         return op.collection.collection == "msg" &&
                                                op.update.update.has("$addToSet");
                                     }),
                      ops.end());
            if (ops.empty()) return store::BulkResult{};
        }
        return real_->bulk_write(std::move(ops), ordered, o);
    }
    Result<store::ClaimResult> claim(store::ClaimRequest r, const store::CallOptions& o) override {
        const auto documents = r.documents;
        std::vector<bson::Document> ids;
        for (const auto& c : r.candidates) ids.push_back(bson::make("_id", c.lock["_id"]));
        auto result = real_->claim(std::move(r), o);
        if (!result) return result;
        if (mutant_ == Mutant::ClaimsOfOthersCount) {
            for (auto& entry : result->entries) {
                if (entry.outcome == store::ClaimResult::Outcome::Locked)
                    entry.outcome = store::ClaimResult::Outcome::Claimed;
            }
        }
        if (mutant_ == Mutant::MessagesVanish && random_() % 10 == 0) {
            std::vector<store::DeleteOp> ops(1);
            ops[0].filter = std::move(ids.front());
            static_cast<void>(real_->remove(documents, std::move(ops), true, o));
            result->entries.front().outcome = store::ClaimResult::Outcome::Changed;
        }
        return result;
    }
    Result<std::int64_t> count(const store::CollectionName& c, bson::DocumentView f,
                               const store::CallOptions& o) override {
        return real_->count(c, f, o);
    }
    Result<void> ensure_indexes(const store::CollectionName& c,
                                std::vector<store::IndexDefinition> i,
                                const store::CallOptions& o) override {
        return real_->ensure_indexes(c, std::move(i), o);
    }
    Result<void> drop(const store::CollectionName& c, const store::CallOptions& o) override {
        return real_->drop(c, o);
    }
    Result<std::vector<std::string>> list_collections(std::string_view db,
                                                      const store::CallOptions& o) override {
        return real_->list_collections(db, o);
    }
    Result<std::unique_ptr<store::Watch>> watch(store::WatchRequest r,
                                                store::WatchEvents e) override {
        return real_->watch(std::move(r), std::move(e));
    }
    Result<store::ServerTime> server_time(const store::CallOptions& o) override {
        return real_->server_time(o);
    }
    Result<store::Capabilities> capabilities() override { return real_->capabilities(); }
    Result<std::unique_ptr<store::Session>> start_session() override {
        return real_->start_session();
    }
    std::unique_ptr<store::Diagnostics> diagnostics() override { return real_->diagnostics(); }
    std::string describe() const override { return real_->describe(); }
    Result<void> close() override { return real_->close(); }

  private:
    std::shared_ptr<store::StoreAdapter> real_;
    Mutant mutant_;
    std::mt19937_64 random_;
};

class World {
  public:
    World(std::uint64_t seed, Mutant mutant) : mutant_(mutant), random_(seed), cluster_(seed | 1) {}

    Report play() {
        lease_ = milliseconds(std::int64_t{500} << below(3));
        use_streams_ = below(8) != 0;
        start_node();
        start_node();
        const std::size_t steps = 30 + below(50);
        for (std::size_t i = 0; i < steps; ++i) step();
        heal();
        check();
        return std::move(report_);
    }

  private:
    struct Node {
        messaging::testing::SimNode* sim = nullptr;
        std::string id;
        std::int64_t listening_since = 0;  // number of messages published before
        bool paused = false;
        int failures_percent = 0;   // of store calls, when the weather is bad
        bool replies_only = false;  // the call happens, the reply is lost
    };
    struct Published {
        bson::ObjectId id;
        bool exclusive = false;
        std::int64_t number = 0;
    };

    std::size_t below(std::size_t n) { return random_() % n; }
    bool percent(int p) { return static_cast<int>(below(100)) < p; }

    void start_node() {
        auto node = std::make_unique<Node>();
        node->id = "node-" + std::to_string(nodes_.size());
        messaging::Options options;
        options.threads = 1 + below(4);
        options.window = 1 + below(20);
        options.lease = lease_;
        options.settle_delay = milliseconds(below(3) * below(10));
        options.use_streams = use_streams_;
        options.heartbeat = 5s;
        Node* raw = node.get();
        auto& sim = cluster_.add(
            node->id, std::move(options),
            [&](std::shared_ptr<store::StoreAdapter> real) -> std::shared_ptr<store::StoreAdapter> {
                if (mutant_ == Mutant::None) return real;
                return std::make_shared<MutantStore>(std::move(real), mutant_, random_());
            });
        node->sim = &sim;
        sim.store->set_fault_before(
            [this, raw](const store::testing::SimulatedCall&) -> std::optional<Error> {
                if (raw->paused) return Error(ErrorCode::HostUnreachable, "asleep");
                if (!raw->replies_only && percent(raw->failures_percent))
                    return Error(ErrorCode::NetworkTimeout, "lost on the way");
                return std::nullopt;
            });
        sim.store->set_fault_after(
            [this, raw](const store::testing::SimulatedCall&) -> std::optional<Error> {
                if (raw->replies_only && percent(raw->failures_percent))
                    return Error(ErrorCode::NetworkTimeout, "reply lost");
                return std::nullopt;
            });
        sim.bus->listen("work", [this, raw](const Message& m) { return on_work(*raw, m); })
            .value_or_throw();
        sim.bus->listen("news", [this, raw](const Message& m) { return on_news(*raw, m); })
            .value_or_throw();
        sim.bus->start().value_or_throw();
        node->listening_since = published_count_;
        nodes_.push_back(std::move(node));
        cluster_.settle();
    }

    Reply on_work(Node& node, const Message& m) {
        if (m.is_answer()) return messaging::no_answer();  // to a message that nobody waited for
        ++report_.executions;
        if (!executions_.insert({m.id, m.attempt}).second) {
            report_.broken.push_back("message " + m.id.to_hex() + " ran twice in attempt " +
                                     std::to_string(m.attempt));
        }
        if (!healing_ && depth_ == 0) {
            if (percent(3)) {
                crash(node);
                return messaging::no_answer();
            }
            if (percent(3)) {
                // The process sleeps past its lease; others go on.
                ++depth_;
                node.paused = true;
                cluster_.pass(lease_ * 2);
                node.paused = false;
                --depth_;
            }
            if (percent(10)) return messaging::reject("bad luck");
            if (percent(2)) throw std::runtime_error("worse luck");
        }
        done_.insert(m.id);
        return messaging::answer("done");
    }

    Reply on_news(Node& node, const Message& m) {
        if (!healing_ && percent(5)) return messaging::reject("bad luck");
        ++heard_[{m.id, node.id}];
        return messaging::no_answer();
    }

    void crash(Node& node) {
        node.sim->crash();
        ++report_.crashes;
    }

    Node* alive() {
        std::vector<Node*> candidates;
        for (auto& n : nodes_) {
            if (!n->sim->crashed && !n->paused) candidates.push_back(n.get());
        }
        return candidates.empty() ? nullptr : candidates[below(candidates.size())];
    }
    std::size_t alive_count() const {
        return static_cast<std::size_t>(std::count_if(
            nodes_.begin(), nodes_.end(), [](const auto& n) { return !n->sim->crashed; }));
    }

    void publish(bool exclusive, std::size_t count) {
        Node* node = alive();
        if (!node) return;
        std::vector<Message> batch(count);
        std::vector<bson::ObjectId> ids;
        for (auto& m : batch) {
            m.topic = exclusive ? "work" : "news";
            m.exclusive = exclusive;
            m.id = bson::ObjectId::generate();
            m.priority = static_cast<std::int32_t>(below(3));
            if (!exclusive) m.ttl = std::chrono::hours(1);
            ids.push_back(m.id);
            sender_[m.id] = node->id;
        }
        const bool acknowledged = node->sim->bus->publish(std::move(batch)).has_value();
        for (const auto& id : ids) {
            // Without an acknowledgement it may or may not be there: nothing is promised.
            if (acknowledged) published_.push_back({id, exclusive, published_count_});
        }
        ++published_count_;
    }

    void request() {
        Node* node = alive();
        if (!node) return;
        auto heard = std::make_shared<int>(0);
        static_cast<void>(node->sim->bus->request_async(
            {.topic = "work", .exclusive = true}, 20s, [this, heard](const Message&) {
                ++report_.answers;
                if (++*heard == 2)
                    report_.broken.push_back("an exclusive request heard two answers");
            }));
    }

    void step() {
        switch (below(14)) {
            case 0:
            case 1:
            case 2:
                publish(true, 1 + below(30));
                break;
            case 3:
            case 4:
                publish(false, 1 + below(5));
                break;
            case 5:
                if (Node* n = alive(); n && percent(40)) crash(*n);
                break;
            case 6:
                if (alive_count() < 4) start_node();
                break;
            case 7:
                if (Node* n = alive())
                    n->sim->store->lose_streams({ErrorCode::HostUnreachable, "cut"});
                break;
            case 8:
                if (Node* n = alive()) n->sim->store->restore_streams(percent(50));
                break;
            case 9:
                if (Node* n = alive()) {
                    n->failures_percent = static_cast<int>(below(30));
                    n->replies_only = percent(50);
                }
                break;
            case 10:
                jump_clocks();
                break;
            case 11:
                cluster_.server.set_event_delay(milliseconds(below(3) * 200));
                break;
            case 12:
                request();
                break;
            default:
                break;
        }
        if (percent(20)) {
            cluster_.pass(milliseconds(below(3000)));
        } else if (percent(60)) {
            cluster_.pass(milliseconds(below(100)));
        } else {
            cluster_.settle();
        }
    }

    /// The clocks of all clients jump; the server's does not.
    void jump_clocks() {
        const milliseconds by{static_cast<std::int64_t>(below(7'200'000)) - 3'600'000};
        jumped_ += by;
        cluster_.clock.jump_system(by);
        cluster_.server.set_clock_offset(-jumped_);
    }

    void heal() {
        healing_ = true;
        cluster_.server.set_event_delay(0us);
        for (auto& n : nodes_) {
            n->failures_percent = 0;
            n->paused = false;
            if (!n->sim->crashed) n->sim->store->restore_streams(percent(50));
        }
        start_node();  // nobody handles what it sent itself
        cluster_.pass(100s);
    }

    void check() {
        for (const auto& p : published_) {
            if (p.exclusive) {
                if (done_.count(p.id) == 0)
                    report_.broken.push_back("message " + p.id.to_hex() + " was lost");
                continue;
            }
            for (const auto& n : nodes_) {
                if (n->sim->crashed || n->id == sender_.at(p.id) || n->listening_since > p.number)
                    continue;
                const auto found = heard_.find({p.id, n->id});
                const int times = found == heard_.end() ? 0 : found->second;
                if (times != 1)
                    report_.broken.push_back("broadcast " + p.id.to_hex() + " was handled " +
                                             std::to_string(times) + " times by " + n->id);
            }
        }
        const auto left = cluster_.documents("msg", bson::make("exclusive", true)).size();
        if (left != 0)
            report_.broken.push_back(std::to_string(left) + " exclusive messages are left");
        if (const auto locks = cluster_.count("msg_lck"); locks != 0)
            report_.broken.push_back(std::to_string(locks) + " locks are left");
        for (const auto& d : cluster_.documents("msg", bson::make("topic", "news"))) {
            std::set<std::string> marks;
            for (const auto& mark : d["processed_by"].as_document()) {
                if (!marks.insert(std::string(mark.value.as_string())).second)
                    report_.broken.push_back("a broadcast is marked twice by one node");
            }
            for (const auto& n : nodes_) {
                if (n->sim->crashed || d["sender"].as_string() == n->id) continue;
                if (marks.count(n->id) == 0)
                    report_.broken.push_back("broadcast " + d["_id"].as_object_id().to_hex() +
                                             " is not marked by " + n->id);
            }
        }
        for (const auto& n : nodes_) {
            const auto counters = n->sim->bus->status().counters;
            report_.take_overs += static_cast<std::size_t>(counters.at("take_overs"));
            report_.stale_outcomes += static_cast<std::size_t>(counters.at("stale_outcomes"));
        }
    }

    const Mutant mutant_;
    std::mt19937_64 random_;
    messaging::testing::SimCluster cluster_;
    std::vector<std::unique_ptr<Node>> nodes_;
    milliseconds lease_{2000};
    milliseconds jumped_{0};
    bool use_streams_ = true;
    bool healing_ = false;
    int depth_ = 0;
    std::int64_t published_count_ = 0;
    std::vector<Published> published_;
    std::map<bson::ObjectId, std::string> sender_;
    std::set<std::pair<bson::ObjectId, std::int32_t>> executions_;
    std::set<bson::ObjectId> done_;
    std::map<std::pair<bson::ObjectId, std::string>, int> heard_;
    Report report_;
};

}  // namespace

Report play(std::uint64_t seed, Mutant mutant) { return World(seed, mutant).play(); }

}  // namespace angelia::simulation
