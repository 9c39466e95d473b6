package troupe

import (
	"cmp"
	"runtime/debug"
)

// modulePath is the path of this module in the dependency list of a program that embeds it.
const modulePath = "github.com/troupe-engine/troupe"

// Values that the linker sets in the binaries of a release (scripts/release.sh).
var release, commit, date string

// BuildInfo describes the build of a program. Unknown fields are "".
type BuildInfo struct {
	Version string // release of Troupe; the commit for a build between releases
	Commit  string
	Date    string // date of the commit
}

// Build returns the build information of this program.
func Build() BuildInfo {
	b := BuildInfo{Version: release, Commit: commit, Date: date}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		b.Version = cmp.Or(b.Version, "unknown")
		return b
	}
	module := info.Main
	for _, dep := range info.Deps {
		if dep.Path == modulePath {
			module = *dep
		}
	}
	if module.Replace != nil { // replaced by a folder: it has no version
		module = debug.Module{}
	}
	if info.Main.Path == modulePath || info.Main.Path == modulePath+"/cloud" {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = cmp.Or(b.Commit, s.Value)
			case "vcs.time":
				b.Date = cmp.Or(b.Date, s.Value)
			}
		}
	}
	b.Version = cmp.Or(b.Version, versionOf(module, b.Commit))
	return b
}

func versionOf(module debug.Module, commit string) string {
	switch {
	case module.Path == modulePath && module.Version != "" && module.Version != "(devel)":
		return module.Version
	case commit != "":
		return "devel-" + commit[:min(12, len(commit))]
	}
	return "devel"
}

// Version returns the release of Troupe in this program; for a build between releases, its commit.
func Version() string { return Build().Version }
