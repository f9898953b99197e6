// Writes member by member, in the order of the page.
#include "elastic/status/api.h"

#include <optional>

#include "base/clock.h"
#include "base/json.h"
#include "elastic/report/blame_words.h"

namespace keel {
namespace {

double Seconds(int64_t nanos) { return static_cast<double>(nanos) / 1e9; }

// Null for a number below 0, which means unknown.
Json Known(int64_t number) { return number < 0 ? Json() : Json(number); }

void AddTime(Json& json, const std::string& name, int64_t wall_nanos) {
  json[name] = wall_nanos == 0 ? Json() : Json(UtcText(wall_nanos));
  json[name + "_s"] = wall_nanos == 0 ? Json() : Json(Seconds(wall_nanos));
}

Json SeatJson(const SeatRecord& seat, size_t index) {
  return {{"local_rank", index},
          {"rank", Known(seat.rank)},
          {"state", SeatStateName(seat.state)},
          {"epoch", seat.epoch},
          {"step", Known(seat.position.step)},
          {"phase", seat.position.phase},
          {"place", seat.activity.place},
          {"waits_for", Known(seat.activity.waits_for)},
          {"silent", seat.silent},
          {"ended", seat.ended}};
}

Json HostJson(const StatusHost& host) {
  Json seats = Json::array();
  for (size_t index = 0; index < host.record.seats.size(); ++index) {
    seats.push_back(SeatJson(host.record.seats[index], index));
  }
  return {{"slot", Known(host.slot)},
          {"host", host.record.host},
          {"address", host.record.address},
          {"here", host.is_here},
          {"state", host.gone.empty() ? MemberStateName(host.record.state) : "gone"},
          {"reason", host.gone.empty() ? host.record.reason : host.gone},
          {"deaths", DeathCount(host.record.blame)},
          {"unfit", host.record.unfit},
          {"health", host.record.health},
          {"blame", BlameJson(host.record.blame)},
          {"workers", std::move(seats)}};
}

Json EpochJson(const StatusEpoch& epoch) {
  Json json = {{"number", epoch.number},
               {"workers", epoch.workers},
               {"hosts", epoch.hosts},
               {"reason", epoch.reason}};
  AddTime(json, "begun", epoch.begun_nanos);
  AddTime(json, "ended", epoch.ended_nanos);
  json["end"] = epoch.end.empty() ? Json() : Json(epoch.end);
  json["end_reason"] = epoch.end_reason;
  return json;
}

Json EventJson(const StatusEvent& event) {
  Json json;
  AddTime(json, "time", event.wall_nanos);
  json["epoch"] = event.epoch;
  json["kind"] = event.kind;
  json["text"] = event.text;
  return json;
}

template <class T>
Json Known(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json PointJson(const StatusPoint& point) {
  return {{"time_s", Seconds(point.wall_nanos)},
          {"step", point.step},
          {"loss", Known(point.loss)},
          {"samples_per_s", Known(point.samples_per_s)}};
}

Json CheckpointJson(const StatusCheckpoint& checkpoint) {
  Json json;
  AddTime(json, "time", checkpoint.wall_nanos);
  json["step"] = checkpoint.step;
  return json;
}

Json FiguresJson(const StatusTrend& trend) {
  const FiguresMessage& told = trend.now.told;
  Json parts = Json::object();
  for (const auto& [name, nanos] : told.parts) parts[name] = Seconds(nanos);
  return {{"local_rank", trend.now.index}, {"rank", Known(trend.now.rank)},
          {"step", told.step},             {"loss", Known(told.loss)},
          {"steps", told.steps},           {"samples", told.samples},
          {"seconds_in", std::move(parts)}, {"evaluating_s", Seconds(told.evaluating_ns)}};
}

template <class List, class Make>
Json ArrayOf(const List& list, Make make) {
  Json array = Json::array();
  for (const auto& one : list) array.push_back(make(one));
  return array;
}

}  // namespace

std::string StatusApiText(const JobStatus& status, int64_t now_nanos) {
  const StatusJob& job = status.job();
  Json json = {{"job", job.name},
               {"state", status.state()},
               {"host", job.host},
               {"program", job.program},
               {"store", job.store},
               {"sees_all", job.sees_all},
               {"kind", JobKindName(status.in_place() ? JobKind::kInPlace : JobKind::kForeign)}};
  AddTime(json, "started", job.started_nanos);
  AddTime(json, "now", now_nanos);
  json["step"] = Known(status.step());
  json["epoch"] = status.running() == nullptr ? Json() : EpochJson(*status.running());
  json["loss"] = status.newest() ? Known(status.newest()->loss) : Json();
  json["samples_per_s"] = Known(status.samples_per_s());
  json["time_here"] = WorkerTimeJson(status.time());
  json["workers_here"] = ArrayOf(status.trends(), FiguresJson);
  json["checkpoints_total"] = status.checkpoints_total();
  json["checkpoints"] = ArrayOf(status.checkpoints(), CheckpointJson);
  json["curve"] = ArrayOf(status.points(), PointJson);
  json["members"] = ArrayOf(status.hosts(), HostJson);
  json["epochs_total"] = status.epochs_total();
  json["epochs"] = ArrayOf(status.epochs(), EpochJson);
  json["events_total"] = status.events_total();
  json["events"] = ArrayOf(status.events(), EventJson);
  return DumpJson(json) + "\n";
}

}  // namespace keel
