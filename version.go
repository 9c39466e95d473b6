package troupe

import "runtime/debug"

// modulePath is how a program that embeds Troupe lists it among its dependencies.
const modulePath = "github.com/troupe-engine/troupe"

// Version is the release of Troupe in this program; of a build between releases its commit.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	module := info.Main
	for _, dep := range info.Deps {
		if dep.Path == modulePath {
			module = *dep
		}
	}
	if module.Path == modulePath && module.Version != "" && module.Version != "(devel)" {
		return module.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && module.Path == modulePath {
			return "devel-" + s.Value[:min(12, len(s.Value))]
		}
	}
	return "devel"
}
