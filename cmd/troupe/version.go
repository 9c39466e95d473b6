package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCmd struct{}

func (versionCmd) Run(a *app) error {
	fmt.Fprintf(a.stdout, "troupe %s %s/%s %s\n", version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	return nil
}

// version is what the build knows about itself: a release's number, else the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "devel-" + s.Value[:min(12, len(s.Value))]
		}
	}
	return "devel"
}
