package main

import (
	"fmt"
	"runtime"

	"github.com/troupe-engine/troupe"
)

type versionCmd struct{}

func (versionCmd) Run(a *app) error {
	fmt.Fprintf(a.stdout, "troupe %s %s/%s %s\n", troupe.Version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	return nil
}
