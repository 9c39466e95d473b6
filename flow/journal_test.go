package flow_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

var keep = flag.Bool("keep", false, "keep a journal of every transcript that has none of the present format")

// kept is a journal written by an earlier release, with facts about its task.
type kept struct {
	Definition string
	Rows       []json.RawMessage
	Snapshot   snapshotBytes
	Facts      facts
}

// snapshotBytes is an encoded snapshot. Early formats were JSON.
type snapshotBytes []byte

func (b *snapshotBytes) UnmarshalJSON(text []byte) error {
	if text[0] == '{' {
		*b = text
		return nil
	}
	return json.Unmarshal(text, (*[]byte)(b))
}

// facts are the properties of a task that must never change.
type facts struct {
	Status  flow.TaskStatus
	Error   string          `json:",omitempty"`
	Action  string          `json:",omitempty"`
	Shared  json.RawMessage `json:",omitempty"`
	Steps   int
	Waiting []string `json:",omitempty"`
	Runs    []string `json:",omitempty"`
}

func factsOf(s *flow.State, runs []flow.NodeRun) facts {
	f := facts{Status: s.Status, Error: s.Error, Action: s.Root.LastAction, Shared: expr.Compact(s.Root.SharedJSON()), Steps: s.Steps}
	for _, w := range flow.Waiting(s) {
		f.Waiting = append(f.Waiting, fmt.Sprintf("%s %s", w.For, w.Address))
	}
	for i := range runs {
		f.Runs = append(f.Runs, runText(&runs[i]))
	}
	return f
}

// TestKeptJournalsAreReadForEver applies journals of every earlier format. If a journal no longer
// gives the same facts, an upgrade would change tasks of that release.
func TestKeptJournalsAreReadForEver(t *testing.T) {
	keepMissing(t)
	files, err := filepath.Glob("testdata/journals/*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for line := range bytes.Lines(text) {
				var k kept
				require.NoError(t, json.Unmarshal(line, &k))
				k.check(t)
			}
		})
	}
}

func (k *kept) check(t *testing.T) {
	d, err := definition.Parse([]byte(k.Definition))
	require.NoError(t, err)
	plan := compile.Lower(d, flow.Limits{}) // a published version is not checked again
	h := flow.NewHistory("task-1", plan)
	for _, row := range k.Rows {
		events, err := flow.DecodeEvents(row)
		require.NoError(t, err)
		for i := range events {
			h.Apply(&events[i])
		}
	}
	require.Equal(t, k.Facts, factsOf(h.State, h.Runs), k.Definition)

	s, ok := flow.DecodeSnapshot(k.Snapshot, plan)
	if ok {
		require.Equal(t, k.Facts, factsOf(s, h.Runs), "the snapshot has the same format and another meaning: %s", k.Definition)
	}
}

// keepMissing writes the missing journals if the flag -keep is set.
func keepMissing(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, scripts)
	for _, script := range scripts {
		name := strings.TrimSuffix(filepath.Base(script), ".txt")
		file := fmt.Sprintf("testdata/journals/format%d.%d-%s.jsonl", flow.EventsFormat, flow.SnapshotFormat, name)
		if _, err := os.Stat(file); !*keep || !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		text, err := os.ReadFile(script)
		require.NoError(t, err)
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		for part := range strings.SplitSeq(string(text), "\n===\n") {
			require.NoError(t, enc.Encode(keepPart(t, part)))
		}
		require.NoError(t, os.MkdirAll("testdata/journals", 0o755))
		require.NoError(t, os.WriteFile(file, b.Bytes(), 0o644))
	}
}

func keepPart(t *testing.T, part string) kept {
	tb := playPart(t, part, &strings.Builder{})
	definition, _, _ := strings.Cut(part, "\n---\n")
	k := kept{Definition: definition, Snapshot: flow.EncodeSnapshot(tb.state).Bytes(), Facts: factsOf(tb.state, tb.runs())}
	for _, row := range tb.rows {
		k.Rows = append(k.Rows, row)
	}
	return k
}
