package cli

import (
	"fmt"
	"runtime"

	"github.com/troupe-engine/troupe"
)

type versionCmd struct{}

func (versionCmd) Run(a *app) error {
	b := troupe.Build()
	fmt.Fprintf(a.stdout, "%s %s %s/%s %s", a.name, b.Version, runtime.GOOS, runtime.GOARCH, runtime.Version())
	switch {
	case b.Commit != "":
		fmt.Fprintf(a.stdout, ", commit %s", b.Commit)
	case b.Version == "devel": // go run and go test do not record it
		fmt.Fprint(a.stdout, ", built from source, commit unknown")
	}
	if b.Date != "" {
		fmt.Fprintf(a.stdout, " of %s", b.Date)
	}
	fmt.Fprintln(a.stdout)
	return nil
}
