package main

import (
	"fmt"
	"runtime"

	"github.com/alecthomas/kong"

	"github.com/troupe-engine/troupe"
)

type versionCmd struct{}

// versionFlag does the same, for those who are used to a flag.
type versionFlag bool

// BeforeReset is called before anything else of the command line is looked at.
func (versionFlag) BeforeReset(k *kong.Kong, a *app) error {
	k.Exit(exitOK)
	return versionCmd{}.Run(a)
}

func (versionCmd) Run(a *app) error {
	fmt.Fprintf(a.stdout, "troupe %s %s/%s %s\n", troupe.Version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	return nil
}
