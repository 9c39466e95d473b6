package child

import (
	"fmt"
	"strings"
	"syscall"
)

// tooLong returns the error for a program whose arguments and variables exceed the system's limit.
// The error names the longest entry and the remedy.
func tooLong(cmd *Command) error {
	longest, most, all := "", 0, 0
	note := func(what string, size int) {
		if all += size; size > most {
			longest, most = what, size
		}
	}
	for i, arg := range cmd.Argv {
		note(fmt.Sprintf("argument %d", i), len(arg))
	}
	for _, variable := range cmd.Env {
		name, _, _ := strings.Cut(variable, "=")
		note("the variable "+name, len(variable))
	}
	return fmt.Errorf("%w: %s has %d of the %d bytes of arguments and variables; pass large "+
		"values by standard input or in a file", syscall.E2BIG, longest, most, all)
}
