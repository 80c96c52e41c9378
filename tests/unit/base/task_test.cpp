// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/task.hpp"

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.hpp"

namespace mx::base {
namespace {

// The watcher's messages, as "reading 1/3", with a full stop at the end of a task.
struct recorded {
    recorded() {
        watch_tasks([this](const task_state& t) {
            lines.push_back(std::string(t.what) + " " + std::to_string(t.done) + "/" +
                            std::to_string(t.total) + (t.ended ? "." : ""));
        });
    }
    ~recorded() { watch_tasks({}); }
    std::vector<std::string> lines;
};

}  // namespace

TEST_CASE("a task reports its begin, its steps and its end") {
    const recorded seen;
    {
        task t("reading", 3);
        t.step();
        t.step(2);
    }
    CHECK(seen.lines ==
          std::vector<std::string>{"reading 0/3", "reading 1/3", "reading 3/3", "reading 3/3."});
}

TEST_CASE("a task inside a task is not reported, the next one is") {
    const recorded seen;
    {
        task outer("judging", 1);
        task inner("reading", 5);
        inner.step();
    }
    { const task next("writing", 0); }
    CHECK(seen.lines ==
          std::vector<std::string>{"judging 0/1", "judging 0/1.", "writing 0/0", "writing 0/0."});
}

TEST_CASE("steps of other threads count, and only the task's own thread reports") {
    const recorded seen;
    {
        task t("opening", 2);
        std::thread([&t] { t.step(); }).join();
        CHECK(seen.lines.size() == 1);
        t.step();
        std::thread([] { const task unseen("reading", 1); }).join();
    }
    CHECK(seen.lines == std::vector<std::string>{"opening 0/2", "opening 2/2", "opening 2/2."});
}

TEST_CASE("what the watcher throws ends the work, and the end is still reported") {
    int ends = 0;
    watch_tasks([&](const task_state& t) {
        ends += t.ended ? 1 : 0;
        if (!t.ended && t.done == 2) throw std::runtime_error("stop");
    });
    int steps = 0;
    CHECK_THROWS_AS(
        [&] {
            task t("reading", 9);
            for (; steps < 9; ++steps) t.step();
        }(),
        std::runtime_error);
    watch_tasks({});
    CHECK(steps == 1);
    CHECK(ends == 1);
}

}  // namespace mx::base
