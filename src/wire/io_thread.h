// One thread with its own event loop; each connection lives on one. Internal to this folder: only
// the files here see Asio.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>

#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

namespace angelia::wire {

/// Threads: safe, except context(), which is for the loop's own thread and for making sockets.
class IoThread {
  public:
    IoThread() : work_(asio::make_work_guard(context_)) {}
    ~IoThread() { stop(); }
    IoThread(const IoThread&) = delete;
    IoThread& operator=(const IoThread&) = delete;

    void start() {
        thread_ = std::thread([this] { context_.run(); });
        id_.store(thread_.get_id());
    }
    /// Tasks posted before still run; later ones are dropped. Not from the loop's own thread.
    void stop() {
        {
            const std::lock_guard lock(mutex_);
            if (std::exchange(stopped_, true)) return;
        }
        work_.reset();
        context_.stop();
        if (thread_.joinable()) thread_.join();
        context_.restart();
        context_.poll();
    }
    /// False when the loop has stopped.
    template <class Task>
    bool post(Task task) {
        const std::lock_guard lock(mutex_);
        if (stopped_) return false;
        asio::post(context_, std::move(task));
        return true;
    }
    asio::io_context& context() { return context_; }
    /// True on the thread of this loop.
    bool here() const { return std::this_thread::get_id() == id_.load(std::memory_order_relaxed); }

    std::atomic<int> connections{0};  ///< a new one goes where there are fewest

  private:
    asio::io_context context_{1};  // one thread runs it: work posted from within wakes nobody
    asio::executor_work_guard<asio::io_context::executor_type> work_;
    std::thread thread_;
    std::atomic<std::thread::id> id_;
    std::mutex mutex_;
    bool stopped_ = false;  // guarded by mutex_
};

}  // namespace angelia::wire
