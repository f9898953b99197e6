// Claims and beats as files, and what is made of those that are damaged.
#include "store/lease/dir_lease.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/digest.h"
#include "base/file_helpers.h"
#include "base/text.h"
#include "store/lease/lease_names.h"
#include "store/lease/put_if_absent.h"

namespace keel {

DirLease::DirLease(Files& files, std::string folder, LeaseOwner owner, std::string claimant)
    : files_(files),
      folder_(std::move(folder)),
      owner_(std::move(owner)),
      claimant_(std::move(claimant)) {}

Error DirLease::About(const Error& error) const { return error.Doing("the lease in " + folder_); }

Result<std::unique_ptr<DirLease>> DirLease::Open(Files& files, Random& random,
                                                 const std::string& dir, LeaseOwner owner) {
  KEEL_TRY(CheckLeaseOwner(owner));
  const std::string folder = JoinPath(dir, LeaseFolderName(owner.job));
  std::unique_ptr<DirLease> lease(new DirLease(files, folder, std::move(owner),
                                               RandomId(random, 16)));
  KEEL_TRY(lease->Prepare(dir, random));
  KEEL_TRY(lease->Look());
  return lease;
}

Result<LeaseSight> DirLease::LookInto(Files& files, const std::string& folder,
                                      const std::string& job) {
  return DirLease(files, folder, {job, ""}, "").Look();
}

Status DirLease::Prepare(const std::string& dir, Random& random) {
  // It is not made: below a mount point without its mount, each host would make one of its own.
  const Result<FileInfo> found = files_.Stat(dir);
  if (!found.ok() && found.error().code == Code::kNotFound) {
    return Error{Code::kNotFound, "the lease directory " + dir + " is not there: mount it, or make "
                                      "it once where all hosts see it"};
  }
  if (!found.ok()) return found.error().Doing("the lease directory " + dir + " cannot be used");
  if (found->kind != FileKind::kDirectory) {
    return Error{Code::kInvalid, "the lease directory " + dir + " is not a directory: name one "
                                     "that all hosts share"};
  }
  Status made = files_.MakeDir(folder_);
  if (!made.ok() && made.error().code == Code::kExists) made = Ok();
  if (made.ok()) made = files_.SyncDir(dir);
  if (made.ok()) made = ProbePutIfAbsent(files_, folder_, random);
  if (made.ok()) return Ok();
  if (made.error().code == Code::kInvalid) return made;   // not atomic
  return made.error().Doing("the lease directory " + dir + " cannot be written");
}

Result<int64_t> DirLease::HighestTerm() {
  const auto entries = files_.List(folder_);
  if (!entries.ok()) return About(entries.error());
  int64_t highest = 0;
  for (const DirEntry& entry : *entries) {
    highest = std::max(highest, LeaseTermIn(entry.name).value_or(0));
  }
  return highest;
}

// kCorrupt and kNotFound where the claim is damaged; kInvalid where it is another job's, or of
// another version.
Result<ClaimRecord> DirLease::ReadClaim(int64_t term) {
  const std::string name = LeaseTermName(term);
  const std::string path = JoinPath(folder_, name);
  const auto text = ReadPut(files_, folder_, name, kLeaseRecordBytesMax);
  if (!text.ok() && text.error().code == Code::kInvalid) {
    return Error{Code::kCorrupt, text.error().message};
  }
  if (!text.ok()) return text.error();
  KEEL_TRY_ASSIGN(ClaimRecord claim, ParseClaimAt(path, term, *text));
  if (claim.job != LeaseJobName(owner_.job)) {
    return Error{Code::kInvalid, folder_ + " holds the lease of job " + Shown(claim.job) +
                                     ", and this is job " + Shown(LeaseJobName(owner_.job)) +
                                     ": name another lease directory for one of them"};
  }
  return claim;
}

Result<LeaseSight> DirLease::Look() {
  LeaseSight sight;
  for (int looks = 1;; ++looks) {
    KEEL_TRY_ASSIGN(sight.term, HighestTerm());
    if (sight.term == 0) return sight;
    const Result<ClaimRecord> claim = ReadClaim(sight.term);
    if (claim.ok()) {
      sight.run = claim->run;
      sight.text = claim->text;
      break;
    }
    if (claim.error().code == Code::kInvalid) return claim.error();
    if (claim.error().code == Code::kNotFound && looks < kLeaseLooksMax) continue;
    // Whatever keeps it from being read, the term is claimed, and its beat can be watched.
    sight.damage = claim.error().message;
    break;
  }
  KEEL_TRY_ASSIGN(sight.beat, ReadBeat(sight.term));
  const Result<BeatRecord> record = ParseBeat(sight.beat);
  sight.released = record.ok() && record->released;
  return sight;
}

// What is no beat counts as one, too, while it changes: somebody writes it.
Result<std::string> DirLease::ReadBeat(int64_t term) {
  const std::string path = JoinPath(folder_, LeaseBeatName(term));
  Result<std::string> beat = ReadWhole(files_, path, kLeaseRecordBytesMax);
  if (beat.ok()) return beat;
  if (beat.error().code == Code::kNotFound) return std::string();
  if (beat.error().code == Code::kInvalid) return beat.error().message;   // far too long
  return About(beat.error());   // its holder may be there
}

Status DirLease::CheckHeld(int64_t term) {
  for (int looks = 1;; ++looks) {
    KEEL_TRY_ASSIGN(const int64_t highest, HighestTerm());
    if (highest > term) {
      return Error{Code::kStaleEpoch, LeaseTermText(term) + " of the lease in " + folder_ +
                                          " is over: " + LeaseTermText(highest) + " is claimed"};
    }
    const Result<ClaimRecord> claim = ReadClaim(term);
    if (claim.ok() && claim->claimant == claimant_) return Ok();
    std::string who = "another process";
    if (claim.ok()) {
      who += ", which says " + Shown(claim->text);
    } else if (claim.error().code == Code::kInvalid) {
      return claim.error();
    } else if (claim.error().code == Code::kNotFound && highest == term && looks < kLeaseLooksMax) {
      continue;
    } else if (claim.error().code == Code::kCorrupt ||
               (claim.error().code == Code::kNotFound && highest == term)) {
      who += ", whose claim is damaged (" + claim.error().message + ")";
    } else {
      return About(claim.error());
    }
    return Error{Code::kExists,
                 LeaseTermText(term) + " of the lease in " + folder_ + " is claimed by " + who};
  }
}

Status DirLease::Claim(int64_t term, const std::string& text) {
  KEEL_CHECK(term >= 1 && term <= kLeaseTermMax, "term=" << term);
  if (text.size() > kLeaseTextBytesMax) {
    return Error{Code::kInvalid, "the text of a claim has " + std::to_string(text.size()) +
                                     " bytes, " + std::to_string(kLeaseTextBytesMax) +
                                     " are allowed"};
  }
  KEEL_TRY_ASSIGN(const LeaseSight sight, Look());
  Status put = Ok();
  if (sight.term < term) {
    const ClaimRecord record{LeaseJobName(owner_.job), owner_.run, term, claimant_, text};
    put = PutIfAbsent(files_, {folder_, LeaseTermName(term), claimant_}, ClaimText(record));
  } else {
    // One's own, of an earlier call whose outcome was unknown, may not be durable yet.
    put = files_.SyncDir(folder_);
  }
  // Putting it has made this host's caches of the folder void, so this look is a new one.
  const Status held = CheckHeld(term);
  if (!held.ok()) return IsLeaseLost(held) || put.ok() ? held.error() : About(put.error());
  // Only an answer was lost, and not the claim; it may not be durable yet.
  if (!put.ok()) KEEL_TRY(files_.SyncDir(folder_));
  term_ = term;
  beats_ = 0;
  Prune();
  return Ok();
}

Status DirLease::WriteBeat(bool released) {
  KEEL_CHECK(term_ > 0, "a beat without a claim");
  const BeatRecord record{claimant_, ++beats_, released};
  const std::string path = JoinPath(folder_, LeaseBeatName(term_));
  const Status written = WriteDurably(files_, path, BeatText(record));
  return written.ok() ? Ok() : Status(About(written.error()));
}

// The write comes first: it makes this host's caches of the folder void, so that the look finds
// what others have claimed.
Status DirLease::Beat() {
  const Status written = WriteBeat(false);
  const Status held = CheckHeld(term_);
  return IsLeaseLost(held) || written.ok() ? held : written;
}

Status DirLease::Release() {
  KEEL_TRY(WriteBeat(true));
  term_ = 0;
  return Ok();
}

// What is older than the term just claimed is in the way of nobody, so errors are of no interest.
// Whoever is still about to claim such a term gets nothing any more. Probes are left alone: a host
// that is starting would take its directory for one that is not atomic.
void DirLease::Prune() {
  const auto entries = files_.List(folder_);
  if (!entries.ok()) return;
  for (const DirEntry& entry : *entries) {
    const PutPlace place{folder_, entry.name, claimant_};
    std::string_view name = entry.name;
    if (name.ends_with(kTemporarySuffix)) name.remove_suffix(kTemporarySuffix.size());
    if (const auto beat = LeaseBeatIn(name); beat && *beat <= term_ - kTermsKept) {
      (void)files_.Remove(JoinPath(folder_, entry.name));
    } else if (const auto term = LeaseTermIn(name);
               term && *term <= term_ - kTermsKept) {
      (void)RemovePut(files_, place);
    } else if (const auto on_the_way = NameOnTheWay(name);
               on_the_way && LeaseTermIn(*on_the_way).value_or(term_ + 1) <= term_) {
      (void)RemovePut(files_, place);
    }
  }
}

}  // namespace keel
