#include "transactions/workload.h"

#include <barrier>

namespace angelia::transactions {

namespace {

constexpr ListKey kKeysPerEpoch = 100;
constexpr int kStepsMax = 6;

const char* told_path(Path path) {
    if (path == Path::ById) return "by id";
    return path == Path::ByRange ? "by a range of the index" : "by its value";
}

/// What all clients of a run share.
struct Scene {
    const Plan& plan;
    Recorder& recorder;
    std::atomic<int> turn{0};
    std::atomic<bool> over{false};

    ListKey first_key() const {
        return (plan.first_epoch + turn / plan.turns_per_epoch) * kKeysPerEpoch;
    }
    ListKey last_key() const { return first_key() + plan.keys - 1; }
};

class Client {
  public:
    Client(Scene& scene, std::unique_ptr<Session> session, std::string name, std::uint64_t seed)
        : scene_(scene), session_(std::move(session)), name_(std::move(name)), random_(seed) {}

    // -- transactions

    /// One step: begins, reads, appends or ends.
    void take_turn() {
        if (!open_) start();
        if (steps_taken_ > 0 && (steps_taken_ >= kStepsMax || below(4) == 0)) return end();
        ++steps_taken_;
        const bool done = below(2) == 0 ? append() : read();
        if (!done) close(Outcome::Aborted, scene_.recorder.now());
    }

    /// Read everything; then append to the client's own list; then commit.
    void take_turn_of_pair(int number, int turn) {
        if (turn % 3 == 0) start();
        if (!open_) return;
        if (turn % 3 == 2) return end();
        const bool done = turn % 3 == 0 ? read_range() : append_to(scene_.first_key() + number);
        if (!done) close(Outcome::Aborted, scene_.recorder.now());
    }

    /// Appends to all lists, and commits.
    void take_wide_turn() {
        start();
        for (auto key = first_; key <= last_; ++key)
            if (!append_to(key)) return close(Outcome::Aborted, scene_.recorder.now());
        end();
    }

    void finish() {
        if (open_) end();
    }

    // -- plain

    void write_plainly() {
        auto t = begun();
        const auto key = some_key();
        const auto value = scene_.recorder.new_value();
        t.steps.push_back(append_step(key, value, "plainly"));
        t.outcome = session_->plain_append(key, value);
        if (t.outcome != Outcome::Unknown) t.ended = scene_.recorder.now();
        scene_.recorder.add(std::move(t));
    }

    void read_plainly() {
        auto t = begun();
        const bool snapshot = below(2) == 0;
        const auto request = snapshot ? range() : one_list();
        auto lists = session_->plain_read(request, snapshot);
        if (!lists) return;
        t.ended = scene_.recorder.now();
        t.steps = steps_of(request, *lists);
        scene_.recorder.add(std::move(t));
    }

  private:
    Transaction begun() {
        Transaction t;
        t.who = name_;
        t.began = scene_.recorder.now();
        return t;
    }

    void start() {
        session_->begin();
        current_ = begun();
        current_.session = session_->session();
        current_.number = session_->number();
        // A transaction stays with the lists of its beginning.
        first_ = scene_.first_key();
        last_ = scene_.last_key();
        open_ = true;
        steps_taken_ = 0;
        own_values_.clear();
    }

    bool append() { return append_to(first_ + below(last_ - first_ + 1)); }

    bool append_to(ListKey key) {
        const auto value = scene_.recorder.new_value();
        const bool by_index = below(2) == 0;
        // It counts as tried also when it fails: nobody may ever see it then.
        current_.steps.push_back(append_step(key, value, by_index ? "by index" : "by id"));
        if (!session_->append(key, value, by_index)) return false;
        own_values_.push_back({key, value});
        return true;
    }

    bool read() {
        const auto choice = below(4);
        if (choice == 0 && !own_values_.empty()) return read_own_value();
        return choice == 1 ? read_lists(one_list()) : read_range();
    }
    bool read_range() { return read_lists(range()); }
    bool read_own_value() {
        const auto [key, value] = own_values_[static_cast<std::size_t>(
            below(static_cast<std::int64_t>(own_values_.size())))];
        ReadRequest request{Path::ByOwnValue, key, key, value};
        return read_lists(request);
    }

    bool read_lists(const ReadRequest& request) {
        auto lists = session_->read(request);
        if (!lists) return false;
        for (auto& step : steps_of(request, *lists)) current_.steps.push_back(std::move(step));
        return true;
    }

    ReadRequest one_list() {
        const auto key = open_ ? first_ + below(last_ - first_ + 1) : some_key();
        return {Path::ById, key, key, 0};
    }
    ReadRequest range() {
        if (open_) return {Path::ByRange, first_, last_, 0};
        const auto first = scene_.first_key();
        return {Path::ByRange, first, first + scene_.plan.keys - 1, 0};
    }

    /// A list that was asked for and is not there is an empty one.
    static std::vector<Step> steps_of(const ReadRequest& request, Lists& lists) {
        std::vector<Step> steps;
        for (auto key = request.first; key <= request.last; ++key)
            steps.push_back(read_step(key, std::move(lists[key]), told_path(request.path)));
        for (auto& [key, list] : lists)
            if (key < request.first || key > request.last)
                steps.push_back(read_step(key, std::move(list), "without having asked for it"));
        return steps;
    }

    void end() {
        if (below(8) == 0) {
            session_->abort();
            return close(Outcome::Aborted, scene_.recorder.now());
        }
        const auto outcome = session_->commit();
        close(outcome, outcome == Outcome::Unknown ? kNever : scene_.recorder.now());
    }

    void close(Outcome outcome, std::uint64_t ended) {
        open_ = false;
        current_.outcome = outcome;
        current_.ended = ended;
        scene_.recorder.add(std::move(current_));
    }

    ListKey some_key() { return scene_.first_key() + below(scene_.plan.keys); }
    std::int64_t below(std::int64_t n) {
        return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
    }

    Scene& scene_;
    std::unique_ptr<Session> session_;
    const std::string name_;
    std::mt19937_64 random_;
    Transaction current_;
    bool open_ = false;
    int steps_taken_ = 0;
    ListKey first_ = 0, last_ = 0;
    std::vector<std::pair<ListKey, ListValue>> own_values_;
};

}  // namespace

void Recorder::add(Transaction transaction) {
    const std::lock_guard lock(mutex_);
    transactions_.push_back(std::move(transaction));
}

std::size_t Recorder::size() const {
    const std::lock_guard lock(mutex_);
    return transactions_.size();
}

void Recorder::resolve(const std::function<void(Transaction&)>& look) {
    const std::lock_guard lock(mutex_);
    for (auto& transaction : transactions_) look(transaction);
}

History Recorder::take(Lists final_lists) {
    const std::lock_guard lock(mutex_);
    return {transactions_, std::move(final_lists)};
}

void run(const Plan& plan, const NewSession& new_session, Recorder& recorder,
         const std::function<bool()>& stop) {
    Scene scene{plan, recorder};
    // All step together, so that they meet every turn rather than by luck.
    std::barrier turns(plan.clients, [&]() noexcept {
        if (scene.turn + 1 >= plan.turns || (stop && stop())) scene.over = true;
        ++scene.turn;
        scene.turn.notify_all();
    });
    const auto each_turn = [&](auto act) {
        while (!scene.over) {
            const int turn = scene.turn;
            for (int i = 0; i < plan.plain_per_turn; ++i) act();
            scene.turn.wait(turn);
        }
    };
    std::vector<std::thread> threads;
    static std::atomic<std::int64_t> sessions{0};
    const auto spawn = [&](const std::string& name, auto body) {
        auto client = std::make_shared<Client>(scene, new_session(++sessions), name,
                                               plan.seed * 1000 + threads.size());
        threads.emplace_back([client, body] { body(*client); });
    };
    for (int i = 0; i < plan.clients; ++i)
        spawn("client " + std::to_string(i), [&, i](Client& client) {
            while (!scene.over) {
                if (plan.wide)
                    client.take_wide_turn();
                else if (plan.pairs)
                    client.take_turn_of_pair(i, scene.turn);
                else
                    client.take_turn();
                turns.arrive_and_wait();
            }
            client.finish();
        });
    for (int i = 0; i < plan.plain_writers; ++i)
        spawn("plain writer " + std::to_string(i),
              [&](Client& client) { each_turn([&] { client.write_plainly(); }); });
    for (int i = 0; i < plan.plain_readers; ++i)
        spawn("plain reader " + std::to_string(i),
              [&](Client& client) { each_turn([&] { client.read_plainly(); }); });
    for (auto& thread : threads) thread.join();
}

}  // namespace angelia::transactions
