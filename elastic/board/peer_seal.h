// PeerSeal: how the lines of the peer port are sealed where the job has a token (PROTOCOL.md
// section 3).
// Promises   an answer shows that who gave it has the token, and that this question was meant. A
//            line of a session shows that the other end of this very connection has it, and that no
//            line before it is missing.
// Does not   hide what is said.
// Threads    plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "store/seal/seal.h"

namespace keel {

// --- Questions: "sealed <verb> <nonce> <seal> <subject>" ---

inline constexpr std::string_view kSealed = "sealed ";
// What is answered where one end has a token, and the other has another one, or none.
inline constexpr std::string_view kClosed = "closed";
// Whoever has another token may be about to end, and what is not believed may just have been
// spoilt. A newcomer gives up after so long, with these words.
inline constexpr Duration kOtherTokenPatience = std::chrono::seconds(5);
inline constexpr std::string_view kOtherTokenCure =
    "give all launchers of the job the same one (KEELRUN_TOKEN or --token-file)";

// Which board of this job do you follow? As without a token (elastic/board/ask.h).
inline constexpr std::string_view kVerbAsk = "ask";
// Do you keep the board of this generation, now? "yes" or "no".
inline constexpr std::string_view kVerbVouch = "vouch";

inline constexpr std::string_view kYes = "yes";
inline constexpr std::string_view kNo = "no";

struct SealedQuestion {
  std::string verb;
  std::string subject;   // the job, or the generation
  std::string nonce;
};
std::string QuestionLine(const Seal& seal, const SealedQuestion& question);
// Nothing: whoever asks has not the token.
std::optional<SealedQuestion> OpenQuestion(const Seal& seal, std::string_view line);

std::string AnswerLine(const Seal& seal, const SealedQuestion& question, const std::string& answer);
std::optional<std::string> OpenAnswer(const Seal& seal, const SealedQuestion& question,
                                      std::string_view line);

// --- Sessions ---
//   member        greet <nonce of the member>
//   coordinator   challenge <nonce of the coordinator> <seal of both>
//   both          <line> <seal of its number and the line>

inline constexpr std::string_view kGreet = "greet ";
inline constexpr std::string_view kChallenge = "challenge ";

enum class PeerEnd { kMember, kCoordinator };

std::string ChallengeLine(const Seal& seal, const std::string& of_member,
                          const std::string& of_coordinator);
// The coordinator's nonce. Nothing: it has not the token, or challenges somebody else.
std::optional<std::string> OpenChallenge(const Seal& seal, const std::string& of_member,
                                         std::string_view line);

class SealedSession {
 public:
  SealedSession(const Seal& seal, const std::string& of_member, const std::string& of_coordinator,
                PeerEnd own)
      : seal_(seal.For({"session", of_member, of_coordinator})), own_(own) {}

  std::string Say(const std::string& line);
  // Nothing: that is not the next line of the other end.
  std::optional<std::string> Hear(std::string_view line);

 private:
  const Seal seal_;
  const PeerEnd own_;
  uint64_t said_ = 0;
  uint64_t heard_ = 0;
};

}  // namespace keel
