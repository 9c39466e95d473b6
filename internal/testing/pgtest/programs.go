//go:build unix

package pgtest

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrNoPrograms is returned if this machine has no PostgreSQL server programs.
var ErrNoPrograms = errors.New("pgtest: PostgreSQL's server programs (initdb, postgres) are in none of PATH, " +
	"`pg_config --bindir`, /usr/lib/postgresql/*/bin: install Debian's package postgresql, " +
	"or set TROUPE_TEST_POSTGRES to the DSN of a server")

// debianBins is the folder of the programs on Debian, one per major version, outside PATH.
const debianBins = "/usr/lib/postgresql/*/bin"

// findPrograms returns the folder that holds both initdb and postgres.
func findPrograms(glob string) (string, error) {
	candidates := filepath.SplitList(os.Getenv("PATH"))
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		candidates = append(candidates, strings.TrimSpace(string(out)))
	}
	candidates = append(candidates, newestFirst(glob)...)
	for _, dir := range candidates {
		if bin, ok := serverBin(dir); ok {
			return bin, nil
		}
	}
	return "", ErrNoPrograms
}

// serverBin resolves links, because the programs look for their files beside their real location,
// and PATH often holds links to them.
func serverBin(dir string) (string, bool) {
	var bin string
	for _, name := range []string{"initdb", "postgres"} {
		program, err := filepath.EvalSymlinks(filepath.Join(dir, name))
		if err != nil || !isExecutable(program) {
			return "", false
		}
		bin = filepath.Dir(program)
	}
	return bin, true
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// newestFirst sorts …/9.6/bin, …/15/bin, …/17/bin by number, newest first.
func newestFirst(glob string) []string {
	dirs, err := filepath.Glob(glob)
	if err != nil {
		return nil
	}
	version := func(dir string) float64 {
		v, err := strconv.ParseFloat(filepath.Base(filepath.Dir(dir)), 64)
		if err != nil {
			return 0
		}
		return v
	}
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
	return dirs
}
