package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unit copies the unit to a place where systemd-analyze finds its program, with or without a
// drop-in.
func unit(t *testing.T, dropIn string) string {
	t.Helper()
	_, err := exec.LookPath("systemd-analyze")
	require.NoError(t, err, "the check of the unit needs systemd-analyze: install Debian's package systemd")
	dir := t.TempDir()
	text, err := os.ReadFile("../systemd/troupe.service")
	require.NoError(t, err)
	require.Contains(t, string(text), "ExecStart=/usr/local/bin/troupe serve\n")
	path := filepath.Join(dir, "troupe.service")
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/troupe", program)), 0o644))
	if dropIn != "" {
		require.NoError(t, os.Mkdir(path+".d", 0o755))
		more, err := os.ReadFile(dropIn)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(path+".d", "cluster.conf"), more, 0o644))
	}
	return path
}

func TestTheUnitIsUnderstoodBySystemd(t *testing.T) {
	for _, dropIn := range []string{"", "../systemd/cluster.conf"} {
		out, err := exec.Command("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit(t, dropIn)).CombinedOutput()
		require.NoError(t, err, string(out))
		require.Empty(t, string(out))
	}
}

func TestTheUnitIsHardened(t *testing.T) {
	out, err := exec.Command("systemd-analyze", "security", "--no-pager", "--offline=true",
		"--threshold=15", unit(t, "../systemd/cluster.conf")).CombinedOutput()
	require.NoError(t, err, "exposure above 1.5:\n%s", out)
}

func TestTheSettingsOfTheUnitAreRead(t *testing.T) {
	text, err := os.ReadFile("../systemd/troupe.env")
	require.NoError(t, err)
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		require.Regexp(t, `^(#.*|TROUPE_[A-Z_]+=\S+)$`, line)
	}
}

// settingsOfAMember returns the variables of a cluster member.
func settingsOfAMember(t *testing.T) map[string]string {
	t.Helper()
	dropIn, err := os.ReadFile("../systemd/cluster.conf")
	require.NoError(t, err)
	settings := map[string]string{}
	read := func(text, prefix string) {
		for line := range strings.Lines(text) {
			name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), prefix), "=")
			if ok && strings.HasPrefix(name, "TROUPE_") {
				settings[name] = value
			}
		}
	}
	read(string(dropIn), "Environment=")
	file, err := os.ReadFile("../systemd/troupe.env")
	require.NoError(t, err)
	read(string(file), "") // the environment file overrides the unit
	return settings
}

func TestACertificateThatIsRenewedIsSeenByTheService(t *testing.T) {
	settings := settingsOfAMember(t)
	for _, name := range []string{"TROUPE_TLS_CERT", "TROUPE_TLS_KEY", "TROUPE_CA"} {
		require.True(t, filepath.IsAbs(settings[name]),
			"%s=%s: what is a credential (%%d) is copied when the service starts, and not again",
			name, settings[name])
	}
}

func TestClusterMemberListensAtItsAdvertisedAddress(t *testing.T) {
	settings := settingsOfAMember(t)
	require.Equal(t, ":8070", settings["TROUPE_LISTEN"])
	require.Equal(t, "https://%H:8070", settings["TROUPE_ADVERTISE"])
	require.NotEmpty(t, settings["TROUPE_TLS_CERT"])
}
