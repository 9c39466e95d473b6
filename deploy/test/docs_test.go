package deploy

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFlagsOfThePagesAreTheProgramsOwn(t *testing.T) {
	known := ""
	for _, command := range []string{"serve", "worker", "health", "task cancel"} {
		known += output(t, program, append(strings.Fields(command), "--help")...)
	}
	for _, page := range []string{"../../docs/how-to/operate.md", "../README.md"} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, flag := range regexp.MustCompile("`(?:troupe [a-z ]+)?(--[a-z-]+[a-z])\\b").FindAllStringSubmatch(string(text), -1) {
			require.Contains(t, known, flag[1], page)
		}
	}
}
