// The status page of the real `keelrun`: from a job's beginning to its end, whoever watches and
// however.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <memory>
#include <vector>

#include "base/json.h"
#include "tests/harness/raw_client.h"
#include "tests/tools/job_hosts.h"

namespace keel {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kToken = "0123456789abcdef";

// Where the launcher says that its page is.
uint16_t PageOf(Launched& host) {
  const std::string line = host.Await("status-page url=");
  const size_t colon = line.rfind(':', line.find("/ token="));
  const int64_t port = NumberAfter("port " + line.substr(colon + 1), "port");
  EXPECT_GT(port, 0) << line;
  return static_cast<uint16_t>(port);
}

Json ApiOf(uint16_t port) {
  const HttpText reply = HttpGet(port, "/api");
  const auto json = ParseJson(reply.body);
  return json.ok() ? *json : Json::object();
}

// The page is told of what happens a moment later.
Json AwaitApi(uint16_t port, const std::function<bool(const Json&)>& shows) {
  const TimePoint limit = RealClock().Monotonic() + std::chrono::seconds(60);
  for (;;) {
    Json json = ApiOf(port);
    if (!json.empty() && shows(json)) return json;
    if (RealClock().Monotonic() > limit) {
      ADD_FAILURE() << "never seen in " << json.dump(1);
      return json;
    }
    RealClock().SleepFor(std::chrono::milliseconds(20));
  }
}

bool HasEvent(const Json& json, const std::string& kind) {
  for (const Json& event : json["events"]) {
    if (event["kind"] == kind) return true;
  }
  return false;
}

class KeelrunStatus : public ::testing::Test, protected JobHosts {
 protected:
  KeelrunStatus() : JobHosts(2) {}

  static std::vector<std::string> Alone(const std::string& where = "0") {
    return {"--nnodes=1:2", "--rdzv-conf=last_call_timeout=0.2", "--max-restarts=9",
            "--notice=none", "--status=" + where};
  }
  // Done by itself, in its first epoch, with nobody lost.
  void ExpectUndisturbed(Launched& host) {
    LetFinish();
    EXPECT_EQ(host.ExitCode(), 0) << host.Output();
    EXPECT_EQ(host.Count("^epoch "), 2) << host.Output();
    EXPECT_EQ(host.Count("^broken "), 0) << host.Output();
  }
};

TEST_F(KeelrunStatus, AJobIsWatchedFromItsBeginningToItsEnd) {
  const auto host = StartSurvivor("host", Alone());
  const uint16_t port = PageOf(*host);
  host->Await("^rank 0 has counted");
  Json api = AwaitApi(port, [](const Json& json) {
    return json["members"].size() == 1 && json["step"].is_number() && json["step"] >= 20;
  });
  EXPECT_EQ(api["job"], "job");
  EXPECT_EQ(api["state"], "running");
  EXPECT_EQ(api["kind"], "in-place");
  EXPECT_EQ(api["epoch"]["number"], 1);
  EXPECT_EQ(api["epoch"]["workers"], 2);
  EXPECT_EQ(api["members"][0]["workers"].size(), 2U);
  EXPECT_EQ(api["members"][0]["workers"][1]["state"], "running");
  SignalPidIn(host->Await("^epoch 1 rank 1 of 2"), SIGKILL);
  api = AwaitApi(port, [](const Json& json) {
    return HasEvent(json, "death") && json["epoch"].is_object() && json["epoch"]["workers"] == 2 &&
           json["epoch"]["number"] > 1 && json["members"][0]["deaths"] == 1;
  });
  EXPECT_EQ(api["epochs"][0]["end"], "died");
  EXPECT_TRUE(HasEvent(api, "break"));
  const HttpText page = HttpGet(port, "/");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, HasSubstr("<rect class=\"broken\""));
  EXPECT_THAT(page.body, HasSubstr("killed by signal 9"));
  EXPECT_THAT(HttpGet(port, "/metrics").body, HasSubstr("\nkeel_events_total{kind=\"death\"} 1\n"));
  EXPECT_EQ(HttpAsk(port, "POST / HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 405);
  LetFinish();
  EXPECT_EQ(host->ExitCode(), 0) << host->Output();
  EXPECT_FALSE(RawClient(port).connected());
}

TEST_F(KeelrunStatus, WhatWorkersTellOfThemselvesIsShownAndSummedUp) {
  const auto host = StartSurvivor("host", Alone(), {{"SURVIVOR_FIGURES", "1"}});
  const uint16_t port = PageOf(*host);
  SignalPidIn(host->Await("^epoch 1 rank 1 of 2"), SIGKILL);
  const Json api = AwaitApi(port, [](const Json& json) {
    return json["workers_here"].size() == 2 && json["curve"].size() >= 3 &&
           json["checkpoints_total"] >= 2 && json["samples_per_s"].is_number() &&
           json["epoch"].is_object() && json["epoch"]["number"] > 1;
  });
  EXPECT_GT(api["loss"].get<double>(), 0);
  EXPECT_LT(api["loss"].get<double>(), 1);
  EXPECT_LT(api["curve"].back()["loss"], api["curve"][0]["loss"]);
  EXPECT_GT(api["samples_per_s"].get<double>(), 0);
  EXPECT_EQ(api["checkpoints"][0]["step"], 50);
  EXPECT_EQ(api["workers_here"][0]["rank"], 0);
  EXPECT_GT(api["workers_here"][0]["seconds_in"]["<b>wait"].get<double>(), 0);
  const double goodput = api["time_here"]["goodput"].get<double>();
  EXPECT_GT(goodput, 0);
  EXPECT_LT(goodput, 1);
  const std::string page = HttpGet(port, "/").body;
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;wait"));
  EXPECT_THAT(page, Not(HasSubstr("<b>wait")));
  EXPECT_THAT(page, HasSubstr("<polyline points="));
  EXPECT_THAT(page, HasSubstr("<h2>Checkpoints</h2>"));
  EXPECT_THAT(HttpGet(port, "/metrics").body,
              HasSubstr("keel_worker_step_seconds_total{local_rank=\"0\",part=\"<b>wait\"} "));
  LetFinish();
  EXPECT_EQ(host->ExitCode(), 0) << host->Output();
  EXPECT_EQ(host->Count("^  goodput 0\\.[0-9]{3}: of .* went into steps that counted; the rest: "),
            1) << host->Output();
}

// ... where nobody watches, too.
TEST_F(KeelrunStatus, AQuietJobIsSummedUpByItsGoodputAlone) {
  const auto host = StartSurvivor("host", {"--nnodes=1:1", "--notice=none"},
                                  {{"SURVIVOR_FIGURES", "1"}});
  host->Await("^rank 0 has counted");
  LetFinish();
  EXPECT_EQ(host->ExitCode(), 0) << host->Output();
  EXPECT_EQ(host->Count("^job job: goodput 0\\.[0-9]{3}: of "), 1) << host->Output();
}

TEST_F(KeelrunStatus, TheHostOfTheStoreShowsAllHostsAndAnotherOneItsOwn) {
  const std::vector<std::string> options = {"--nnodes=1:2", "--notice=none", "--status=0"};
  const auto first = StartSurvivor("first", options);
  first->Await("registered slot=0");
  const auto second = StartSurvivor("second", options);
  const uint16_t first_port = PageOf(*first);
  const uint16_t second_port = PageOf(*second);
  const auto shows = [](size_t members) {
    return [members](const Json& json) {
      return json["epoch"].is_object() && json["epoch"]["workers"] == 4 &&
             json["members"].size() == members;
    };
  };
  const Json all = AwaitApi(first_port, shows(2));
  EXPECT_EQ(all["sees_all"], true);
  EXPECT_EQ(all["members"][0]["here"], true);
  EXPECT_EQ(all["members"][1]["here"], false);
  const Json own = AwaitApi(second_port, shows(1));
  EXPECT_EQ(own["sees_all"], false);
  EXPECT_EQ(own["members"][0]["slot"], 1);
  // One that vanishes is still told of.
  second->Kill();
  const Json after = AwaitApi(first_port, [](const Json& json) {
    return HasEvent(json, "host-gone") && json["epoch"].is_object() && json["epoch"]["hosts"] == 1;
  });
  EXPECT_EQ(after["members"][1]["state"], "gone");
  LetFinish();
  EXPECT_EQ(first->ExitCode(), 0) << first->Output();
}

TEST_F(KeelrunStatus, WorkersOfAnyProgramAreShownWithTheirEpochs) {
  const auto host = StartForeign("host", Alone());
  const uint16_t port = PageOf(*host);
  const Json api = AwaitApi(port, [](const Json& json) {
    return json["epoch"].is_object() && json["members"].size() == 1 &&
           json["members"][0]["workers"][1]["state"] == "running";
  });
  EXPECT_EQ(api["kind"], "foreign");
  EXPECT_TRUE(api["step"].is_null());
  EXPECT_THAT(HttpGet(port, "/metrics").body, HasSubstr("keel_workers{state=\"running\"} 2\n"));
  LetFinish();
  EXPECT_EQ(host->ExitCode(), 0) << host->Output();
}

TEST_F(KeelrunStatus, WhereOthersReachItATokenIsNeeded) {
  const auto refused = StartSurvivor("refused", Alone("0.0.0.0:0"));
  EXPECT_EQ(refused->ExitCode(), 1);
  EXPECT_EQ(refused->Count("--status.*other machines.*--status-token"), 1) << refused->Output();
  const auto host = StartSurvivor("host", Alone("0.0.0.0:0"), {{"KEELRUN_STATUS_TOKEN", kToken}});
  const uint16_t port = PageOf(*host);
  EXPECT_EQ(host->Count("status-page.*token=needed"), 1) << host->Output();
  EXPECT_THAT(host->Output(), Not(HasSubstr(kToken)));
  EXPECT_EQ(HttpGet(port, "/api").status, 401);
  EXPECT_EQ(HttpGet(port, std::string("/api?token=") + kToken).status, 200);
  host->Await("^rank 0 has counted");
  ExpectUndisturbed(*host);
}

TEST_F(KeelrunStatus, APortThatIsTakenIsAnErrorBeforeAnythingStarts) {
  const auto host = StartSurvivor("host", Alone());
  const uint16_t port = PageOf(*host);
  TempDir folder;
  Launched second(folder, "second", {"--standalone", "--status=" + std::to_string(port),
                                     "--no-python", "echo", "up"});
  EXPECT_EQ(second.ExitCode(), 1);
  EXPECT_EQ(second.Count("status page cannot be at 127.0.0.1:" + std::to_string(port)), 1)
      << second.Output();
  EXPECT_EQ(second.Count("^up"), 0);
  host->Await("^rank 0 has counted");
  ExpectUndisturbed(*host);
}

// 200 that ask, as many that say nothing, talk nonsense or take nothing: the job goes on, and who
// asks is still answered.
TEST_F(KeelrunStatus, NothingThatClientsDoDisturbsTheJob) {
  const auto host = StartSurvivor("host", Alone());
  const uint16_t port = PageOf(*host);
  host->Await("^rank 0 has counted");
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(std::make_unique<RawClient>(port));
    ASSERT_TRUE(clients.back()->connected());
    const char* const words[] = {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
                                 "GET /api HTTP/1.1\r\nHost: loc", "\x16\x03\x01\xff\xff garbage\n",
                                 ""};
    (void)clients.back()->Send(words[i % 4]);
  }
  const int counted = host->Count("^rank 0 has counted");
  host->Await("^rank 0 has counted", counted + 10);
  EXPECT_EQ(HttpGet(port, "/").status, 200);
  for (size_t i = 0; i < clients.size(); i += 4) {
    EXPECT_THAT(clients[i]->ReadToEnd(), HasSubstr("</html>")) << i;
  }
  ExpectUndisturbed(*host);
}

}  // namespace
}  // namespace keel
