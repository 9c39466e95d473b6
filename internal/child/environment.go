package child

import (
	"os"
	"runtime"
	"slices"
	"strings"
)

// visibleVariables are the variables that programs need to find other programs, their files and
// their language. On Windows, programs also need the windowsVariables.
var (
	visibleVariables = []string{"PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER"}
	windowsVariables = []string{"SYSTEMROOT", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE"}
)

// Environment returns the part of this process's environment that a program sees: a few variables,
// and the variables listed by the operator. Tokens, passwords and settings of Troupe are not among
// them.
func Environment(listed []string) []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if slices.Contains(visibleVariables, name) || strings.HasPrefix(name, "LC_") || slices.Contains(listed, name) ||
			runtime.GOOS == "windows" && slices.Contains(windowsVariables, strings.ToUpper(name)) {
			env = append(env, entry)
		}
	}
	return env
}

// Laid returns env with the variables in over added or replaced.
func Laid(env []string, over map[string]string) []string {
	all := make([]string, 0, len(env)+len(over))
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if _, twice := over[name]; !twice {
			all = append(all, e)
		}
	}
	for name, value := range over {
		all = append(all, name+"="+value)
	}
	return all
}
