#include "group/group_frames.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/hash.h"
#include "group/bytes.h"

namespace sinew::group {
namespace {

static_assert(std::endian::native == std::endian::little, "payloads are read where they lie");

constexpr int64_t kMostShards = int64_t{1} << (kTreeLevels - 1);
constexpr int64_t kMostRows = int64_t{1} << 32;
constexpr int64_t kMostFloats = int64_t{1} << 50;
constexpr int64_t kMostMarks = int64_t{1} << 20;
constexpr size_t kAlignment = 64;

std::unexpected<std::string> bad(const char* what) {
  return std::unexpected(std::string(what));
}

void write(ByteWriter& writer, const std::optional<uint64_t>& number) {
  writer.byte(number ? 1 : 0);
  if (number) writer.number(*number);
}

std::optional<uint64_t> read_optional(ByteReader& reader) {
  if (!reader.truth()) return std::nullopt;
  return reader.number();
}

void write(ByteWriter& writer, const Digest& digest) {
  writer.number(digest.high);
  writer.number(digest.low);
}

Digest read_digest(ByteReader& reader) {
  Digest digest;
  digest.high = reader.number();
  digest.low = reader.number();
  return digest;
}

void write(ByteWriter& writer, const Mark& mark) {
  writer.number(mark.step);
  writer.number(mark.part);
  write(writer, mark.digest);
}

Mark read_mark(ByteReader& reader) {
  Mark mark;
  mark.step = reader.whole(0, INT64_MAX - 1);
  mark.part = reader.whole(Mark::kWhole, INT64_MAX - 1);
  mark.digest = read_digest(reader);
  return mark;
}

void write(ByteWriter& writer, const Purpose& purpose) {
  writer.byte(static_cast<uint8_t>(purpose.kind));
  writer.number(purpose.step.value);
}

Purpose read_purpose(ByteReader& reader) {
  Purpose purpose;
  purpose.kind = reader.one_of<Purpose::Kind>(static_cast<uint8_t>(Purpose::Kind::copies));
  purpose.step = Step(reader.whole(0, INT64_MAX - 1));
  return purpose;
}

size_t aligned(size_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

std::string member_name(MemberId id) {
  return "member " + std::to_string(id.value);
}

Shape::Shape(int64_t shards_given, std::vector<int64_t> lengths_given, Purpose purpose_given)
    : shards(shards_given), lengths(std::move(lengths_given)), purpose(purpose_given) {
  SINEW_CHECK(shards >= 1 && shards < kMostShards, shards);
  offsets.push_back(0);
  ByteWriter writer;
  write(writer, purpose);
  writer.number(shards);
  for (const int64_t length : lengths) {
    SINEW_CHECK(length >= 0, length);
    offsets.push_back(offsets.back() + length);
    writer.number(length);
  }
  digest = digest_of(writer.take()).low;
}

std::vector<RowPart> row_parts(const Shape& shape, int64_t begin, int64_t end) {
  std::vector<RowPart> parts;
  const auto after = std::upper_bound(shape.offsets.begin(), shape.offsets.end(), begin);
  const size_t rows = shape.lengths.size();
  for (auto row = static_cast<size_t>(after - shape.offsets.begin()) - 1; row < rows && shape.offsets[row] < end;
       ++row) {
    const int64_t first = std::max(begin, shape.offsets[row]), last = std::min(end, shape.offsets[row + 1]);
    if (first < last) parts.push_back({static_cast<int64_t>(row), first - shape.offsets[row], last - first});
  }
  return parts;
}

// ---- report at a view change

link::Bytes encode(const ViewChangeReport& report) {
  ByteWriter writer;
  writer.number(report.collective);
  write(writer, report.history);
  writer.byte(report.joining ? 1 : 0);
  writer.byte(report.computed_before ? 1 : 0);
  writer.byte(report.origin ? 1 : 0);
  if (report.origin) {
    writer.number(report.origin->step);
    writer.number(report.origin->digest);
  }
  writer.number(static_cast<uint64_t>(report.held.size()));
  writer.bits(report.held);
  return writer.take();
}

Decoded<ViewChangeReport> decode_view_change_report(const link::Bytes& bytes) {
  ByteReader reader(bytes);
  ViewChangeReport report;
  report.collective = reader.whole(-1, INT64_MAX - 1);
  report.history = read_optional(reader);
  report.joining = reader.truth();
  report.computed_before = reader.truth();
  if (reader.truth()) {
    const int64_t step = reader.whole(0, INT64_MAX - 1);
    report.origin = Origin{step, reader.number()};
  }
  report.held = reader.bits(static_cast<size_t>(reader.whole(0, kMostShards)));
  if (!reader.ended()) return bad("a report of where it stands that does not read");
  if (report.collective < 0 && !report.joining) return bad("that it computes without a state");
  return report;
}

// ---- blocks of floats

namespace {

void write(ByteWriter& writer, const BlockHead& head) {
  writer.number(head.shape);
  writer.number(head.begin);
  writer.number(head.end);
  writer.number(head.nodes);
  writer.number(head.pieces);
}

BlockHead read_head(ByteReader& reader) {
  BlockHead head;
  head.shape = reader.number();
  head.begin = reader.whole(0, kMostFloats);
  head.end = reader.whole(0, kMostFloats);
  head.nodes = reader.whole(1, kMostShards);
  head.pieces = reader.whole(1, kMostFloats);
  return head;
}

}  // namespace

Decoded<BlockHead> decode_head(const link::Bytes& bytes) {
  ByteReader reader(bytes);
  const BlockHead head = read_head(reader);
  if (!reader.good() || head.begin >= head.end) return bad("numbers whose place does not read");
  return head;
}

BlockDraft draft_block(const BlockHead& head, const std::vector<RowPart>& parts, const std::vector<bool>& present) {
  SINEW_CHECK(present.size() == parts.size() * static_cast<size_t>(head.nodes), present.size(), parts.size());
  ByteWriter writer;
  write(writer, head);
  writer.bits(present);
  BlockDraft draft{std::make_shared<link::Bytes>(writer.take()), std::vector<float*>(present.size(), nullptr)};
  const size_t begin = aligned(draft.bytes->size());
  size_t floats = 0;
  for (size_t i = 0; i < present.size(); ++i) {
    if (present[i]) floats += static_cast<size_t>(parts[i % parts.size()].count);
  }
  draft.bytes->reserve(begin + floats * sizeof(float));
  draft.bytes->resize(begin, std::byte{0});
  draft.bytes->resize(begin + floats * sizeof(float));  // the caller fills these bytes
  auto* at = reinterpret_cast<float*>(draft.bytes->data() + begin);
  for (size_t i = 0; i < present.size(); ++i) {
    if (!present[i]) continue;
    draft.values[i] = at;
    at += parts[i % parts.size()].count;
  }
  return draft;
}

Decoded<std::vector<const float*>> read_block(const link::Bytes& bytes, const BlockHead& expected,
                                              const std::vector<RowPart>& parts) {
  ByteReader reader(bytes);
  const BlockHead head = read_head(reader);
  if (!reader.good() || head != expected) return bad("numbers of another place than asked for");
  const size_t count = parts.size() * static_cast<size_t>(head.nodes);
  const auto present = reader.bits(count);
  const size_t begin = aligned(reader.at());
  if (!reader.good()) return bad("numbers cut short");
  size_t floats = 0;
  for (size_t i = 0; i < count; ++i) {
    if (present[i]) floats += static_cast<size_t>(parts[i % parts.size()].count);
  }
  if (bytes.size() != begin + floats * sizeof(float)) return bad("more or fewer numbers than it says");
  std::vector<const float*> values(count, nullptr);
  const auto* at = reinterpret_cast<const float*>(bytes.data() + begin);
  for (size_t i = 0; i < count; ++i) {
    if (!present[i]) continue;
    values[i] = at;
    at += parts[i % parts.size()].count;
  }
  return values;
}

// ---- small bytes

link::Bytes encode(const SmallSums& sums) {
  ByteWriter writer;
  write(writer, sums.purpose);
  writer.number(sums.shape);
  writer.number(static_cast<uint64_t>(sums.rows.size()));
  writer.bits(sums.rows);
  writer.number(static_cast<uint64_t>(sums.nodes.size()));
  for (const auto& node : sums.nodes) {
    writer.byte(node ? 1 : 0);
    if (node) writer.text(*node);
  }
  writer.byte(sums.compare ? 1 : 0);
  writer.byte(sums.mark ? 1 : 0);
  if (sums.mark) write(writer, *sums.mark);
  return writer.take();
}

Decoded<Claim> decode_claim(const link::Bytes& small_sums) {
  ByteReader reader(small_sums);
  Claim claim;
  claim.purpose = read_purpose(reader);
  claim.shape = reader.number();
  if (!reader.good()) return bad("small sums that do not read");
  return claim;
}

Decoded<SmallSums> decode_small_sums(const link::Bytes& bytes) {
  ByteReader reader(bytes);
  SmallSums sums;
  sums.purpose = read_purpose(reader);
  sums.shape = reader.number();
  sums.rows = reader.bits(static_cast<size_t>(reader.whole(0, kMostRows)));
  const int64_t nodes = reader.whole(0, kMostShards);
  for (int64_t i = 0; i < nodes && reader.good(); ++i) {
    sums.nodes.emplace_back();
    if (reader.truth()) sums.nodes.back() = reader.text();
  }
  sums.compare = reader.truth();
  if (reader.truth()) sums.mark = read_mark(reader);
  if (!reader.ended()) return bad("small sums that do not read");
  return sums;
}

link::Bytes encode(const ReducedHead& small) {
  ByteWriter writer;
  writer.number(small.shape);
  writer.number(small.pieces);
  writer.number(small.before);
  writer.number(static_cast<uint64_t>(small.reduced.present.size()));
  writer.bits(small.reduced.present);
  writer.byte(small.reduced.any ? 1 : 0);
  writer.text(small.reduced.small);
  writer.text(small.reduced.control_message);
  writer.byte(small.reduced.compare ? 1 : 0);
  writer.number(static_cast<uint64_t>(small.reduced.marks.size()));
  for (const MemberMark& one : small.reduced.marks) {
    writer.number(one.member.value);
    write(writer, one.mark);
  }
  return writer.take();
}

Decoded<ReducedHead> decode_reduced_head(const link::Bytes& bytes) {
  ByteReader reader(bytes);
  ReducedHead small;
  small.shape = reader.number();
  small.pieces = reader.whole(0, kMostFloats);
  small.before = reader.number();
  small.reduced.present = reader.bits(static_cast<size_t>(reader.whole(0, kMostRows)));
  small.reduced.any = reader.truth();
  small.reduced.small = reader.text();
  small.reduced.control_message = reader.text();
  small.reduced.compare = reader.truth();
  const int64_t marks = reader.whole(0, kMostMarks);
  for (int64_t i = 0; i < marks && reader.good(); ++i) {
    const MemberId member(reader.whole(0, INT64_MAX - 1));
    small.reduced.marks.push_back({member, read_mark(reader)});
  }
  if (!reader.ended()) return bad("the end of a collective that does not read");
  return small;
}

// ---- audits

link::Bytes encode(const Digest& digest) {
  ByteWriter writer;
  write(writer, digest);
  return writer.take();
}

Decoded<Digest> decode_digest(const link::Bytes& bytes) {
  ByteReader reader(bytes);
  const Digest digest = read_digest(reader);
  if (!reader.ended()) return bad("the digest of a shard that does not read");
  return digest;
}

uint64_t history_after(uint64_t before, const std::string& control_message, bool compare) {
  ByteWriter writer;
  writer.number(before);
  writer.text(control_message);
  if (compare) writer.byte(1);
  return digest_of(writer.take()).low;
}

}  // namespace sinew::group
