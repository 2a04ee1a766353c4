// The graph of transactions: ww (appended right before), wr (its append was the last that was
// read), rw (did not see the append), and "was acknowledged before the other began". A cycle is
// forbidden when no two rw follow each other in it: no order of snapshots and commits explains it.
#include "transactions/history_cycles.h"

#include <algorithm>
#include <deque>
#include <set>

namespace angelia::transactions {

namespace {

constexpr std::size_t kCyclesMax = 20;

enum class Why : std::uint8_t { Ww, Wr, Rw, Time };

struct Edge {
    std::size_t to = 0;
    Why why = Why::Ww;
    ListKey key = 0;
};

struct CycleEdge {
    std::size_t from = 0;
    Edge edge;
};
using Cycle = std::vector<CycleEdge>;

class Graph {
  public:
    Graph(const History& history, const std::vector<bool>& effective)
        : history_(history), effective_(effective), edges_(history.transactions.size()) {}

    void add_lists(const VersionOrder& versions, const std::vector<OutsideRead>& reads) {
        for (const auto& [key, writers] : versions)
            for (std::size_t i = 1; i < writers.size(); ++i)
                add(writers[i - 1], writers[i], Why::Ww, key);
        for (const auto& read : reads) {
            const auto it = versions.find(read.key);
            if (it == versions.end()) continue;
            const auto& writers = it->second;
            if (read.length > 0) add(writers[read.length - 1], read.transaction, Why::Wr, read.key);
            auto next = read.length;
            while (next < writers.size() && writers[next] == read.transaction) ++next;
            if (next < writers.size()) add(read.transaction, writers[next], Why::Rw, read.key);
        }
    }

    /// Only edges that do not follow from others: no third transaction lies wholly between.
    void add_time() {
        std::vector<std::size_t> by_begin, by_end;
        for (std::size_t i = 0; i < edges_.size(); ++i) {
            if (!effective_[i]) continue;
            by_begin.push_back(i);
            if (history_.transactions[i].ended != kNever) by_end.push_back(i);
        }
        const auto& t = history_.transactions;
        std::sort(by_begin.begin(), by_begin.end(),
                  [&](auto a, auto b) { return t[a].began < t[b].began; });
        std::sort(by_end.begin(), by_end.end(),
                  [&](auto a, auto b) { return t[a].ended < t[b].ended; });
        std::size_t over = 0;
        std::vector<std::size_t> newest;  // that ended, and after whose end nobody began and ended
        for (const auto later : by_begin) {
            for (; over < by_end.size() && t[by_end[over]].ended < t[later].began; ++over) {
                const auto ended = by_end[over];
                std::erase_if(newest, [&](auto n) { return t[n].ended < t[ended].began; });
                newest.push_back(ended);
            }
            for (const auto earlier : newest) add(earlier, later, Why::Time, 0);
        }
    }

    std::size_t write_skews() const {
        std::set<std::pair<std::size_t, std::size_t>> missed;
        for (std::size_t from = 0; from < edges_.size(); ++from)
            for (const auto& edge : edges_[from])
                if (edge.why == Why::Rw) missed.emplace(from, edge.to);
        std::size_t pairs = 0;
        for (const auto& [a, b] : missed) pairs += a < b && missed.count({b, a}) != 0 ? 1 : 0;
        return pairs;
    }

    /// A shortest forbidden cycle through the transaction.
    Cycle cycle_through(std::size_t start) const {
        // A place is a transaction and whether an rw led there: then none may lead on.
        const auto places = edges_.size() * 2;
        std::vector<std::size_t> came_from(places, kNobody);
        std::vector<Edge> came_by(places);
        std::deque<std::size_t> open{start * 2};
        while (!open.empty()) {
            const auto place = open.front();
            open.pop_front();
            for (const auto& edge : edges_[place / 2]) {
                const bool rw = edge.why == Why::Rw;
                if (rw && place % 2 == 1) continue;
                const auto next = edge.to * 2 + (rw ? 1 : 0);
                if (came_from[next] != kNobody) continue;
                came_from[next] = place;
                came_by[next] = edge;
                if (next == start * 2) return walk_back(start * 2, came_from, came_by);
                open.push_back(next);
            }
        }
        return {};
    }

    /// Places that can be on a cycle: repeatedly drop those that nothing leads to or from.
    std::vector<bool> may_be_on_cycle() const {
        std::vector<std::size_t> in(edges_.size(), 0);
        for (const auto& from : edges_)
            for (const auto& edge : from) ++in[edge.to];
        std::vector<bool> on(edges_.size(), true);
        std::deque<std::size_t> open;
        for (std::size_t i = 0; i < edges_.size(); ++i)
            if (in[i] == 0) open.push_back(i);
        while (!open.empty()) {
            const auto i = open.front();
            open.pop_front();
            on[i] = false;
            for (const auto& edge : edges_[i])
                if (--in[edge.to] == 0) open.push_back(edge.to);
        }
        return on;
    }

  private:
    void add(std::size_t from, std::size_t to, Why why, ListKey key) {
        if (from == kNobody || to == kNobody || from == to) return;
        if (!effective_[from] || !effective_[to]) return;
        for (const auto& edge : edges_[from])
            if (edge.to == to && edge.why == why) return;
        edges_[from].push_back({to, why, key});
    }

    static Cycle walk_back(std::size_t start, const std::vector<std::size_t>& came_from,
                           const std::vector<Edge>& came_by) {
        Cycle cycle;
        auto at = start;
        do {
            cycle.push_back({came_from[at] / 2, came_by[at]});
            at = came_from[at];
        } while (at != start);
        std::reverse(cycle.begin(), cycle.end());
        return cycle;
    }

    const History& history_;
    const std::vector<bool>& effective_;
    std::vector<std::vector<Edge>> edges_;
};

std::size_t count_of(const Cycle& cycle, Why why) {
    return static_cast<std::size_t>(std::count_if(
        cycle.begin(), cycle.end(), [&](const CycleEdge& e) { return e.edge.why == why; }));
}

Anomaly kind_of(const Cycle& cycle) {
    if (count_of(cycle, Why::Time) > 0) return Anomaly::StaleRead;
    const auto rw = count_of(cycle, Why::Rw);
    if (rw == 0) return Anomaly::WriteCycle;
    const bool two = cycle.size() == 2 && count_of(cycle, Why::Wr) == 1;
    return two ? Anomaly::FracturedRead : Anomaly::ReadSkew;
}

std::string told_edge(const CycleEdge& e) {
    const auto from = "T" + std::to_string(e.from), to = "T" + std::to_string(e.edge.to);
    const auto list = "list " + std::to_string(e.edge.key);
    switch (e.edge.why) {
        case Why::Ww:
            return to + " appended to " + list + " behind " + from;
        case Why::Wr:
            return to + " saw what " + from + " appended to " + list;
        case Why::Rw:
            return from + " did not see what " + to + " appended to " + list;
        case Why::Time:
            return from + " was acknowledged before " + to + " began";
    }
    return {};
}

std::string told_cycle(const History& history, const Cycle& cycle) {
    std::string out;
    for (const auto& e : cycle) out += (out.empty() ? "" : ", ") + told_edge(e);
    out += ":\n";
    for (const auto& e : cycle) out += told_transaction(history, e.from);
    return out;
}

void report_cycles(const Graph& graph, const History& history, Report& report) {
    const auto candidates = graph.may_be_on_cycle();
    std::set<std::size_t> told;
    for (std::size_t i = 0; i < candidates.size() && report.findings.size() < kCyclesMax; ++i) {
        if (!candidates[i] || told.count(i) != 0) continue;
        const auto cycle = graph.cycle_through(i);
        if (cycle.empty()) continue;
        for (const auto& e : cycle) told.insert(e.from);
        report.findings.push_back({kind_of(cycle), told_cycle(history, cycle)});
    }
}

}  // namespace

void find_cycles(const History& history, const std::vector<bool>& effective,
                 const VersionOrder& versions, const std::vector<OutsideRead>& reads,
                 Report& report) {
    Graph graph(history, effective);
    graph.add_lists(versions, reads);
    report.write_skews = graph.write_skews();
    report_cycles(graph, history, report);
    if (!report.findings.empty()) return;
    graph.add_time();
    report_cycles(graph, history, report);
}

}  // namespace angelia::transactions
