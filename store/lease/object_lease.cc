// Claims and beats as objects. One list tells which terms there are.
#include "store/lease/object_lease.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/file_helpers.h"
#include "base/text.h"
#include "store/lease/lease_names.h"

namespace keel {
namespace {

std::string NameIn(const std::string& key) { return key.substr(key.rfind('/') + 1); }
int64_t TermOf(const ObjectInfo& claim) { return LeaseTermIn(NameIn(claim.key)).value_or(0); }
int64_t BeatOf(const ObjectInfo& beat) { return LeaseBeatIn(NameIn(beat.key)).value_or(0); }

}  // namespace

ObjectLease::ObjectLease(Objects& bucket, std::string folder, LeaseOwner owner,
                         std::string claimant)
    : bucket_(bucket),
      folder_(std::move(folder)),
      owner_(std::move(owner)),
      claimant_(std::move(claimant)) {}

Result<std::unique_ptr<ObjectLease>> ObjectLease::Make(Objects& bucket, Random& random,
                                                       const std::string& prefix,
                                                       LeaseOwner owner) {
  KEEL_TRY(CheckLeaseOwner(owner));
  const std::string folder = prefix + LeaseFolderName(owner.job) + "/";
  return std::unique_ptr<ObjectLease>(
      new ObjectLease(bucket, folder, std::move(owner), RandomId(random, 16)));
}

Result<LeaseSight> ObjectLease::LookInto(Objects& bucket, const std::string& folder,
                                         const std::string& job) {
  return ObjectLease(bucket, folder + "/", {job, ""}, "").Look();
}

int64_t ObjectLease::Terms::highest() const { return claims.empty() ? 0 : TermOf(claims.back()); }

Result<ObjectLease::Terms> ObjectLease::List() {
  KEEL_TRY_ASSIGN(const ObjectListing listing, bucket_.List(folder_, Objects::Depth::kToSlash));
  Terms terms;
  for (const ObjectInfo& object : listing.objects) {
    if (TermOf(object) > 0) terms.claims.push_back(object);
    if (BeatOf(object) > 0) terms.beats.push_back(object);
  }
  std::sort(terms.claims.begin(), terms.claims.end(),
            [](const ObjectInfo& a, const ObjectInfo& b) { return TermOf(a) < TermOf(b); });
  return terms;
}

Result<std::string> ObjectLease::Read(const std::string& key) {
  std::string text(kLeaseRecordBytesMax, '\0');
  KEEL_TRY_ASSIGN(const size_t bytes,
                  bucket_.Get(key, 0, std::as_writable_bytes(std::span(text))));
  text.resize(bytes);
  return text;
}

// kCorrupt where the claim is damaged; kInvalid where it is another job's, or of another version.
Result<ClaimRecord> ObjectLease::ReadClaim(int64_t term) {
  const std::string key = folder_ + LeaseTermName(term);
  const std::string path = bucket_.name() + "/" + key;
  KEEL_TRY_ASSIGN(const std::string text, Read(key));
  KEEL_TRY_ASSIGN(ClaimRecord claim, ParseClaimAt(path, term, text));
  if (claim.job != LeaseJobName(owner_.job)) {
    return Error{Code::kInvalid, path + " is of the lease of job " + Shown(claim.job) +
                                     ", and this is job " + Shown(LeaseJobName(owner_.job)) +
                                     ": name another prefix for one of them"};
  }
  return claim;
}

Result<std::string> ObjectLease::ReadBeat(int64_t term) {
  Result<std::string> beat = Read(folder_ + LeaseBeatName(term));
  if (!beat.ok() && beat.error().code == Code::kNotFound) return std::string();
  return beat;
}

Result<LeaseSight> ObjectLease::Look() {
  LeaseSight sight;
  quiet_ = Duration::max();
  Terms terms;
  for (int looks = 1;; ++looks) {
    KEEL_TRY_ASSIGN(terms, List());
    sight.term = terms.highest();
    if (sight.term == 0) return sight;
    const Result<ClaimRecord> claim = ReadClaim(sight.term);
    if (claim.ok()) {
      sight.run = claim->run;
      sight.text = claim->text;
      break;
    }
    const Code code = claim.error().code;
    if (code == Code::kNotFound && looks < kLeaseLooksMax) continue;
    if (code != Code::kCorrupt && code != Code::kNotFound) return claim.error();
    sight.damage = claim.error().message;
    break;
  }
  KEEL_TRY_ASSIGN(sight.beat, ReadBeat(sight.term));
  const Result<BeatRecord> record = ParseBeat(sight.beat);
  sight.released = record.ok() && record->released;
  int64_t changed_at_ns = terms.claims.back().changed_at_ns;
  for (const ObjectInfo& beat : terms.beats) {
    if (BeatOf(beat) == sight.term) changed_at_ns = std::max(changed_at_ns, beat.changed_at_ns);
  }
  quiet_ = std::chrono::nanoseconds(bucket_.StoreNanos() - changed_at_ns);
  return sight;
}

Status ObjectLease::CheckHeld(int64_t term) {
  KEEL_TRY_ASSIGN(const Terms terms, List());
  const std::string where = " of the lease in " + bucket_.name() + "/" + folder_;
  if (terms.highest() > term) {
    return Error{Code::kStaleEpoch, LeaseTermText(term) + where + " is over: " +
                                        LeaseTermText(terms.highest()) + " is claimed"};
  }
  const Result<ClaimRecord> claim = ReadClaim(term);
  if (claim.ok() && claim->claimant == claimant_) return Ok();
  std::string who = "another process";
  if (claim.ok()) {
    who += ", which says " + Shown(claim->text);
  } else if (claim.error().code == Code::kCorrupt ||
             (claim.error().code == Code::kNotFound && terms.highest() == term)) {
    who += ", whose claim is damaged (" + claim.error().message + ")";
  } else {
    return claim.error();
  }
  return Error{Code::kExists, LeaseTermText(term) + where + " is claimed by " + who};
}

Status ObjectLease::Claim(int64_t term, const std::string& text) {
  KEEL_CHECK(term >= 1 && term <= kLeaseTermMax, "term=" << term);
  if (text.size() > kLeaseTextBytesMax) {
    return Error{Code::kInvalid, "the text of a claim has " + std::to_string(text.size()) +
                                     " bytes, " + std::to_string(kLeaseTextBytesMax) +
                                     " are allowed"};
  }
  KEEL_TRY_ASSIGN(const Terms before, List());
  Status put = Ok();
  if (before.highest() < term) {
    const ClaimRecord record{LeaseJobName(owner_.job), owner_.run, term, claimant_, text};
    put = bucket_.PutIfAbsent(folder_ + LeaseTermName(term), ClaimText(record));
  }
  const Status held = CheckHeld(term);
  if (!held.ok()) return IsLeaseLost(held) || put.ok() ? held.error() : put.error();
  term_ = term;
  beats_ = 0;
  Prune(before);
  return Ok();
}

Status ObjectLease::WriteBeat(bool released) {
  KEEL_CHECK(term_ > 0, "a beat without a claim");
  const BeatRecord record{claimant_, ++beats_, released};
  return bucket_.Replace(folder_ + LeaseBeatName(term_), BeatText(record));
}

// A claim is never replaced where the bucket is guarded, so a term that is still the highest is
// then still this holder's.
Status ObjectLease::Beat() {
  const Status written = WriteBeat(false);
  const Result<Terms> terms = List();
  if (terms.ok() && (terms->highest() != term_ || !bucket_.is_guarded())) {
    const Status held = CheckHeld(term_);
    if (!held.ok()) return held;
  }
  if (!written.ok()) return written;
  return terms.ok() ? Ok() : Status(terms.error());
}

Status ObjectLease::Release() {
  KEEL_TRY(WriteBeat(true));
  term_ = 0;
  return Ok();
}

// What is older than the term just claimed is in the way of nobody, so errors are of no interest.
void ObjectLease::Prune(const Terms& terms) {
  std::vector<std::string> keys;
  for (const ObjectInfo& beat : terms.beats) {
    if (BeatOf(beat) <= term_ - kTermsKept) keys.push_back(beat.key);
  }
  for (const ObjectInfo& claim : terms.claims) {
    if (TermOf(claim) <= term_ - kTermsKept) keys.push_back(claim.key);
  }
  if (!keys.empty()) (void)bucket_.Remove(keys);
}

Result<std::string> ObjectLease::ClaimName(int64_t term) {
  KEEL_TRY_ASSIGN(const ClaimRecord claim, ReadClaim(term));
  return std::to_string(term) + "-" + claim.claimant;
}

std::string ObjectLease::OwnClaimName() const { return std::to_string(term_) + "-" + claimant_; }

}  // namespace keel
