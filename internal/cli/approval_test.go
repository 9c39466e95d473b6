package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
)

func TestApprovalsAreListedAndAnswered(t *testing.T) {
	at := server(t)
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	start := func() string { return strings.TrimSpace(cmd("task", "start", "approve").stdout) }
	first, second := start(), start()

	require.Eventually(t, func() bool {
		return len(parse[wire.Page[wire.Approval]](t, cmd("approval", "list", "-o", "json").stdout).Items) == 2
	}, time.Minute, 10*time.Millisecond)
	require.Regexp(t, `(?s)ID +FLOW +NODE .*`+first+`\.1\.\S+ +approve +ask .*`+second, cmd("approval", "list", "--flow", "approve").stdout)

	require.Equal(t, 0, cmd("task", "cancel", second).code)
	got := cmd("approval", "answer", "", "approve")
	require.Equal(t, exitUsage, got.code, "the only one that is open is not the one that is meant")
	require.Contains(t, got.stderr, "<approval> is empty")
	second = start()
	require.Eventually(t, func() bool { return strings.Contains(cmd("approval", "list").stdout, second) },
		time.Minute, 10*time.Millisecond)

	link := cmd("approval", "link", first, "--name", "Bo")
	require.Regexp(t, `^http://\S+/ui/approve/`+first+`\.1\.\S+#\S+\n$`, link.stdout, link.stderr)
	got = cmd("approval", "link", first, "--name", "Bo", "--expires", "500ms")
	require.Equal(t, exitUsage, got.code, got.stdout)
	require.Contains(t, got.stderr, "use at least 1s")
	got = cmd("approval", "answer", first, "approve", "--key", "nobody's")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "has no open approval with the key nobody's")
	whole := parse[wire.Page[wire.Approval]](t, cmd("approval", "list", "--search", first, "-o", "json").stdout).Items[0]
	got = cmd("approval", "answer", whole.ID, "approve", "--key", "nobody's")
	require.Equal(t, exitUsage, got.code, got.stdout)
	require.Contains(t, got.stderr, "has the key "+whole.Key+", not nobody's")
	require.Equal(t, 0, cmd("approval", "link", whole.ID, "--name", "Bo", "--key", whole.Key).code)
	got = cmd("approval", "answer", first, "approve", "--by", "ada", "--comment", "well done")
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, 0, cmd("approval", "answer", second, "--value", `{"why":"too late"}`).code)
	require.Equal(t, 0, cmd("task", "watch", first).code)
	history := cmd("task", "history", first, "-o", "json").stdout
	require.Contains(t, history, `"ada"`)
	require.Contains(t, history, `"well done"`)
	require.Contains(t, cmd("task", "history", second, "-o", "json").stdout, "too late")

	got = cmd("approval", "answer", first, "approve")
	require.Equal(t, 2, got.code)
	require.Contains(t, got.stderr, "has no open approval")
	require.Equal(t, 2, cmd("approval", "answer", first).code)
	id := parse[wire.Page[wire.Approval]](t, cmd("approval", "list", "--state", "answered",
		"--search", first, "-o", "json").stdout).Items[0].ID
	got = cmd("approval", "answer", id, "reject", "--by", "bo")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "already answered by ada at")
}
