//go:build unix

package durable_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/durable"
)

// callTools is an agent: a model chooses six tools, a person allows the fourth, and the answer is
// streamed.
func (s *setup) callTools(f *durable.Flow, in input) (answer string, err error) {
	for round := 1; ; round++ {
		tool, err := durable.Do(f, "choose", func(context.Context) (string, error) {
			s.addLine(fmt.Sprint("choose", round), in.Name)
			s.reachPoint(in.Name, "choose", round)
			return []string{"", "search", "read", "sum", "delete", "read", "write", "done"}[round], nil
		})
		if err != nil || tool == "done" {
			return answer, err
		}
		if tool == "delete" {
			if ok, err := durable.Approve(f, "delete it"); err != nil || !ok {
				return "", err
			}
			s.reachPoint(in.Name, "allowed", round)
		}
		said, err := durable.Do(f, "call "+tool, func(context.Context) (string, error) {
			s.addLine(fmt.Sprint("call", round), in.Name)
			s.reachPoint(in.Name, "call", round)
			return fmt.Sprint(tool, round), nil
		})
		if err != nil {
			return "", err
		}
		answer += said + " "
		if err := f.Stream("answer").Write(said); err != nil {
			return "", err
		}
		s.reachPoint(in.Name, "after", round)
	}
}

// allowAll approves whatever a task asks for, until ctx ends.
func allowAll(ctx context.Context, e *troupe.Engine, id string) {
	for ctx.Err() == nil {
		page, err := e.Approvals(ctx, troupe.ApprovalQuery{Task: id})
		if err == nil && len(page.Items) > 0 {
			_, _ = e.AnswerApproval(ctx, page.Items[0].ID, troupe.ApprovalAnswer{Action: "approved"})
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestAgentIsKilledTenTimes kills the program of an agent while it chooses tools, calls them, waits
// for a person and streams its answer.
func TestAgentIsKilledTenTimes(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		s := setup{Store: store, Dir: t.TempDir(), Tasks: []string{startTask(t, store, "agent", "a")}}
		s.Kills = []string{"a-choose-1", "a-call-1", "a-after-1", "a-call-2", "a-after-3", "a-allowed-4", "a-call-4", "a-choose-5",
			"a-after-5", "a-choose-7"}
		programs, said := runUntilEnd(t, s)
		require.Equal(t, 11, programs)
		require.Contains(t, said, `completed "search1 read2 sum3 delete4 read5 write6 "`)
		lines := readLedger(t, s.Dir)
		for round := 1; round <= 7; round++ {
			for _, what := range []string{"choose", "call"} {
				times := strings.Count(strings.Join(s.Kills, " ")+" ", fmt.Sprintf("a-%s-%d ", what, round))
				if what == "choose" || round < 7 {
					times++
				}
				require.Equal(t, times, countLines(lines, fmt.Sprint(what, round)), "%s %d: only what was cut off runs again", what, round)
			}
		}
		e := openStore(t, store)
		require.Equal(t, `"search1" "read2" "sum3" "delete4" "read5" "write6"`, readStream(t, e, s.Tasks[0], "answer"))
	})
}
