package actors

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPlaceThatIsGivenUpUnusedIsTold(t *testing.T) {
	for why, giveUp := range map[string]func(*pool, *flight){
		"the member stops":     func(p *pool, _ *flight) { p.close() },
		"its job is withdrawn": func(_ *pool, f *flight) { f.stage.Store(dropped) },
	} {
		t.Run(why, func(t *testing.T) {
			var begun []func()
			told := 0
			m := &Member{ctx: t.Context()}
			m.cfg.Host.Go = func(f func()) { begun = append(begun, f) }
			p, f := &pool{m: m, limit: 1, tell: func() { told++ }}, &flight{}
			p.add([]*flight{f})
			giveUp(p, f) // before the place is used
			require.False(t, p.idle())
			require.Len(t, begun, 1)
			begun[0]()
			require.True(t, p.idle())
			require.Equal(t, 1, told, "else whoever waits until no place is taken waits until his time is over")
		})
	}
}

func TestJobsThatAreWithdrawnInLineTakeNoRoom(t *testing.T) {
	m := &Member{ctx: t.Context()}
	p := &pool{m: m, limit: 1, running: 1} // which takes long
	flights := make([]*flight, 1000)
	for i := range flights {
		flights[i] = &flight{}
	}
	p.add(flights)
	for _, f := range flights[:990] {
		f.stage.Store(dropped)
		p.withdrawn(f)
	}
	require.Less(t, m.ready.Load(), int64(200), "or the member takes no new work before the place is free")
	require.Len(t, p.line, int(m.ready.Load()))
	for range 10 {
		require.NotNil(t, p.pop())
	}
	require.Nil(t, p.pop())
	require.Zero(t, m.ready.Load())
}
