package main

import (
	"fmt"
	"runtime"

	"github.com/troupe-engine/troupe"
)

type versionCmd struct{}

func (versionCmd) Run(a *app) error {
	b := troupe.Build()
	fmt.Fprintf(a.stdout, "troupe %s %s/%s %s", b.Version, runtime.GOOS, runtime.GOARCH, runtime.Version())
	if b.Commit != "" {
		fmt.Fprintf(a.stdout, ", commit %s", b.Commit)
	}
	if b.Date != "" {
		fmt.Fprintf(a.stdout, " of %s", b.Date)
	}
	fmt.Fprintln(a.stdout)
	return nil
}
