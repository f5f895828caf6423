// A view: who sits where, and its text for the wire.
#include <algorithm>

#include "cluster/cluster.h"
#include "cluster/json.h"
#include "cluster/view_json.h"

namespace sinew::cluster {

const Seat* View::find(MemberId id) const {
  const auto at = std::lower_bound(seats.begin(), seats.end(), id,
                                   [](const Seat& seat, MemberId wanted) { return seat.id < wanted; });
  return at != seats.end() && at->id == id ? &*at : nullptr;
}

std::vector<MemberId> View::computing() const {
  std::vector<MemberId> ids;
  for (const Seat& seat : seats) {
    if (!seat.joining) ids.push_back(seat.id);
  }
  return ids;
}

std::optional<MemberId> View::lead() const {
  const auto ids = computing();
  if (ids.empty()) return std::nullopt;
  return ids.front();
}

Json json_of(const View& view) {
  Json seats = Json::array();
  for (const Seat& seat : view.seats) {
    Json one = {{"id", seat.id.value}, {"address", seat.address}, {"share", seat.share}, {"joining", seat.joining}};
    if (seat.joining) one["donor"] = seat.donor.value;
    seats.push_back(std::move(one));
  }
  return {{"generation", view.generation.value}, {"fresh", view.fresh}, {"why", view.why}, {"seats", std::move(seats)}};
}

namespace {

std::optional<Seat> seat_of(const Json& json) {
  const auto id = whole_of(json, "id", 1);
  const auto address = text_of(json, "address", kLongestAddress);
  const auto share = number_of(json, "share", 0, kMostShare);
  const auto joining = truth_of(json, "joining");
  const auto donor = whole_of(json, "donor", 1);
  if (!id || !address || !share || !joining || *joining != donor.has_value()) return std::nullopt;
  return Seat{.id = MemberId(*id),
              .address = *address,
              .share = *share,
              .joining = *joining,
              .donor = MemberId(donor.value_or(0))};
}

}  // namespace

std::optional<View> view_of(const Json& json) {
  const auto generation = whole_of(json, "generation", 1);
  const auto fresh = truth_of(json, "fresh");
  const auto why = text_of(json, "why", kLongestWhy);
  const Json* seats = member_of(json, "seats");
  if (!generation || !fresh || !why || seats == nullptr || !seats->is_array() || seats->size() > kMostMembers) {
    return std::nullopt;
  }
  View view{.generation = Generation(*generation), .seats = {}, .fresh = *fresh, .why = *why};
  for (const Json& one : *seats) {
    const auto seat = seat_of(one);
    if (!seat || (!view.seats.empty() && !(view.seats.back().id < seat->id))) return std::nullopt;
    view.seats.push_back(*seat);
  }
  for (const Seat& seat : view.seats) {  // a state comes from somebody who has it
    const Seat* donor = seat.joining ? view.find(seat.donor) : nullptr;
    if (seat.joining && (donor == nullptr || donor->joining)) return std::nullopt;
  }
  if (!view.lead()) return std::nullopt;
  return view;
}

std::string to_json(const View& view) {
  return dump(json_of(view));
}

std::optional<View> view_of_json(const std::string& json) {
  const auto parsed = parse_json(json);
  if (!parsed) return std::nullopt;
  return view_of(*parsed);
}

}  // namespace sinew::cluster
