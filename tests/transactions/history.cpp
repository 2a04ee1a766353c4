// Lists and values: what can be said without looking at cycles. Those are in history_cycles.cpp.
#include "transactions/history.h"

#include "transactions/history_cycles.h"

#include <algorithm>
#include <set>

namespace angelia::transactions {

namespace {

constexpr std::size_t kShownOfAKind = 2;

bool is_prefix(const List& shorter, const List& longer) {
    return shorter.size() <= longer.size() &&
           std::equal(shorter.begin(), shorter.end(), longer.begin());
}

class Check {
  public:
    explicit Check(const History& history) : history_(history) {}

    Report run() {
        collect_appends();
        read_everything();
        order_versions();
        check_outcomes();
        // With a broken order of versions cycles would be stories about nothing.
        if (report_.findings.empty()) find_cycles(history_, effective_, versions_, reads_, report_);
        return std::move(report_);
    }

  private:
    struct Writer {
        std::size_t transaction = 0;
        ListKey key = 0;
        bool last_on_key = true;  ///< of its transaction
    };
    struct SeenList {
        ListKey key = 0;
        List list;
        std::size_t reader = kNobody;  ///< kNobody: the end
    };

    void found(Anomaly anomaly, std::string story) {
        report_.findings.push_back({anomaly, std::move(story)});
    }
    std::string told(std::size_t i) const { return told_transaction(history_, i); }

    std::string told_reader(const SeenList& seen) const {
        return seen.reader == kNobody ? "  the end\n" : told(seen.reader);
    }

    void collect_appends() {
        for (std::size_t i = 0; i < history_.transactions.size(); ++i) {
            const auto& t = history_.transactions[i];
            std::map<ListKey, ListValue> last;
            for (const auto& step : t.steps) {
                if (step.kind != Step::Kind::Append) continue;
                if (const auto before = last.find(step.key); before != last.end())
                    writers_[before->second].last_on_key = false;
                writers_[step.value] = {i, step.key, true};
                last[step.key] = step.value;
            }
            if (t.outcome == Outcome::Committed) ++report_.committed;
            if (t.outcome == Outcome::Aborted) ++report_.aborted;
            if (t.outcome == Outcome::Unknown) ++report_.unknown;
        }
    }

    /// What others had appended: the list without the reader's own appends so far, which must be
    /// its end.
    std::optional<List> without_own(std::size_t i, const Step& step, const List& own) {
        const bool ends_with_own = step.list.size() >= own.size() &&
                                   std::equal(own.rbegin(), own.rend(), step.list.rbegin());
        if (!ends_with_own) {
            found(Anomaly::OwnWriteMissing, "reads list " + std::to_string(step.key) + " as " +
                                                told_list(step.list) + " after appending " +
                                                told_list(own) + " to it:\n" + told(i));
            return std::nullopt;
        }
        return List(step.list.begin(), step.list.end() - static_cast<std::ptrdiff_t>(own.size()));
    }

    void read_everything() {
        for (std::size_t i = 0; i < history_.transactions.size(); ++i) {
            const auto& t = history_.transactions[i];
            std::map<ListKey, List> own, first;
            for (const auto& step : t.steps) {
                if (step.kind == Step::Kind::Append) {
                    own[step.key].push_back(step.value);
                    continue;
                }
                auto outside = without_own(i, step, own[step.key]);
                if (!outside) continue;
                check_values(i, step.key, *outside);
                const auto [before, is_first] = first.emplace(step.key, *outside);
                if (!is_first) {
                    if (before->second != *outside)
                        found(Anomaly::MovedSnapshot, "sees others' part of list " +
                                                          std::to_string(step.key) + " first as " +
                                                          told_list(before->second) + ", then as " +
                                                          told_list(*outside) + ":\n" + told(i));
                    continue;
                }
                seen_.push_back({step.key, *outside, i});
                reads_.push_back({i, step.key, outside->size()});
            }
        }
        if (!history_.final_lists) return;
        for (const auto& [key, list] : *history_.final_lists) {
            check_values(std::nullopt, key, list);
            seen_.push_back({key, list, kNobody});
        }
    }

    void check_values(std::optional<std::size_t> reader, ListKey key, const List& list) {
        // Told only when there is something to tell: a run reads tens of thousands of lists.
        const auto report = [&](Anomaly anomaly, ListValue value, const std::string& what,
                                std::optional<std::size_t> writer = {}) {
            found(anomaly, std::to_string(value) +
                               (reader ? " is read in list " : " is in the end in list ") +
                               std::to_string(key) + ", which is " + told_list(list) + ", " + what +
                               ":\n" + (writer ? told(*writer) : "") +
                               (reader ? told(*reader) : ""));
        };
        std::set<ListValue> values;
        for (std::size_t at = 0; at < list.size(); ++at) {
            const auto value = list[at];
            if (!values.insert(value).second) report(Anomaly::RepeatedValue, value, "twice");
            const auto it = writers_.find(value);
            if (it == writers_.end() || it->second.key != key) {
                report(Anomaly::PhantomValue, value, "and nobody appended it there");
                continue;
            }
            const auto& writer = it->second;
            if (reader && writer.transaction == *reader) {
                report(Anomaly::PhantomValue, value, "and was not appended yet");
                continue;
            }
            if (history_.transactions[writer.transaction].outcome == Outcome::Aborted)
                report(Anomaly::DirtyRead, value, "of an aborted transaction", writer.transaction);
            visible_.insert(writer.transaction);
            if (at + 1 == list.size() && !writer.last_on_key)
                report(reader ? Anomaly::IntermediateRead : Anomaly::BrokenAtomicity, value,
                       "without the further append of its transaction", writer.transaction);
        }
    }

    void order_versions() {
        std::map<ListKey, const SeenList*> longest;
        for (const auto& seen : seen_) {
            auto& now = longest[seen.key];
            if (now == nullptr || seen.list.size() > now->list.size()) now = &seen;
        }
        for (const auto& seen : seen_) {
            const auto& most = *longest[seen.key];
            if (!is_prefix(seen.list, most.list))
                found(Anomaly::DivergentLists,
                      "list " + std::to_string(seen.key) + " is " + told_list(seen.list) + " and " +
                          told_list(most.list) + ":\n" + told_reader(seen) + told_reader(most));
        }
        for (const auto& [key, seen] : longest) {
            auto& versions = versions_[key];
            for (const auto value : seen->list) {
                const auto it = writers_.find(value);
                versions.push_back(it == writers_.end() ? kNobody : it->second.transaction);
            }
        }
        // A list that nobody read, or a tail that nobody saw, has no known order; the end shows
        // all.
    }

    void check_outcomes() {
        effective_.resize(history_.transactions.size());
        for (std::size_t i = 0; i < history_.transactions.size(); ++i) {
            const auto& t = history_.transactions[i];
            effective_[i] = t.outcome == Outcome::Committed ||
                            (t.outcome == Outcome::Unknown && visible_.count(i) != 0);
            if (!history_.final_lists || t.outcome == Outcome::Aborted) continue;
            std::string missing;
            std::size_t there = 0;
            for (const auto& step : t.steps) {
                if (step.kind != Step::Kind::Append) continue;
                const auto list = history_.final_lists->find(step.key);
                const bool kept = list != history_.final_lists->end() &&
                                  std::find(list->second.begin(), list->second.end(), step.value) !=
                                      list->second.end();
                there += kept ? 1 : 0;
                if (!kept)
                    missing +=
                        "  " + std::to_string(step.value) + " in list " + std::to_string(step.key) +
                        ", which ends as " +
                        told_list(list == history_.final_lists->end() ? List{} : list->second) +
                        "\n";
            }
            if (missing.empty()) continue;
            if (t.outcome == Outcome::Committed)
                found(Anomaly::LostAppend,
                      "was acknowledged and is not there in the end:\n" + missing + told(i));
            else if (there > 0 || visible_.count(i) != 0)
                found(Anomaly::BrokenAtomicity,
                      "a transaction without an answer is there in part; missing:\n" + missing +
                          told(i));
        }
    }

    const History& history_;
    Report report_;
    std::map<ListValue, Writer> writers_;
    std::vector<SeenList> seen_;
    std::vector<OutsideRead> reads_;
    std::set<std::size_t> visible_;  ///< transactions of which somebody else saw something
    std::vector<bool> effective_;
    VersionOrder versions_;
};

}  // namespace

Step read_step(ListKey key, List list, std::string how) {
    Step step;
    step.key = key;
    step.list = std::move(list);
    step.how = std::move(how);
    return step;
}

Step append_step(ListKey key, ListValue value, std::string how) {
    Step step;
    step.kind = Step::Kind::Append;
    step.key = key;
    step.value = value;
    step.how = std::move(how);
    return step;
}

bool Transaction::appends() const {
    return std::any_of(steps.begin(), steps.end(),
                       [](const Step& s) { return s.kind == Step::Kind::Append; });
}

const char* name_of(Anomaly anomaly) {
    switch (anomaly) {
        case Anomaly::DirtyRead:
            return "dirty read";
        case Anomaly::IntermediateRead:
            return "intermediate read";
        case Anomaly::PhantomValue:
            return "phantom value";
        case Anomaly::RepeatedValue:
            return "repeated value";
        case Anomaly::DivergentLists:
            return "divergent lists";
        case Anomaly::LostAppend:
            return "lost append";
        case Anomaly::BrokenAtomicity:
            return "broken atomicity";
        case Anomaly::OwnWriteMissing:
            return "own write missing";
        case Anomaly::MovedSnapshot:
            return "moved snapshot";
        case Anomaly::WriteCycle:
            return "write cycle";
        case Anomaly::FracturedRead:
            return "fractured read";
        case Anomaly::ReadSkew:
            return "read skew";
        case Anomaly::StaleRead:
            return "stale read";
    }
    return "?";
}

std::string told_list(const List& list) {
    constexpr std::size_t kValuesShown = 12;
    std::string out = "[";
    const auto from = list.size() > kValuesShown ? list.size() - kValuesShown : 0;
    if (from > 0) out += std::to_string(from) + " more,";
    for (auto i = from; i < list.size(); ++i) out += (i > 0 ? " " : "") + std::to_string(list[i]);
    return out + "]";
}

std::string told_transaction(const History& history, std::size_t i) {
    const auto& t = history.transactions[i];
    std::string out = "  T" + std::to_string(i) + " (" + t.who + ", from " +
                      std::to_string(t.began) + " to " +
                      (t.ended == kNever ? "?" : std::to_string(t.ended)) + ", ";
    out += t.outcome == Outcome::Committed ? "committed"
           : t.outcome == Outcome::Aborted ? "aborted"
                                           : "no answer";
    out += ")";
    for (const auto& step : t.steps) {
        out += step.kind == Step::Kind::Append
                   ? "; appends " + std::to_string(step.value) + " to " + std::to_string(step.key)
                   : "; reads " + std::to_string(step.key) + " as " + told_list(step.list);
        if (!step.how.empty()) out += " " + step.how;
    }
    return out + "\n";
}

bool Report::has(Anomaly anomaly) const {
    return std::any_of(findings.begin(), findings.end(),
                       [&](const Finding& f) { return f.anomaly == anomaly; });
}

std::string Report::text() const {
    std::string out;
    std::map<Anomaly, std::size_t> shown;
    for (const auto& finding : findings)
        if (shown[finding.anomaly]++ < kShownOfAKind)
            out += std::string(name_of(finding.anomaly)) + ": " + finding.story;
    for (const auto& [anomaly, count] : shown)
        if (count > kShownOfAKind)
            out += std::to_string(count) + " times: " + name_of(anomaly) + "\n";
    return out;
}

Report check(const History& history) { return Check(history).run(); }

}  // namespace angelia::transactions
