// Retry schedules, classes of failures and the circuit breaker, case by case.
#include "delivery/failure.h"
#include "delivery/circuit_breaker.h"

#include <gtest/gtest.h>

#include <random>

namespace angelia::delivery {
namespace {

using namespace std::chrono_literals;

TEST(RetrySchedule, EnterpriseTableIsExact) {
    const auto schedule = RetrySchedule::enterprise();
    std::vector<std::int64_t> seconds;
    for (int failures = 0; failures < 8; ++failures)
        seconds.push_back(schedule.shortest(failures).count() / 1000);
    EXPECT_EQ(seconds, (std::vector<std::int64_t>{30, 60, 300, 900, 1800, 3600, 3600, 3600}));
}

TEST(RetrySchedule, ExponentialEndsAtItsBound) {
    const auto schedule = RetrySchedule::exponential(100ms, 4, 5000ms);
    EXPECT_EQ(schedule.shortest(0), 100ms);
    EXPECT_EQ(schedule.shortest(2), 1600ms);
    EXPECT_EQ(schedule.shortest(3), 5000ms);
    EXPECT_EQ(schedule.shortest(1000), 5000ms);
    EXPECT_EQ(RetrySchedule::exponential(700ms, 1, 5000ms).shortest(50), 700ms);
    EXPECT_EQ(RetrySchedule::fixed(1000ms).shortest(7), 1000ms);
}

TEST(RetrySchedule, JitterOnlyLengthensAndByATenthAtMost) {
    const auto schedule = RetrySchedule::enterprise();
    std::mt19937 random(7);
    std::uniform_real_distribution<double> unit(0, 1);
    for (int i = 0; i < 10'000; ++i) {
        const int failures = i % 9;
        const auto delay = schedule.delay(failures, unit(random));
        ASSERT_GE(delay, schedule.shortest(failures));
        ASSERT_LE(delay.count(), schedule.shortest(failures).count() * 11 / 10);
    }
    EXPECT_EQ(schedule.delay(0, 0.5), 31'500ms);
    EXPECT_EQ(schedule.delay(-3, 0), 30'000ms);
}

Failure failure(std::string code) { return {.code = std::move(code), .message = "m"}; }

TEST(Classification, KnowsTheCommonCodesAndTakesTheUnknownForTransient) {
    const Classification rules;
    EXPECT_EQ(rules.classify(failure("NetworkTimeout")), FailureClass::Transient);
    EXPECT_EQ(rules.classify(failure("http 503")), FailureClass::Transient);
    EXPECT_EQ(rules.classify(failure("http 429")), FailureClass::Transient);
    EXPECT_EQ(rules.classify(failure("http 404")), FailureClass::Config);
    EXPECT_EQ(rules.classify(failure("http 413")), FailureClass::Data);
    EXPECT_EQ(rules.classify(failure("http 422")), FailureClass::Logic);
    EXPECT_EQ(rules.classify(failure("http 418")), FailureClass::Logic);
    EXPECT_EQ(rules.classify(failure("BSONObjectTooLarge")), FailureClass::Data);
    EXPECT_EQ(rules.classify(failure("never heard of")), FailureClass::Transient);
}

TEST(Classification, OwnRulesComeFirstAndTheFirstThatFitsDecides) {
    const Classification rules({{"http 404", FailureClass::Transient},
                                {"Order*Closed", FailureClass::Logic},
                                {"Order*", FailureClass::Data}});
    EXPECT_EQ(rules.classify(failure("http 404")), FailureClass::Transient);
    EXPECT_EQ(rules.classify(failure("OrderAlreadyClosed")), FailureClass::Logic);
    EXPECT_EQ(rules.classify(failure("OrderUnknown")), FailureClass::Data);
    EXPECT_EQ(rules.classify(failure("http 403")), FailureClass::Config);
}

TEST(AfterFailure, TransientIsTriedForEverUnlessToldOtherwise) {
    RetryLimits limits;
    const auto thousandth = after_failure(limits, FailureClass::Transient, failure("x"), 999, 0);
    EXPECT_EQ(thousandth.action, AfterFailure::TryAgain);
    EXPECT_EQ(thousandth.delay, 3'600'000ms);
    limits.attempts_max = 8;
    EXPECT_EQ(after_failure(limits, FailureClass::Transient, failure("x"), 6, 0).action,
              AfterFailure::TryAgain);
    EXPECT_EQ(after_failure(limits, FailureClass::Transient, failure("x"), 7, 0).action,
              AfterFailure::GiveUp);
}

TEST(AfterFailure, DataAndLogicAreNotTriedAgain) {
    RetryLimits limits;
    EXPECT_EQ(after_failure(limits, FailureClass::Data, failure("x"), 0, 0).action,
              AfterFailure::GiveUp);
    EXPECT_EQ(after_failure(limits, FailureClass::Logic, failure("x"), 0, 0).action,
              AfterFailure::GiveUp);
    limits.hold_logic = true;
    EXPECT_EQ(after_failure(limits, FailureClass::Logic, failure("x"), 0, 0).action,
              AfterFailure::Hold);
    EXPECT_EQ(after_failure(limits, FailureClass::Data, failure("x"), 0, 0).action,
              AfterFailure::GiveUp);
}

TEST(AfterFailure, ConfigIsTriedAndToldAndHasALimitOfItsOwn) {
    RetryLimits limits;
    limits.attempts_max = 2;
    const auto next = after_failure(limits, FailureClass::Config, failure("x"), 50, 0);
    EXPECT_EQ(next.action, AfterFailure::TryAgain);
    EXPECT_TRUE(next.tell_somebody);
    limits.config_attempts_max = 3;
    EXPECT_EQ(after_failure(limits, FailureClass::Config, failure("x"), 2, 0).action,
              AfterFailure::GiveUp);
}

TEST(AfterFailure, TheConnectionsFailureCountsAgainstNoMessage) {
    RetryLimits limits;
    limits.attempts_max = 1;
    auto down = failure("HostUnreachable");
    down.of_connection = true;
    const auto next = after_failure(limits, FailureClass::Transient, down, 0, 0);
    EXPECT_EQ(next.action, AfterFailure::TryAgain);
    EXPECT_FALSE(next.counted);
}

TEST(AfterFailure, RetryAfterLengthensAndNeverShortens) {
    const RetryLimits limits;
    auto busy = failure("http 429");
    busy.retry_after = 120s;
    EXPECT_EQ(after_failure(limits, FailureClass::Transient, busy, 0, 0).delay, 120s);
    busy.retry_after = 1s;
    EXPECT_EQ(after_failure(limits, FailureClass::Transient, busy, 0, 0).delay, 30s);
}

TEST(StorableText, CutsAtCharactersAndReplacesWhatCannotBeShown) {
    EXPECT_EQ(storable_text("a\nb\x7F"
                            "c",
                            10),
              "a b c");
    EXPECT_EQ(storable_text("\xC3\xA4\xC3\xB6\xC3\xBC", 2), "\xC3\xA4\xC3\xB6");
    EXPECT_EQ(storable_text("x\xFFy", 10), "x\xEF\xBF\xBDy");
    EXPECT_EQ(storable_text("\xED\xA0\x80", 1), "\xEF\xBF\xBD");  // a surrogate
    EXPECT_EQ(storable_text(std::string(600, 'z'), kErrorTextCharactersMax).size(), 500u);
}

TEST(CircuitBreaker, OpensAfterFailuresInARowAndProbesAtAPace) {
    CircuitBreaker breaker({.failures_to_open = 3, .probe_every = 5000ms});
    SteadyTime now{};
    breaker.failed(now);
    breaker.failed(now);
    breaker.succeeded();
    breaker.failed(now);
    breaker.failed(now);
    EXPECT_TRUE(breaker.may_try(now));
    breaker.failed(now);
    EXPECT_EQ(breaker.state(), CircuitBreaker::State::Open);
    EXPECT_FALSE(breaker.may_try(now + 4999ms));
    EXPECT_TRUE(breaker.may_try(now + 5000ms));
    EXPECT_FALSE(breaker.may_try(now + 5000ms));  // one probe at a time
    breaker.failed(now + 5100ms);
    EXPECT_FALSE(breaker.may_try(now + 10'000ms));
    EXPECT_TRUE(breaker.may_try(now + 10'100ms));
    breaker.withdrawn(now + 10'200ms);
    EXPECT_TRUE(breaker.may_try(now + 10'200ms));
    breaker.succeeded();
    EXPECT_EQ(breaker.state(), CircuitBreaker::State::Closed);
    EXPECT_TRUE(breaker.may_try(now));
}

}  // namespace
}  // namespace angelia::delivery
