package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// addLines adds lines to a report and returns its output.
func addLines(r *runReport, lines ...string) string {
	var printed strings.Builder
	for _, line := range lines {
		printed.WriteString(r.addLine([]byte(line + "\n")))
	}
	return printed.String()
}

const module = "github.com/troupe-engine/troupe/"

func TestPassedPackageIsGosOwnLine(t *testing.T) {
	r := newReport(began, false)
	printed := addLines(r,
		`{"Action":"start","Package":"`+module+`flow"}`,
		`{"Action":"run","Package":"`+module+`flow","Test":"TestA"}`,
		`{"Action":"output","Package":"`+module+`flow","Test":"TestA","Output":"=== RUN   TestA\n"}`,
		`{"Action":"pass","Package":"`+module+`flow","Test":"TestA"}`,
		`{"Action":"output","Package":"`+module+`flow","Output":"PASS\n"}`,
		`{"Action":"output","Package":"`+module+`flow","Output":"ok  \tgithub.com/troupe-engine/troupe/flow\t0.1s\n"}`,
		`{"Action":"pass","Package":"`+module+`flow"}`)
	require.Equal(t, "ok  \tgithub.com/troupe-engine/troupe/flow\t0.1s\n", printed)
	require.False(t, r.hasFailures())
}

func TestFailedTestIsPrintedBeforeItsPackageEnds(t *testing.T) {
	r := newReport(began, false)
	printed := addLines(r,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"--- FAIL: TestA\n"}`,
		`{"Action":"output","Package":"p","Test":"TestB","Output":"never shown\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestA"}`,
		`{"Action":"pass","Package":"p","Test":"TestB"}`)
	require.Equal(t, "--- FAIL: TestA\n", printed)
	printed = addLines(r,
		`{"Action":"output","Package":"p","Output":"FAIL\n"}`,
		`{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}`,
		`{"Action":"fail","Package":"p"}`)
	require.Equal(t, "FAIL\nFAIL\tp\t0.1s\n", printed)
	require.True(t, r.hasFailures())
}

func TestCrashShowsTheOutputOfTheTestsUnderWay(t *testing.T) {
	r := newReport(began, false)
	printed := addLines(r,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"panic: no\n"}`,
		`{"Action":"fail","Package":"p"}`)
	require.Equal(t, "panic: no\nFAIL\tp\n", printed)
}

func TestPackageThatDoesNotBuildFailsTheRun(t *testing.T) {
	r := newReport(began, false)
	printed := addLines(r,
		`{"ImportPath":"p","Action":"build-output","Output":"p.go:1: syntax error\n"}`,
		`{"ImportPath":"p","Action":"build-fail"}`,
		`{"Action":"start","Package":"p"}`,
		`{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}`,
		`{"Action":"fail","Package":"p","FailedBuild":"p"}`)
	require.Equal(t, "p.go:1: syntax error\nFAIL\tp [build failed]\n", printed)
	require.True(t, r.hasFailures())
}

func TestTextBesideTheEventsIsKept(t *testing.T) {
	require.Equal(t, "go: no such package\n", addLines(newReport(began, false), "go: no such package"))
}

func TestProgressNamesWhatRunsAndItsOldestTest(t *testing.T) {
	r := newReport(began, false)
	require.Equal(t, "... 20s: 0 packages ended, building the next ones\n", r.describeProgress(began.Add(20*time.Second)))
	addLines(r,
		`{"Action":"pass","Package":"done"}`,
		`{"Action":"start","Package":"`+module+`flow"}`,
		`{"Time":"2026-01-02T03:04:10Z","Action":"run","Package":"`+module+`actors","Test":"TestNew"}`,
		`{"Time":"2026-01-02T03:04:06Z","Action":"run","Package":"`+module+`actors","Test":"TestOld"}`)
	require.Equal(t, "... 40s: 1 packages ended; running actors (TestOld, 39s) flow\n", r.describeProgress(began.Add(40*time.Second)))
}

func TestVerboseReportPrintsEveryLine(t *testing.T) {
	printed := addLines(newReport(began, true), `{"Action":"output","Package":"p","Test":"TestA","Output":"seen\n"}`)
	require.Equal(t, "seen\n", printed)
}
