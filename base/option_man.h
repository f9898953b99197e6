// Man pages in the language of man(7), made from the OptionTables that --help is made from.
// Promises   every option with all that --help says of it, examples, exit codes; the same text for
//            the same table. Nothing that a help text holds is taken for a request of roff.
// Does not   format: man(1) does, or groff -man. Threads: any; pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/option_completion.h"
#include "base/option_table.h"

namespace keel {

// What a page says beside its table.
struct ManFacts {
  std::string title = {};                  // behind the name, without a full stop: "launch workers"
  std::vector<std::string> notes = {};     // paragraphs of the description, after the summary
  std::vector<std::string> see_also = {};  // pages: "keelrun", "keel-ls"
};

// Of a program, or of one command of it: that of "keel ls" is called keel-ls.
std::string ManPage(const OptionTable& table, const ManFacts& facts);

// Of a program whose first argument is one of these commands, each of which has a page of its own.
std::string ManPage(const std::string& program, const std::vector<CompletedCommand>& commands,
                    const ManFacts& facts);

}  // namespace keel
