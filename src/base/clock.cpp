#include <angelia/base/clock.h>

namespace angelia {
namespace {

class RealClock final : public Clock {
  public:
    SystemTime system_now() const override {
        return std::chrono::time_point_cast<microseconds>(std::chrono::system_clock::now());
    }
    SteadyTime steady_now() const override {
        return std::chrono::time_point_cast<microseconds>(std::chrono::steady_clock::now());
    }
};

}  // namespace

const Clock& real_clock() {
    static const RealClock* clock =
        new RealClock;  // never destroyed: threads may outlive static destructors
    return *clock;
}

ManualClock::ManualClock(SystemTime start) : system_us_(start.time_since_epoch().count()) {}
SystemTime ManualClock::system_now() const { return SystemTime(microseconds(system_us_.load())); }
SteadyTime ManualClock::steady_now() const { return SteadyTime(microseconds(steady_us_.load())); }
void ManualClock::advance(microseconds by) {
    system_us_ += by.count();
    steady_us_ += by.count();
}
void ManualClock::jump_system(microseconds by) { system_us_ += by.count(); }

}  // namespace angelia
