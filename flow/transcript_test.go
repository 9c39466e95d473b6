package flow_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

var update = flag.Bool("update", false, "write the transcripts in testdata anew")

// TestTranscripts runs the scripts in testdata. A script is a definition, `---`, and lines of
// commands. The indented lines below a command are its results, written by `go test -update`.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			kept, err := os.ReadFile(file)
			require.NoError(t, err)
			played := play(t, string(kept))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(played), 0o644))
				return
			}
			require.Equal(t, string(kept), played)
		})
	}
}

// play runs a script and returns it with its results. `===` begins another definition.
func play(t *testing.T, script string) string {
	var out strings.Builder
	for i, part := range strings.Split(script, "\n===\n") {
		if i > 0 {
			out.WriteString("===\n")
		}
		playPart(t, part, &out)
	}
	return out.String()
}

func playPart(t *testing.T, part string, out *strings.Builder) *table {
	definition, commands, ok := strings.Cut(part, "\n---\n")
	require.True(t, ok, "a script has a definition, then ---")
	out.WriteString(definition + "\n---\n")
	s := stage{newTable(t, flowtest.Plan(t, definition)), t, out}
	for line := range strings.SplitSeq(strings.TrimRight(commands, "\n"), "\n") {
		s.line(line)
	}
	return s.table
}

// stage runs the lines of a script.
type stage struct {
	*table
	test *testing.T
	out  *strings.Builder
}

func (s *stage) line(line string) {
	if strings.HasPrefix(line, "  ") {
		return // results of the last run
	}
	s.out.WriteString(line + "\n")
	if line == "" || strings.HasPrefix(line, "#") {
		return
	}
	request := ""
	if strings.HasPrefix(line, "@") {
		request, line, _ = strings.Cut(line[1:], " ")
	}
	words := strings.Fields(line)
	verb, rest := words[0], strings.TrimSpace(strings.TrimPrefix(line, words[0]))
	ended := s.state.Status.Ended()
	d, err := s.perform(request, verb, rest)
	for i := range d.Events {
		s.print("%s", eventText(&d.Events[i]))
	}
	for _, e := range d.Effects {
		s.print("→ %s", effectText(e))
	}
	if err != nil {
		s.print("refused (%s): %v", flow.ErrorKindOf(err), err)
	}
	if s.state.Status.Ended() && (!ended || len(d.Events) > 0) {
		s.print("= %s %s%s%s", s.state.Status, oneLine(s.state.Root.Output()),
			quoted(" action=", s.state.Root.LastAction), quoted(" error=", s.state.Error))
	}
}

func (s *stage) print(format string, args ...any) { fmt.Fprintf(s.out, "  "+format+"\n", args...) }

func (s *stage) perform(request, verb, rest string) (flow.Decision, error) {
	switch verb {
	case "limits":
		require.NoError(s.test, json.Unmarshal([]byte(rest), &s.env.Limits))
		return flow.Decision{}, nil
	case "wait":
		ms, err := strconv.ParseInt(rest, 10, 64)
		require.NoError(s.test, err)
		return s.wait(ms), nil
	case "work":
		return s.work(), nil
	case "crash":
		member, visibility, _ := strings.Cut(rest, " ")
		ms, _ := strconv.ParseInt(visibility, 10, 64) // 0 if missing
		return s.crash(member, ms), nil
	case "move":
		names := strings.Fields(rest)
		return s.move(names[0], 0, names[1:]...), nil
	case "gone":
		return s.tell(flow.Recover{Since: s.env.Now, Alive: strings.Fields(rest)}), nil
	case "show":
		s.show(rest)
		return flow.Decision{}, nil
	}
	return s.ask(request, s.command(verb, rest))
}

func (s *stage) command(verb, rest string) flow.Command {
	first, then, _ := strings.Cut(rest, " ")
	switch verb {
	case "start":
		return flow.Start{Version: "v1", Params: json.RawMessage(rest)}
	case "signal":
		return flow.Signal{Key: first, Value: json.RawMessage(then)}
	case "cancel":
		return flow.Cancel{Gently: rest == "gently", Force: rest == "force"}
	case "retry":
		return flow.RetryTask{}
	case "pause":
		return flow.Pause{}
	case "resume":
		return flow.Resume{}
	case "proceed":
		return flow.Proceed{}
	case "leave":
		return flow.Leave{}
	}
	a, args := s.address(first), strings.Fields(then)
	switch verb {
	case "ok":
		return flow.Report{Address: a, Output: json.RawMessage(then), Worker: "w1"}
	case "ok-token":
		return flow.Report{Address: a, Token: args[0], Output: json.RawMessage(args[1])}
	case "direct":
		return flow.Report{Address: a, Output: json.RawMessage(then), Direct: true}
	case "held":
		return flow.Report{Address: a, Output: json.RawMessage(then), Poller: true}
	case "faildirect":
		return flow.Report{Address: a, Error: then, Direct: true}
	case "append":
		items, _ := expr.Elements(json.RawMessage(then))
		return flow.Append{Address: a, Items: items}
	case "fail":
		return flow.Report{Address: a, Error: then, Worker: "w1"}
	case "fatal":
		return flow.Report{Address: a, Error: then, Fatal: true}
	case "claim":
		return flow.Claim{Address: a, Worker: args[0], Token: args[1], Until: s.in(args[2])}
	case "extend":
		return flow.Extend{Address: a, Worker: args[0], Token: strings.Trim(args[1], "-"), Until: s.in(args[2])}
	case "giveback":
		return flow.GiveBack{Address: a, Token: then}
	case "begin":
		return flow.Begin{Address: a, Carrier: cmp.Or(then, s.env.Member)}
	case "note":
		return flow.Note{Address: a, Text: then}
	case "unbegun":
		return flow.Report{Address: a, Lost: true, Unbegun: true}
	case "failstep":
		return flow.FailStep{Address: a, Error: then}
	}
	require.Fail(s.test, "no such command", verb)
	return nil
}

func (s *stage) in(ms string) int64 {
	n, err := strconv.ParseInt(ms, 10, 64)
	require.NoError(s.test, err)
	return s.env.Now + n
}

// address parses scope/node#visit.unit!attempt. The default of visit and attempt is 1, and of unit
// 0.
func (s *stage) address(text string) flow.Address {
	a := flow.Address{Visit: 1, Attempt: 1}
	number := func(mark string, to *int) {
		if i := strings.LastIndex(text, mark); i > strings.LastIndexByte(text, '/') {
			n, err := strconv.Atoi(text[i+1:])
			require.NoError(s.test, err)
			*to, text = n, text[:i]
		}
	}
	number("!", &a.Attempt)
	number(".", &a.Unit)
	number("#", &a.Visit)
	if node, slug := strings.CutPrefix(text, "="); slug {
		a.Node = node
		return a
	}
	i := strings.LastIndexByte(text, '/')
	// The key of a node that compensates nodes of a subflow contains the path of the subflow.
	if strings.HasPrefix(text, "~") && !strings.Contains(text, "#") {
		i = strings.IndexByte(text, '/')
	}
	a.Scope, a.Node = text[:max(i, 0)], text[i+1:]
	return a
}

func (s *stage) show(what string) {
	switch what {
	case "nodes":
		for i, n := range s.state.Root.Nodes {
			s.print("%s %s%s waits=%d%s", s.state.Root.Plan.Dag.List[i].Key,
				cmp.Or(string(n.Status()), "created"), quoted(" ", n.Rare().Reason), n.Waits,
				raw(" output=", n.Output))
		}
	case "shared":
		s.print("%s", oneLine(s.state.Root.SharedJSON()))
	case "outstanding":
		for _, e := range flow.Outstanding(s.state) {
			s.print("→ %s", effectText(e))
		}
	case "waiting":
		for _, w := range flow.Waiting(s.state) {
			s.print("%s %s: %s%s", w.For, w.Address, w.Text, times(" since ", w.Since)+times(" until ", w.Until))
		}
	case "runs":
		for _, r := range s.runs() {
			s.print("%s", runText(&r))
		}
	default:
		require.Fail(s.test, "nothing to show", what)
	}
}

// runs returns the history, built from the rows alone.
func (tb *table) runs() []flow.NodeRun {
	h := flow.NewHistory(tb.state.Task, tb.state.Plan)
	for _, row := range tb.rows {
		events, err := flow.DecodeEvents(row)
		require.NoError(tb.t, err)
		for i := range events {
			h.Apply(&events[i])
		}
	}
	sameState(tb.t, tb.state, h.State)
	return h.Runs
}

func runText(r *flow.NodeRun) string {
	return fmt.Sprintf("%s %s %s%s%s%s in=%s out=%s%s%s%s %s..%s", r.Kind, r.Address, r.Status,
		quoted(" branch=", r.Branch), quoted(" note=", r.Note),
		quoted(" error=", r.Error), oneLine(flow.OrNull(r.Input)), oneLine(flow.OrNull(r.Output)),
		quoted(" action=", r.Action), quoted(" worker=", r.Worker), flagged(" queue", r.Queue),
		clockText(r.StartedAt), times("", r.EndedAt))
}

func eventText(e *flow.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", e.Type)
	if e.Node != "" {
		fmt.Fprintf(&b, " %s", e.Address())
	}
	b.WriteString(quoted(" status=", e.Status) + quoted(" action=", e.Action) + quoted(" next=", e.Next) + flagged(" post", e.Post))
	b.WriteString(raw(" input=", e.Input) + quoted(" from=", e.InputRef) + raw(" output=",
		e.Output) + quoted(" error=", e.Error) + quoted(" reason=", e.Reason))
	if e.Total > 0 {
		fmt.Fprintf(&b, " total=%d", e.Total)
	}
	if e.Kept > 0 {
		fmt.Fprintf(&b, " kept=%d", e.Kept)
	}
	b.WriteString(times(" due ", e.Due) + quoted(" carrier=", e.Carrier) + quoted(" worker=", e.Worker) + quoted(" token=", e.Token))
	b.WriteString(times(" until ", e.Until) + quoted(" note=", e.Note) + quoted(" key=",
		e.Key) + raw(" params=", e.Params) + quoted(" request=", e.Request))
	return b.String()
}

func quoted(name, text string) string {
	switch {
	case text == "":
		return ""
	case strings.ContainsAny(text, " \n\""):
		return name + strconv.Quote(text)
	}
	return name + text
}

func flagged(name string, on bool) string {
	if on {
		return name
	}
	return ""
}

func raw(name string, v json.RawMessage) string {
	if v == nil {
		return ""
	}
	return name + oneLine(v)
}

func times(name string, at int64) string {
	if at == 0 {
		return ""
	}
	return name + clockText(at)
}
