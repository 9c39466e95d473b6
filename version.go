package troupe

import (
	"cmp"
	"runtime/debug"
)

// modulePath is how a program that embeds Troupe lists it among its dependencies.
const modulePath = "github.com/troupe-engine/troupe"

// What the linker puts into the binaries of a release (scripts/release.sh).
var release, commit, date string

// BuildInfo says what a program was built from. What is not known is "".
type BuildInfo struct {
	Version string // the release of Troupe; of a build between releases its commit
	Commit  string
	Date    string // of the commit
}

// Build is what is known of this program.
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
	if module.Replace != nil { // by a folder: its version is none
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

// Version is the release of Troupe in this program; of a build between releases its commit.
func Version() string { return Build().Version }
