package deploy

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFlagsOfThePageForOperatorsAreTheProgramsOwn(t *testing.T) {
	known := ""
	for _, command := range []string{"serve", "worker", "health", "task cancel"} {
		known += output(t, program, append(strings.Fields(command), "--help")...)
	}
	text, err := os.ReadFile("../../docs/how-to/operate.md")
	require.NoError(t, err)
	flags := regexp.MustCompile("`(?:troupe [a-z ]+)?(--[a-z-]+[a-z])\\b").FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, flags)
	for _, flag := range flags {
		require.Contains(t, known, flag[1])
	}
}
