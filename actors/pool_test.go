package actors

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/internal/host"
)

func TestAnUnusedReleasedPlaceIsReported(t *testing.T) {
	for why, giveUp := range map[string]func(*carrierPool, *activeJob){
		"the member stops":     func(p *carrierPool, _ *activeJob) { p.close() },
		"its job is withdrawn": func(_ *carrierPool, f *activeJob) { f.stage.Store(stageDropped) },
	} {
		t.Run(why, func(t *testing.T) {
			var begun []func()
			told := 0
			m := &Member{memberRuntime: memberRuntime{work: background.New(t.Context(),
				host.Host{Go: func(f func()) { begun = append(begun, f) }, Clock: background.RealClock{}})}}
			p, f := &carrierPool{m: m, limit: 1, notifySessions: func() { told++ }}, &activeJob{}
			p.enqueueJobs([]*activeJob{f})
			giveUp(p, f) // before the place is used
			require.False(t, p.isIdle())
			require.Len(t, begun, 1)
			begun[0]()
			require.True(t, p.isIdle())
			require.Equal(t, 1, told, "else whoever waits until no place is taken waits until his time is over")
		})
	}
}

func TestWithdrawnQueuedJobsTakeNoMemory(t *testing.T) {
	work := background.New(t.Context(), host.Host{Go: func(func()) {}, Clock: background.RealClock{}})
	m := &Member{memberRuntime: memberRuntime{work: work}}
	p := &carrierPool{m: m, limit: 1, running: 1} // it takes long
	flights := make([]*activeJob, 1000)
	for i := range flights {
		flights[i] = &activeJob{}
	}
	p.enqueueJobs(flights)
	for _, f := range flights[:990] {
		f.stage.Store(stageDropped)
		p.noteWithdrawn(f)
	}
	require.Less(t, m.counts.ready.Load(), int64(200), "or the member takes no new work before the place is free")
	require.Len(t, p.jobQueue, int(m.counts.ready.Load()))
	for range 10 {
		require.NotNil(t, p.popJob())
	}
	require.Nil(t, p.popJob())
	require.Zero(t, m.counts.ready.Load())
}
