package actors_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

func listOf(n int) string { return `{"list":[` + strings.Repeat("1,", n-1) + `1]}` }

func TestAPollWithoutWaitGetsAllAvailableJobs(t *testing.T) {
	th := start(t, actors.Config{})
	version := th.publish(t, queueOverAList)
	for _, n := range []int{300, 200, 700} {
		th.begin(t, version, listOf(n))
		require.Len(t, th.poll(t, 0, 1000, "x"), n)
		require.Empty(t, th.poll(t, 0, 1000, "x"))
	}
}

func TestAPollGetsABoundedNumberOfJobs(t *testing.T) {
	th := start(t, actors.Config{})
	th.begin(t, th.publish(t, queueOverAList), listOf(1200))
	require.Len(t, th.poll(t, 0, 1e9, "x"), 1000)
	require.Len(t, th.poll(t, 0, 1e9, "x"), 200)
}

func TestAPollGetsABoundedNumberOfBytesAndLeavesTheRest(t *testing.T) {
	for name, restart := range map[string]bool{"from memory": false, "from the store": true} {
		t.Run(name, func(t *testing.T) {
			cfg := actors.Config{IdleAfter: 20_000_000}
			th := start(t, cfg)
			version := th.publish(t, `{"start":"a","nodes":{"a":{"exec_type":"queue","service":"x","prep":{"input_key":"$params.in"}}}}`)
			for range 12 {
				th.begin(t, version, `{"in":"`+strings.Repeat("x", 900_000)+`"}`)
			}
			if restart {
				th.eventuallyEmpty(t)
				th = th.again(t, actors.Config{})
			}
			first := th.poll(t, 0, 100, "x")
			require.Less(t, len(first), 12)
			bytes := 0
			for _, c := range first {
				bytes += len(c.Job.Input)
			}
			require.LessOrEqual(t, bytes, 8<<20)
			rest := 12 - len(first)
			for rest > 0 {
				next := th.poll(t, 0, 100, "x")
				require.NotEmpty(t, next)
				rest -= len(next)
			}
		})
	}
}

// asking is a store that counts reads of queue jobs.
type asking struct {
	persistence.Store
	pages atomic.Int64
}

func (s *asking) QueueFor(ctx context.Context, f persistence.QueueFilter, at int64, turn string,
	limit int) ([]persistence.QueueRow, error) {
	s.pages.Add(1)
	return s.Store.QueueFor(ctx, f, at, turn, limit)
}

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint("service-", i)
	}
	return all
}

func TestAWidePollReadsOnlyServicesWithJobs(t *testing.T) {
	store := &asking{Store: model.New(model.Options{})}
	th := start(t, actors.Config{Store: store, MaxReady: 1})
	th.begin(t, th.publish(t, queueOf("service-7")), `{}`)
	second := th.begin(t, th.publish(t, queueOf("service-500")), `{}`)
	require.Len(t, th.poll(t, 0, 1, names(1000)...), 1)
	got := th.poll(t, 0, 1, names(1000)...)
	require.Len(t, got, 1)
	require.Equal(t, second, got[0].Job.Task)
	require.LessOrEqual(t, store.pages.Load(), int64(6))
}

func TestTooManyOrTooLongNamesInAPollAreRefused(t *testing.T) {
	th := start(t, actors.Config{Store: model.New(model.Options{})})
	for want, p := range map[string]engine.Poll{
		"1001 services": {Services: names(1001)},
		"1001 labels":   {Services: []string{"x"}, Labels: names(1001)},
		"257 bytes":     {Worker: "w", Services: []string{strings.Repeat("x", 257)}},
	} {
		_, err := th.Poll(t.Context(), p)
		require.Equal(t, flow.Invalid, flow.ErrorKindOf(err))
		require.ErrorContains(t, err, want)
	}
}
