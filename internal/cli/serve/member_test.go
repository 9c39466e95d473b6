package serve

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

func TestSettingsOfOrkWithoutEffectAreReportedOnce(t *testing.T) {
	var told bytes.Buffer
	f := memberFlags{LogFlags: console.LogFlags{LogLevel: "info"}}
	_, err := f.buildConfig(&console.App{Stderr: &told})
	require.NoError(t, err)
	require.Empty(t, told.String())
	t.Setenv("POLL_INTERVAL_SECS", "0.5")
	t.Setenv("DB_POOL_SIZE", "20")
	t.Setenv("ORK_LOCATIONS_CONFIG", "locations.yaml")
	_, err = f.buildConfig(&console.App{Stderr: &told})
	require.NoError(t, err)
	require.Regexp(t, `^\S+ level=INFO msg="settings of Ork are ignored" `+
		`variables="POLL_INTERVAL_SECS DB_POOL_SIZE ORK_LOCATIONS_CONFIG"\n$`, told.String())
}

func TestFlagsAndVariablesConfigureAMember(t *testing.T) {
	t.Setenv("SCHEDULER_DB", "old.db")
	t.Setenv("WORKER_OFFLINE_TTL_SEC", "30")
	t.Setenv("WORKER_REFRESH_INTERVAL_SEC", "soon")
	tokens := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(tokens, []byte("b\n\n c \n"), 0o600))
	f := memberFlags{MaxUnits: 7, Token: []string{"a"}, TokenFile: tokens, LogFlags: console.LogFlags{LogLevel: "warn"}}
	cfg, err := f.buildConfig(&console.App{Stderr: io.Discard})
	require.NoError(t, err)
	require.Equal(t, "sqlite:old.db", cfg.Store)
	require.Equal(t, []string{"a", "b", "c"}, cfg.Tokens)
	require.Equal(t, 30*time.Second, cfg.WorkerTTL)
	require.Zero(t, cfg.WorkerRefresh, "no positive number means the default")
	require.Equal(t, flow.Limits{Units: 7}, cfg.Limits)

	f.Store, f.WorkerTTL = "sqlite:new.db", time.Minute
	cfg, err = f.buildConfig(&console.App{Stderr: io.Discard})
	require.NoError(t, err)
	require.Equal(t, "sqlite:new.db", cfg.Store)
	require.Equal(t, time.Minute, cfg.WorkerTTL)
	require.Zero(t, cfg.ResumeGrace)

	for said, want := range map[time.Duration]time.Duration{0: -1, time.Minute: time.Minute} {
		f.ResumeGrace = &said
		cfg, err = f.buildConfig(&console.App{Stderr: io.Discard})
		require.NoError(t, err)
		require.Equal(t, want, cfg.ResumeGrace, "0 means none at all")
	}
}
