//go:build containers && linux

package containers

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

// box returns a node with a container; more holds further fields of its exec.
func box(node, more string) string {
	return "  " + node + ": {exec: {type: container, image: " + image + ", network: none, pull: never, " + more + "}}\n"
}

// line returns a shell line as the command field.
func line(text string) string {
	quoted, _ := json.Marshal(text)
	return "command: " + string(quoted)
}

func TestC11ContainersEndInEachWay(t *testing.T) { everywhere(t, endInEachWay) }

func endInEachWay(t *testing.T, m *member) {
	for node, tt := range map[string]struct{ more, output, fails string }{
		"marked":  {more: line(`echo noise; echo bad >&2; echo 'ORK_OUTPUT:{"n":1}'`), output: `{"n":1}`},
		"whole":   {more: line(`echo '[1, 2]'`), output: `[1, 2]`},
		"reads":   {more: "stdin_mode: json, " + line(`read -r x; echo "ORK_OUTPUT:[$x]"`), output: `[{}]`},
		"list":    {more: "stdin_mode: json, command: [cat]", output: `{}`},
		"nothing": {more: line(`echo words`), output: `null`},
		"exit":    {more: line(`echo oops >&2; exit 3`), fails: "exit status 3: oops"},
		"says":    {more: line(`echo 'ORK_ERROR:{"message":"no such customer"}'; exit 1`), fails: "no such customer"},
		"limits":  {more: "resources: {cpu: 0.5, memory: 64Mi}, " + line("echo 1"), output: `1`},
		"oom": {more: "resources: {memory: 16Mi}, " + line(
			`dd if=/dev/zero of=/dev/null bs=64M count=1`), fails: "out of memory (limit 16Mi)"},
		"noimage": {more: "image: localhost/there-is-none, " + line("true"),
			fails: "the image localhost/there-is-none is not on the container host"},
		"nothere": {more: "command: [there-is-none]", fails: "failed to start " + image},
		"large":   {more: line(`head -c 2000000 /dev/zero | tr '\0' 1`), fails: "the output has more than 1048576 bytes"},
	} {
		t.Run(node, func(t *testing.T) {
			if node == "oom" && !podman.LimitsMemory() {
				t.Skip("no container's memory can be limited here")
			}
			m, state := m.in(t), "completed"
			if tt.fails != "" {
				state = "failed"
			}
			text := strings.Replace(box(node, tt.more), "image: "+image+", ", "", strings.Count(tt.more, "image: "))
			task := m.runs(text, map[string]any{}, state)
			all := m.attempts(task.ID, node)
			require.Len(t, all, 1)
			if tt.fails != "" {
				require.Contains(t, all[0].Error, tt.fails)
			} else {
				require.JSONEq(t, tt.output, orNull(all[0].Output))
			}
			m.nothingLeft(task.ID)
		})
	}
}

// in returns the member for a subtest.
func (m *member) in(t *testing.T) *member {
	s := *m.stage
	s.T = t
	return &member{&s, m.Process, m.Client, m.url}
}

func orNull(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "null"
	}
	return string(raw)
}

func TestC8ContainersReportByFiles(t *testing.T) { everywhere(t, reportByFiles) }

func reportByFiles(t *testing.T, m *member) {
	const say = `cd "$(dirname "$TASK_SPEC_PATH")" && grep -q '"task_name": *"a"' spec.json || ` +
		`exit 9; say() { echo "$1" > .s; mv .s status.json; }; `
	for name, tt := range map[string]struct{ does, output, fails string }{
		"well":     {does: `echo '{"n":1}' > output.json; say '{"status":"success"}'`, output: `{"n":1}`},
		"badly":    {does: `echo 'ORK_OUTPUT:1'; say '{"status":"failed","error":"no such table"}'`, fails: "no such table"},
		"wordless": {does: `echo 'ORK_OUTPUT:1'`, fails: "exited without a status"},
		"silent":   {does: `say '{"status":"running","heartbeat":"x"}'; sleep 600`, fails: "heartbeat timeout"},
		"staying":  {does: `say '{"status":"success"}'; sleep 600`, output: `null`},
	} {
		t.Run(name, func(t *testing.T) {
			m, state := m.in(t), "completed"
			if tt.fails != "" {
				state = "failed"
			}
			task := m.runs("  a: {heartbeat_timeout: 3s, exec: {type: container, image: "+image+
				", network: none, pull: never, report: object_store, "+line(say+tt.does)+"}}\n", nil, state)
			all := m.attempts(task.ID, "a")
			require.Len(t, all, 1)
			if tt.fails != "" {
				require.Equal(t, tt.fails, all[0].Error)
			} else {
				require.JSONEq(t, tt.output, orNull(all[0].Output))
			}
			m.nothingLeft(task.ID)
		})
	}
}

func TestC11AContainerThatTakesTooLongIsEnded(t *testing.T) { everywhere(t, takesTooLong) }

// The timeout is long enough for a container to start and set its trap on a busy machine.
func takesTooLong(t *testing.T, m *member) {
	task := m.runs("  a: {timeout: 5, retry: {max_attempts: 2}, exec: {type: container, image: "+
		image+", network: none, grace: 1s, "+line(`trap 'echo asked; exit' TERM; sleep 60 & wait`)+
		"}}\n", nil, "failed")
	require.Contains(t, task.Error, "execution timeout")
	all := m.attempts(task.ID, "a")
	require.Len(t, all, 2)
	m.nothingLeft(task.ID)
	for _, r := range all {
		require.Equal(t, "timeout", r.State)
		m.printed(r, "asked\n", "it was asked to end, and its last words are kept")
	}
}

func TestC11ACanceledContainerIsEnded(t *testing.T) { everywhere(t, isCanceled) }

func isCanceled(t *testing.T, m *member) {
	task := m.begin(box("a", "grace: 1s, "+line(`echo begun; sleep 600`)), nil)
	m.prints(task, "begun\n")
	_, err := m.CancelHow(t.Context(), task, wire.CancelRequest{Force: true})
	require.NoError(t, err)
	m.end(task, "canceled")
	m.nothingLeft(task)
}

// prints waits until the first attempt of node a has printed exactly the text.
func (m *member) prints(task, text string) {
	m.Helper()
	require.Eventually(m, func() bool {
		all := m.attempts(task, "a")
		if len(all) == 0 {
			return false
		}
		printed, err := m.Log(m.Context(), all[0].Job)
		return err == nil && printed == text
	}, patience, 20*time.Millisecond, "it prints %q: %s", text, m.Said())
}

func TestC12FilesAreCopiedIntoAndOutOfContainers(t *testing.T) { everywhere(t, filesGoInAndComeOut) }

func filesGoInAndComeOut(t *testing.T, m *member) {
	require.NoError(t, os.WriteFile(filepath.Join(m.scripts, "data", "words"), []byte("from the host\n"), 0o644))
	nodes := `  a: {exec: {type: container, image: ` + image + `, network: none, to_file: /in/of/it.json, from_file: /out.json, ` +
		line(`sleep 0.$((5 - ORK_PARALLEL_INDEX)); tr a-z A-Z < /in/of/it.json > /out.json`) + `}, each: {count: 5}}
` + box("text", `from_file: /o, mounts: [{from: data, to: /data, ro: true}], `+line(`cat /data/words > /o; touch /data/x 2>/dev/null && echo 'ORK_OUTPUT:"written"'; true`)) +
		box("gone", `from_file: /o, `+line("true")) + box("outside", `mounts: [{from: .., to: /x}], `+line("true"))
	task := m.runs(nodes, map[string]any{"x": "y"}, "failed")
	require.Len(t, m.attempts(task.ID, "a"), 5)
	for _, r := range m.attempts(task.ID, "a") {
		require.JSONEq(t, `{"X": "Y"}`, orNull(r.Output))
	}
	require.JSONEq(t, `"from the host"`, orNull(m.attempts(task.ID, "text")[0].Output))
	require.Contains(t, m.attempts(task.ID, "gone")[0].Error, "the file /o with its output is not there")
	require.Contains(t, m.attempts(task.ID, "outside")[0].Error, "outside of the folder that programs may run in")
	m.nothingLeft(task.ID)
}

func TestC12OutputsOfAForeachAreInItsOrder(t *testing.T) { everywhere(t, outputsOfAForeach) }

func outputsOfAForeach(t *testing.T, m *member) {
	task := m.runs(`  a: {exec: {type: container, image: `+image+`, network: none, `+line(
		`sleep 0.$((5 - ORK_PARALLEL_INDEX)); echo "ORK_OUTPUT:$ORK_ITEM_JSON"`)+
		`}, each: {items: $run.files}}
  all: {exec: {type: container, image: `+image+`, network: none, `+line(`echo "ORK_OUTPUT:$ORK_INPUT_JSON"`)+`}, depends_on: [a]}
  b: {exec: {type: container, image: `+image+`, network: none, `+line(`wc -c < $ORK_INPUT_FILE`)+`}, input: {big: "`+strings.Repeat("x", 200_000)+`"}, depends_on: [a]}
`, map[string]any{"files": []string{"p", "q", "r", "s", "t"}}, "completed")
	require.Len(t, m.attempts(task.ID, "a"), 5)
	require.JSONEq(t, `{"a": ["p", "q", "r", "s", "t"], "files": ["p", "q", "r", "s", "t"]}`, orNull(m.attempts(task.ID, "all")[0].Output))
	require.Greater(t, len(orNull(m.attempts(task.ID, "b")[0].Output)), 5, "a large input is in a file")
	m.nothingLeft(task.ID)
}

// untilReleased returns a container that reports its start and waits until a file exists.
func (s *stage) untilReleased(more string) string {
	return box("a", `mounts: [{from: data, to: /data, ro: true}], `+line(
		`echo begun; while ! test -e /data/go; do sleep 0.05; done; echo released; `+more))
}

func (s *stage) release() {
	s.Helper()
	require.NoError(s, os.WriteFile(filepath.Join(s.scripts, "data", "go"), nil, 0o644))
}

func TestC13AContainerIsTakenOverAfterACrash(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { takenOver(t, "") })
	t.Run("postgres", func(t *testing.T) { takenOver(t, pgtest.DSN(t)) })
}

func takenOver(t *testing.T, store string) {
	s := newStage(t, store)
	m := s.allowed("one")
	task := m.begin(s.untilReleased(`echo 'ORK_OUTPUT:7'`), nil)
	m.prints(task, "begun\n")
	before := ours(t, task)
	require.Len(t, before, 1)
	m.Kill()
	s.release()

	m = s.allowed("one-again")
	m.end(task, "completed")
	all := m.attempts(task, "a")
	require.Len(t, all, 1)
	require.Equal(t, 1, all[0].Attempt)
	require.JSONEq(t, `7`, orNull(all[0].Output))
	m.printed(all[0], "begun\nreleased\nORK_OUTPUT:7\n", "each line is there once")
	m.nothingLeft(task)
}

// TestC13AMemberIsKilledWhileItBeginsContainers kills the member at various moments: between
// creating, starting and reporting.
func TestC13AMemberIsKilledWhileItBeginsContainers(t *testing.T) {
	s := newStage(t, "")
	for _, after := range []time.Duration{50, 150, 250, 350, 500, 700} {
		m := s.allowed("one")
		task := m.begin(box("a", line(`echo "$HOSTNAME" >> /data/began; sleep 0.3; echo `+
			`ORK_OUTPUT:1`)+`, mounts: [{from: data, to: /data}]`), nil)
		select {
		case <-m.Done():
		case <-time.After(after * time.Millisecond): // any moment is valid
		}
		m.Kill()
		m = s.allowed("one")
		m.end(task, "completed")
		all := m.attempts(task, "a")
		require.Len(t, all, 1, "killed after %v", after)
		require.Equal(t, 1, all[0].Attempt)
		m.nothingLeft(task)
		began, err := os.ReadFile(filepath.Join(s.scripts, "data", "began"))
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(began), "\n"), "it was run once, though its member was killed after %v", after)
		require.NoError(t, os.Remove(filepath.Join(s.scripts, "data", "began")))
		m.Kill()
	}
}

// TestSecretsOfContainersAreHidden lets two members track one container that prints its secrets.
func TestSecretsOfContainersAreHidden(t *testing.T) {
	s := newStage(t, "")
	dir := t.TempDir()
	for name, value := range map[string]string{"db": "hunter2-and-more", "ca": "certificate of somebody"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(value+"\n"), 0o600))
	}
	m := s.member("one", "--allow-containers", "--secret-dir", dir)
	nodes := strings.Replace(s.untilReleased(
		`cat $CA; sleep 0.2; cat /run/secrets/ca.pem >&2; sleep 0.2; echo `+
			`"ORK_OUTPUT:\"$PASSWORD\""`), "echo begun;", "echo begun $PASSWORD;", 1)
	nodes = strings.Replace(nodes, "}}", ", secrets: {PASSWORD: db, CA: {secret: ca, file: ca.pem}}}}", 1)
	task := m.begin(nodes, nil)
	m.prints(task, "begun ***\n")
	m.Kill()
	s.release()
	m = s.member("two", "--allow-containers", "--secret-dir", dir)
	m.end(task, "completed")
	all := m.attempts(task, "a")
	require.JSONEq(t, `"***"`, orNull(all[0].Output))
	m.printed(all[0], "begun ***\nreleased\n***\n***\nORK_OUTPUT:\"***\"\n", "what it has printed")
	m.nothingLeft(task)
}

func TestC13AnotherMemberTakesContainersOver(t *testing.T) {
	s := newStage(t, pgtest.DSN(t))
	one := s.allowed("one")
	two := s.allowed("two")
	task := one.begin(s.untilReleased(`echo ORK_OUTPUT:8`), nil)
	one.prints(task, "begun\n")
	shards, err := one.Shards(t.Context(), task)
	require.NoError(t, err)
	owner, other := one, two
	if shards.Items[0].Member == "two" {
		owner, other = two, one
	}
	owner.Kill()
	s.release()
	other.end(task, "completed")
	all := other.attempts(task, "a")
	require.Len(t, all, 1)
	require.JSONEq(t, `8`, orNull(all[0].Output))
	other.printed(all[0], "begun\nreleased\nORK_OUTPUT:8\n", "what it has printed")
	other.nothingLeft(task)
}

func TestNumberOfRunningContainersIsLimited(t *testing.T) {
	s := newStage(t, "")
	m := s.member("one", "--allow-containers", "--max-containers", "2")
	node := strings.Replace(s.untilReleased("true"), "}}\n", "}, each: {count: 5}}\n", 1)
	task := m.begin(node, nil)
	running := func() (n int) {
		for _, c := range ours(t, task) {
			if c.State == "running" {
				n++
			}
		}
		return n
	}
	require.Eventually(t, func() bool { return running() == 2 && len(ours(t, task)) == 5 },
		patience, 50*time.Millisecond, "the others are made, and wait")
	require.Equal(t, 2, running())
	s.release()
	m.end(task, "completed")
	m.nothingLeft(task)
}

func TestContainersAreRefusedUnlessTheOperatorAllowsThem(t *testing.T) {
	m := newStage(t, "").member("one")
	task := m.runs(box("a", line("true")), nil, "failed")
	require.Contains(t, task.Error, "containers are not allowed on this server; its operator can allow them with --allow-containers")
}

func TestUnreachableContainerHostFailsTheAttempt(t *testing.T) {
	s := newStage(t, "")
	s.host = "unix://" + filepath.Join(s.folder, "nobody.sock")
	task := s.allowed("one").runs(box("a", line("true")), nil, "failed")
	require.Contains(t, task.Error, "the container host unix://")
	require.Contains(t, task.Error, "cannot be reached")
}

// TestTheContainerHostMayBeStartedAgain kills podman while a container runs; the container
// continues.
func TestTheContainerHostMayBeStartedAgain(t *testing.T) {
	s := newStage(t, "")
	m := s.allowed("one")
	task := m.begin(s.untilReleased(`echo ORK_OUTPUT:9`), nil)
	m.prints(task, "begun\n")
	require.NoError(t, podman.Restart())
	s.release()
	m.end(task, "completed")
	all := m.attempts(task, "a")
	m.printed(all[0], "begun\nreleased\nORK_OUTPUT:9\n", "what it has printed")
	m.nothingLeft(task)
}

// TestLeftoverContainersAreRemoved leaves an orphaned container beside one that is awaited.
func TestLeftoverContainersAreRemoved(t *testing.T) {
	s := newStage(t, "")
	m := s.allowed("one")
	task := m.begin(s.untilReleased(`echo ORK_OUTPUT:1`), nil)
	m.prints(task, "begun\n")
	live := ours(t, task)[0]
	m.Kill()
	// a second attempt, unknown to the task
	job := strings.Replace(live.Labels["troupe.job"], ".1.0.1.", ".1.0.2.", 1)
	out, err := podman.Podman("run", "--detach", "--network", "none", "--label", "troupe.job="+job,
		"--label", "troupe.store="+live.Labels["troupe.store"], image, "sleep", "600").CombinedOutput()
	require.NoError(t, err, "%s", out)
	other := "other-" + task // of a member with another store
	out, err = podman.Podman("run", "--detach", "--network", "none", "--label",
		"troupe.job="+other+".1.0.1.CmE", "--label", "troupe.store=other", image, "sleep",
		"600").CombinedOutput()
	require.NoError(t, err, "%s", out)

	m = s.allowed("one")
	require.Eventually(t, func() bool { return len(ours(t, task)) == 1 }, patience, 50*time.Millisecond, "what is left over is removed")
	require.Equal(t, live.ID, ours(t, task)[0].ID)
	s.release()
	m.end(task, "completed")
	m.nothingLeft(task)
	require.Len(t, ours(t, other), 1, "those of others are left alone")
}

func TestWorkflowsOfOrkHaveImages(t *testing.T) { everywhere(t, workflowsHaveImages) }

func workflowsHaveImages(t *testing.T, m *member) {
	file := filepath.Join(m.folder, "w.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
name: w
tasks:
  list: {image: `+image+`, config: {network: none, pull: never}, command: [echo, 'ORK_OUTPUT:["a","b"]']}
  shout:
    executor: container
    image: `+image+`
    config: {network: none, pull: never}
    command: grep -o '"item":"[a-z]*"' /in.json | tr a-z A-Z > /out
    input: {to_file: /in.json}
    output: {from_file: /out}
    depends_on: [list]
    foreach: list
    resources: {cpu: 1, memory: 64Mi}
`), 0o600))
	out, err := exec.Command(binary, "flow", "apply", file, "--server", m.url).CombinedOutput()
	require.NoError(t, err, "%s", out)
	started, err := m.Start(t.Context(), wire.StartRequest{Flow: "w"})
	require.NoError(t, err)
	task := m.end(started.ID, "completed")
	var outputs []string
	for _, r := range m.attempts(task.ID, "shout") {
		outputs = append(outputs, string(r.Output))
	}
	require.ElementsMatch(t, []string{`"\"ITEM\":\"A\""`, `"\"ITEM\":\"B\""`}, outputs)
}
