package cli

import (
	"fmt"
	"runtime"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

type versionCmd struct{}

func (versionCmd) Run(a *console.App) error {
	b := troupe.Build()
	fmt.Fprintf(a.Stdout, "%s %s %s/%s %s", a.Name, b.Version, runtime.GOOS, runtime.GOARCH, runtime.Version())
	switch {
	case b.Commit != "":
		fmt.Fprintf(a.Stdout, ", commit %s", b.Commit)
	case b.Version == "devel": // go run and go test do not record it
		fmt.Fprint(a.Stdout, ", built from source, commit unknown")
	}
	if b.Date != "" {
		fmt.Fprintf(a.Stdout, " of %s", b.Date)
	}
	fmt.Fprintln(a.Stdout)
	return nil
}
