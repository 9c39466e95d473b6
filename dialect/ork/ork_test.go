package ork_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/dialect/ork"
	"github.com/troupe-engine/troupe/flow"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestFilesMatchTheirGoldenTranslations compares translations, and the problems of invalid files,
// with golden files.
func TestFilesMatchTheirGoldenTranslations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.True(t, ork.Is(text))
			var told bytes.Buffer
			w, problems := ork.Translate(text, ork.Options{Root: "/srv/flows",
				Exists: func(path string) bool { return !strings.Contains(path, "missing") }})
			for _, p := range problems {
				told.WriteString(p.String() + "\n")
			}
			require.Equal(t, problems.Err() != nil, w.Definition == nil)
			if w.Definition != nil {
				require.NoError(t, json.Indent(&told, w.Definition, "", "  "))
				_, err := definition.ParseJSON(w.Definition)
				require.NoError(t, err)
				told.WriteString("\n")
			}
			requireGolden(t, strings.TrimSuffix(file, ".yaml")+".golden", told.String())
		})
	}
}

func TestAWorkflowIsRecognizedByItsShape(t *testing.T) {
	for text, is := range map[string]bool{
		"name: a\ntasks: {x: {executor: process, command: ls}}": true,
		`{"name":"a","tasks":{}}`:                               true,
		`{"name":"a","job_name":"./x.sh","executor":"process"}`: true,
		"nodes: {a: {service: s}}":                              false,
		"tasks: {a: {service: s}}\nnodes: {}":                   false,
		"start: a\nnodes: {a: {service: s}}":                    false,
		"[1, 2]":                                                false,
		"":                                                      false,
	} {
		require.Equal(t, is, ork.Is([]byte(text)), text)
	}
}

func TestProblemsOfTheDefinitionUseTheNamesOfTasks(t *testing.T) {
	w, problems := ork.Translate([]byte("name: w\ntasks: {a-b: {executor: process, command: ls}}"), ork.Options{})
	require.NoError(t, problems.Err())
	told := w.InItsWords(definition.Problems{{Path: "nodes.a_b.exec.command", Line: 3, Column: 4,
		Msg: "x"}, {Path: "nodes.zz"}, {Path: "name"}})
	require.Equal(t, definition.Problems{{Path: "tasks.a-b.command", Msg: "x"}, {Path: "tasks.zz"}, {Path: "name"}}, told)
}

func TestProblemsOfSharedFieldsHaveTheirPlaces(t *testing.T) {
	w, problems := ork.Translate([]byte("name: w\ntasks: {a: {executor: process, command: "+
		"ls}}\nschedule:\n  timezone: Mars\n  cron: 0 0 9 * * 1\n"), ork.Options{})
	require.NoError(t, problems.Err())
	told := w.InItsWords(definition.Problems{{Path: "schedule.cron", Line: 1, Column: 2},
		{Path: "schedule.timezone"}, {Path: "schedule.every"}})
	require.Equal(t, definition.Problems{{Path: "schedule.cron", Line: 5, Column: 9},
		{Path: "schedule.timezone", Line: 4, Column: 13}, {Path: "schedule.every", Line: 3, Column: 1}}, told)
}

// FuzzTranslate checks that any file is read to its end, and has a definition or an error.
func FuzzTranslate(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		w, problems := ork.Translate(text, ork.Options{})
		if problems.Err() == nil {
			require.NotNil(t, w)
			require.True(t, json.Valid(w.Definition))
		}
	})
}

// Text that our own templates would expand stays as written.
func TestOurTemplateSyntaxIsEscapedInWorkflows(t *testing.T) {
	for name, text := range map[string]string{
		"a job":         "name: w\nexecutor: process\njob_name: echo ${task_index} $${task_index}\n",
		"a task's name": "name: w\ntasks: {'a${b}': {executor: process, command: ls}}\n",
		"a variable":    "name: w\ntasks: {a: {executor: process, command: ls, env: {A: 'x${b} $${c}'}}}\n",
	} {
		w, problems := ork.Translate([]byte(text), ork.Options{})
		require.NoError(t, problems.Err(), name)
		plan, problems := compile.Text(w.Definition, flow.Limits{})
		require.NoError(t, problems.Err(), "%s: %s", name, w.Definition)
		var said []string
		for _, v := range plan.Root.Dag.List[0].Exec.Vars {
			value := ""
			for _, part := range v.Parts {
				require.Nil(t, part.Ref, name)
				value += part.Text
			}
			said = append(said, v.Name+"="+value)
		}
		require.Equal(t, map[string][]string{"a job": {"job_name=echo ${task_index} $${task_index}"},
			"a task's name": {"ORK_TASK_NAME=a${b}", "task_name=a${b}"}, "a variable": {"A=x${b} $${c}"}}[name], said)
	}
}

func TestUntranslatableReferencesInVariablesAreRejected(t *testing.T) {
	for value, says := range map[string]string{
		"${{ a.x }}":      "a $ right before {{",
		"{{ a.x:-none }}": "leads nowhere",
		"{{ a.x}y }}":     "leads nowhere",
	} {
		_, problems := ork.Translate([]byte(
			"name: w\ntasks: {a: {executor: process, command: ls}, b: {executor: process, "+
				"command: ls, depends_on: [a], env: {A: '"+value+"'}}}\n"), ork.Options{})
		require.ErrorContains(t, problems.Err(), says, value)
		require.Equal(t, "tasks.b.env.A", problems[0].Path)
	}
}

func TestProgramOptionsReachThePlan(t *testing.T) {
	text, err := os.ReadFile("testdata/options.yaml")
	require.NoError(t, err)
	w, problems := ork.Translate(text, ork.Options{})
	require.NoError(t, problems.Err())
	plan, problems := compile.Text(w.Definition, flow.Limits{})
	require.NoError(t, problems.Err())
	p := plan.Root.Dag.List[0].Exec.Program
	require.Equal(t, flow.Program{File: "tasks.py", Python: "python3.12", Warm: 4,
		OutputMode: flow.OutputMarker, Upstream: true, GraceMS: 2500},
		flow.Program{File: p.File, Python: p.Python, Warm: p.Warm, OutputMode: p.OutputMode, Upstream: p.Upstream, GraceMS: p.GraceMS})
}

func TestVariablesOfATaskAreTheTextAsWritten(t *testing.T) {
	w, problems := ork.Translate([]byte(`name: numbers
tasks:
  a:
    executor: process
    command: "true"
    env:
      OCTAL: 022
      GROUPS: 1_000
      BINARY: 0b11
      HEX: 0x1F
      PLUS: +5
      FRACTION: 1.50
      EXPONENT: 1e3
      LONG: 12345678901234567890123
      INFINITE: .inf
      YES: True
      ON: true
      DATE: 2026-01-01
      TIME: 1:30
      TEXT: "9"
      TAGGED: !!str 022
      LIST: [1]
      EMPTY: ~
`), ork.Options{Root: "/srv/flows"})
	require.NoError(t, problems.Err())
	told := make([]string, len(problems))
	for i, p := range problems {
		told[i] = p.String()
	}
	require.Equal(t, []string{
		"22:7: warning: tasks.a.env.LIST: is an array, which no variable can be: it is left out",
		"23:14: warning: tasks.a.env.EMPTY: is null, which no variable can be: it is left out",
	}, told)
	d, err := definition.ParseJSON(w.Definition)
	require.NoError(t, err)
	env := d.Nodes["a"].Exec.Program().Env
	delete(env, "task_index")
	require.Equal(t, map[string]string{"OCTAL": "022", "GROUPS": "1_000", "BINARY": "0b11",
		"HEX": "0x1F", "PLUS": "+5", "FRACTION": "1.50", "EXPONENT": "1e3",
		"LONG": "12345678901234567890123", "INFINITE": ".inf", "YES": "True", "ON": "true",
		"DATE": "2026-01-01", "TIME": "1:30", "TEXT": "9", "TAGGED": "022"}, env)
}
