// The folders of a Python are those that its module `site` makes of where the interpreter lies.
#include "elastic/launch/find_torch.h"

#include <limits.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/file_helpers.h"
#include "base/text.h"
#include "elastic/process/program_path.h"
#include "store/store_module.h"

namespace keel {
namespace {

// Of the package that comes with the programs in one archive.
constexpr std::string_view kOfArchive = "/lib/evenkeel/python/evenkeel";
constexpr std::string_view kEngine = "torch";
constexpr uint64_t kTextMax = 64 << 10;

bool IsThere(Files& files, const std::string& path) {
  const Result<bool> there = Exists(files, path);
  return there.ok() && *there;
}

std::string RealPath(const std::string& path) {
  std::array<char, PATH_MAX> real{};
  return realpath(path.c_str(), real.data()) == nullptr ? "" : real.data();
}

// "2.11" of "2.11.0+cpu".
std::string MinorOf(const std::string& version) {
  const size_t dot = version.find('.');
  return dot == std::string::npos ? "" : version.substr(0, version.find('.', dot + 1));
}

std::vector<std::string> NamesIn(Files& files, const std::string& folder) {
  std::vector<std::string> names;
  const Result<std::vector<DirEntry>> entries = files.List(folder);
  if (!entries.ok()) return names;
  for (const DirEntry& entry : *entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  return names;
}

// Below /usr/lib, say: those of python3.11, and those that Debian has for every python3.
void AddPackagesBelow(Files& files, const std::string& lib, const std::string& version,
                      std::vector<std::string>& folders) {
  for (const std::string& name : NamesIn(files, lib)) {
    const bool is_python = version.empty() ? name.starts_with("python3")
                                           : name == version || name == "python3";
    if (!is_python) continue;
    for (const char* leaf : {"/site-packages", "/dist-packages"}) {
      const std::string folder = JoinPath(lib, name) + leaf;
      if (IsThere(files, folder)) folders.push_back(folder);
    }
  }
}

// Of a Python that is no virtual environment.
void AddPackagesOf(Files& files, const std::string& prefix, const std::string& version,
                   const std::string& home, std::vector<std::string>& folders) {
  if (!home.empty()) AddPackagesBelow(files, home + "/.local/lib", version, folders);
  if (prefix == "/usr") AddPackagesBelow(files, "/usr/local/lib", version, folders);
  for (const char* lib : {"/lib", "/lib64"}) {
    AddPackagesBelow(files, prefix + lib, version, folders);
  }
}

// Of "home = /usr/bin" in pyvenv.cfg, with that name: "/usr/bin".
std::string SettingIn(const std::string& text, std::string_view name) {
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    const size_t equals = line.find('=');
    if (equals != std::string_view::npos && Trim(line.substr(0, equals)) == name) {
      return std::string(Trim(line.substr(equals + 1)));
    }
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return "";
}

// "python3.11" of "/usr/bin/python3.11", the file that "/usr/bin/python3" leads to; else empty.
std::string VersionedName(const std::string& program) {
  const std::string name = program.substr(program.rfind('/') + 1);
  return name.starts_with("python3.") ? name : "";
}

// Where the interpreter at that path looks for packages, in its order.
std::vector<std::string> PackageFolders(Files& files, const Environment& environment,
                                        const std::string& python) {
  std::vector<std::string> folders;
  if (python.empty()) return folders;
  const std::string home = VariableOf(environment, "HOME");
  const std::string prefix = ParentDir(ParentDir(python));
  const Result<std::string> settings = ReadWhole(files, prefix + "/pyvenv.cfg", kTextMax);
  const std::string real = RealPath(python);
  if (!settings.ok()) {
    const std::string program = real.empty() ? python : real;
    AddPackagesOf(files, ParentDir(ParentDir(program)), VersionedName(program), home, folders);
    return folders;
  }
  for (const char* lib : {"/lib", "/lib64"}) AddPackagesBelow(files, prefix + lib, "", folders);
  if (SettingIn(*settings, "include-system-site-packages") == "true") {
    AddPackagesOf(files, ParentDir(SettingIn(*settings, "home")), VersionedName(real), home,
                  folders);
  }
  return folders;
}

std::string PathOfPython(const Environment& environment, const std::string& python) {
  if (python.empty()) return "";
  Result<std::string> found = FindProgram(python, SearchPath(environment), "");
  return found.ok() ? *std::move(found) : "";
}

TorchPlace Look(Files& files, std::string origin, std::string folder, bool is_named) {
  TorchPlace place{std::move(origin), std::move(folder), is_named};
  place.is_there = IsThere(files, place.folder + "/lib/libtorch_cpu.so");
  if (place.is_there) place.version = MinorOf(TorchVersionIn(files, place.folder));
  return place;
}

std::string ListedPlaces(const std::vector<TorchPlace>& places) {
  std::vector<std::string> words;
  for (const TorchPlace& place : places) words.push_back(place.folder + " (" + place.origin + ")");
  return words.empty() ? "nowhere: there is no Python in PATH" : JoinList(words, ", ");
}

}  // namespace

std::string TorchVersionIn(Files& files, const std::string& folder) {
  constexpr std::string_view kBefore = "__version__ = '";
  const Result<std::string> of_wheel = ReadWhole(files, folder + "/version.py", kTextMax);
  const size_t at = of_wheel.ok() ? of_wheel->find(kBefore) : std::string::npos;
  if (at != std::string::npos) {
    const std::string rest = of_wheel->substr(at + kBefore.size());
    return rest.substr(0, rest.find('\''));
  }
  const Result<std::string> of_archive = ReadWhole(files, folder + "/build-version", kTextMax);
  return of_archive.ok() ? std::string(Trim(*of_archive)) : "";
}

TorchChoice ChooseTorch(const std::vector<TorchPlace>& places,
                        const std::vector<std::string>& engines) {
  using Verdict = TorchChoice::Verdict;
  const std::string made_for = JoinList(engines, ", ");
  const auto place = std::find_if(places.begin(), places.end(), [](const TorchPlace& one) {
    return one.is_there || one.is_named;
  });
  if (place == places.end()) {
    return {.verdict = Verdict::kNowhere,
            .detail = "no PyTorch was found; looked for in " + ListedPlaces(places) +
                      "; install one for the Python of the job (pip install torch; this keelrun "
                      "was made for " + made_for + "), or set KEEL_TORCH to its folder `torch`"};
  }
  const std::string where = place->folder + " (" + place->origin + ")";
  if (!place->is_there) {
    return {.verdict = Verdict::kNotThere, .folder = place->folder,
            .detail = "there is no PyTorch in " + where + ": it has no lib/libtorch_cpu.so; name "
                      "the folder `torch` of a PyTorch, which holds lib/, or name none"};
  }
  if (std::find(engines.begin(), engines.end(), place->version) == engines.end()) {
    const std::string version = place->version.empty() ? "of unknown version" : place->version;
    return {.verdict = Verdict::kNoEngine, .folder = place->folder, .version = place->version,
            .detail = "PyTorch " + version + " in " + where + " is none of those that this keelrun "
                      "was made for (" + made_for + "); install one of these for the Python of "
                      "the job, or set KEEL_TORCH to its folder `torch`"};
  }
  return {Verdict::kFound, place->folder, place->version,
          "PyTorch " + place->version + " in " + where};
}

std::vector<TorchPlace> PlacesOfTorch(Files& files, const std::string& package,
                                      const Environment& environment, const std::string& python) {
  std::vector<TorchPlace> places;
  const std::string named = VariableOf(environment, "KEEL_TORCH");
  if (!named.empty()) places.push_back(Look(files, "KEEL_TORCH", named, true));
  if (package.ends_with(kOfArchive)) {
    const std::string link = ParentDir(ParentDir(package)) + "/torch";
    const bool is_link = !RealPath(link).empty();
    if (is_link) places.push_back(Look(files, "the link of this installation", link, true));
  } else {
    places.push_back(Look(files, "beside this evenkeel", ParentDir(package) + "/torch", false));
  }
  const auto add = [&](const std::string& origin, const std::vector<std::string>& folders) {
    for (const std::string& folder : folders) {
      places.push_back(Look(files, origin, JoinPath(folder, "torch"), false));
    }
  };
  add("PYTHONPATH", SplitList(VariableOf(environment, "PYTHONPATH"), ':'));
  const std::string path = PathOfPython(environment, python);
  add("of " + path, PackageFolders(files, environment, path));
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string prefix = VariableOf(environment, name);
    if (!prefix.empty()) add(name, PackageFolders(files, environment, prefix + "/bin/python3"));
  }
  return places;
}

std::vector<std::string> EnginesOf(Files& files, const std::string& package) {
  std::vector<std::string> engines;
  for (const std::string& name : NamesIn(files, package)) {
    if (name.starts_with(kEngine) &&
        IsThere(files, package + "/" + name + "/" + kStoreModuleFile)) {
      engines.push_back(name.substr(kEngine.size()));
    }
  }
  // "2.9" before "2.10".
  std::sort(engines.begin(), engines.end(), [](const std::string& a, const std::string& b) {
    return std::pair(a.size(), a) < std::pair(b.size(), b);
  });
  return engines;
}

std::string PackageForWorkers(Files& files, const std::string& package,
                              const Environment& environment, const std::string& python) {
  if (!package.ends_with(kOfArchive)) return "";
  for (const std::string& folder :
       PackageFolders(files, environment, PathOfPython(environment, python))) {
    if (IsThere(files, folder + "/evenkeel/__init__.py")) return "";
  }
  const std::string own = ParentDir(package);
  const std::string before = VariableOf(environment, "PYTHONPATH");
  return before.empty() ? own : before + ":" + own;
}

}  // namespace keel
