package child_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/child"
)

func TestAProgramSeesAStatedEnvironment(t *testing.T) {
	stated := []string{"PATH", "HOME", "LANG", "LC_ALL", "LC_TIME", "TZ", "TMPDIR", "USER"}
	for _, name := range slices.Concat(stated, []string{"TROUPE_TOKEN", "TROUPE_STORE",
		"SCHEDULER_DB", "PGPASSWORD", "OTEL_EXPORTER_OTLP_HEADERS",
		"AWS_SECRET_ACCESS_KEY", "path", "LD_PRELOAD"}) {
		t.Setenv(name, "value of "+name)
	}
	require.ElementsMatch(t, stated, names(child.Environment(nil)))
	require.ElementsMatch(t, append(stated, "PGPASSWORD", "TROUPE_TOKEN"),
		names(child.Environment([]string{"PGPASSWORD", "TROUPE_TOKEN", "MISSING"})))
	require.Contains(t, child.Environment(nil), "PATH=value of PATH")
}

func names(env []string) (names []string) {
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
	}
	return names
}
